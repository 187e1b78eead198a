//! The benchmarks of the browser half: the product on fresh stores, and a Chromium that measures itself.
//!
//! What is measured and how is in `end2end/measure`. The programs are those of the dev profile, as `run`
//! starts them; the browser half is the one that is delivered.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::{Output, Processes};
use crate::services::{Folder, Stores};
use crate::serving::{Product, Server, without_hold_limits};
use crate::setup::chromium;
use crate::site::{self, Size};
use crate::stop::Stop;

/// Runs one; whether its figures stand.
pub fn bench(
    places: &Places,
    name: &str,
    arguments: &[String],
    folder: &mut Folder,
    processes: &mut Processes<'_>,
    stores: Stores,
    stop: &Stop,
) -> Result<bool> {
    let end2end = places.root.join("end2end");
    let chromium = chromium::with_playwright(&end2end, stop)?;
    native::build(places, stop)?;
    site::build(places, Size::Small, stop)?;

    let mut product = Product::prepare(places, folder, stores, stop)?;
    let output = Output::File(folder.log("payments"));
    product.start_simulator(processes, folder, IpAddr::V4(Ipv4Addr::LOCALHOST), output)?;
    let server = Server::on_any_port(folder, "rowlock", without_hold_limits())?;
    product.start_server(processes, &server, Output::File(folder.log(server.name)))?;

    let mut measure = Command::new("node");
    measure.current_dir(&end2end).arg(format!("measure/{name}.mjs")).args(arguments);
    measure.env("BASE_URL", &server.public_url);
    if let Some(chromium) = chromium {
        measure.env("CHROMIUM", chromium);
    }
    Ok(command::status(&mut measure, stop)?.success())
}

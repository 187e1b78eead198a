//! The benchmarks of the client: the product on fresh stores, measured in Chromium.
//!
//! The measurements are in `end2end/measure`. The programs have the dev profile, as those of `run`; the
//! client is the optimised build.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::native;
use crate::paths::Paths;
use crate::processes::{Output, Processes};
use crate::services::{DataFolder, Stores};
use crate::serving::{Product, ServerSettings, without_hold_limits};
use crate::setup::chromium;
use crate::site::{self, BuildMode};
use crate::stop::Stop;

/// Runs a benchmark in a browser. Returns `true` when it succeeded.
pub fn bench(
    paths: &Paths,
    name: &str,
    arguments: &[String],
    folder: &mut DataFolder,
    processes: &mut Processes<'_>,
    stores: Stores,
    stop: &Stop,
) -> Result<bool> {
    let end2end = paths.root.join("end2end");
    let chromium = chromium::with_playwright(&end2end, stop)?;
    native::build(paths, stop)?;
    site::build(paths, BuildMode::Optimised, stop)?;

    let mut product = Product::prepare(paths, folder, stores, stop)?;
    let output = Output::File(folder.log("payments"));
    product.start_simulator(processes, folder, IpAddr::V4(Ipv4Addr::LOCALHOST), output)?;
    let server = ServerSettings::on_free_port(folder, "rowlock", without_hold_limits())?;
    product.start_server(processes, &server, Output::File(folder.log(server.name)))?;

    let mut measure = Command::new("node");
    measure.current_dir(&end2end).arg(format!("measure/{name}.mjs")).args(arguments);
    measure.env("BASE_URL", &server.public_url);
    if let Some(chromium) = chromium {
        measure.env("CHROMIUM", chromium);
    }
    Ok(command::status(&mut measure, stop)?.success())
}

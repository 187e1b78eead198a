//! `cargo xtask run`: builds and starts the whole product from a fresh checkout.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::native;
use crate::paths::Paths;
use crate::processes::{Output, Processes};
use crate::progress::seconds;
use crate::services::{self, DataFolder};
use crate::serving::{self, Product, ServerSettings};
use crate::site::{self, BuildMode};
use crate::stop::Stop;

/// Polling interval for ended programs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Runs until a stop is requested or a program ends unexpectedly.
pub fn run(paths: &Paths, stop: &Stop) -> Result<()> {
    let mut running = RunningProduct::start(paths, BuildMode::Optimised, stop)?;
    while !stop.is_requested() {
        running.processes.check()?;
        std::thread::sleep(POLL_INTERVAL);
    }
    eprintln!();
    running.processes.end_all();
    Ok(())
}

/// The running product of `run` and `dev`.
pub struct RunningProduct<'a> {
    /// Settings shared by the servers.
    pub product: Product<'a>,
    pub server: ServerSettings,
    pub processes: Processes<'a>,
    /// The locked data folder. Fields are dropped in order, so the lock is released last.
    _folder: DataFolder,
}

impl<'a> RunningProduct<'a> {
    /// Builds and starts everything, and prints the addresses.
    pub fn start(paths: &'a Paths, mode: BuildMode, stop: &'a Stop) -> Result<Self> {
        let began = Instant::now();
        let mut folder = DataFolder::open(paths, "run", false)?;
        let mut processes = Processes::new(stop);
        // Stores first: missing packages are reported before minutes of compiling.
        let stores = services::start(&mut folder, &mut processes, stop)?;
        native::build(paths, stop)?;
        site::build(paths, mode, stop)?;
        let mut product = Product::prepare(paths, &mut folder, stores, stop)?;
        let server = server(&folder)?;
        product.start_simulator(&mut processes, &folder, server.listen.ip(), Output::Shown)?;
        product.start_server(&mut processes, &server, Output::Shown)?;
        let manager = product.create_demo_manager(&mut folder, stop)?;
        announce(&folder, &server, &product, manager.as_deref(), began);
        Ok(Self { product, server, processes, _folder: folder })
    }
}

fn server(folder: &DataFolder) -> Result<ServerSettings> {
    let listen = serving::listen_address(folder)?;
    let public_url = std::env::var("PUBLIC_URL").unwrap_or_else(|_| serving::public_address(listen));
    Ok(ServerSettings { name: "rowlock", listen, public_url, settings: Vec::new() })
}

fn announce(
    folder: &DataFolder,
    server: &ServerSettings,
    product: &Product<'_>,
    manager: Option<&str>,
    began: Instant,
) {
    // The staff pages; only with the private database.
    let staff = manager
        .map(|manager| format!("    for staff        {}/staff\n                     {manager}\n", server.public_url));
    eprintln!(
        "\n  Rowlock is open after {}\n\n    the cinemas      {}\n{}    payments         {}\n    mails            {}\n    logs             {}\n\n  Ctrl-C stops everything.\n",
        seconds(began.elapsed()),
        server.public_url,
        staff.unwrap_or_default(),
        product.simulator_url,
        folder.mailbox().display(),
        folder.path.join("logs").display(),
    );
}

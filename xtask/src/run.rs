//! `cargo xtask run`: builds and starts the whole product from a fresh checkout.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::first_run::FirstRunPart;
use crate::native;
use crate::paths::Paths;
use crate::processes::{Output, Processes};
use crate::progress::{self, seconds};
use crate::services::{self, DataFolder};
use crate::serving::{self, Product, ServerSettings};
use crate::setup::packages;
use crate::setup::wasm::Toolchain;
use crate::site::{BuildMode, SiteBuild};
use crate::stop::Stop;

/// Polling interval for a stop request and for ended programs.
pub const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Options of `run`.
#[derive(Args)]
pub struct RunOptions {
    /// Simulated visitors at a time; 0 leaves the demo empty. Without the option 8, and none with DATABASE_URL.
    #[arg(long, value_name = "N")]
    crowd: Option<u16>,
}

/// Simulated visitors at a time, unless an option names their number: enough for four watched shows at full pace.
const CROWD: u16 = 8;

impl RunOptions {
    fn crowd(&self) -> u16 {
        // A database that existed before is not filled with bookings unasked.
        let usual = if std::env::var_os("DATABASE_URL").is_some() { 0 } else { CROWD };
        self.crowd.unwrap_or(usual)
    }
}

/// Runs until a stop is requested or a program ends unexpectedly.
pub fn run(paths: &Paths, options: &RunOptions, stop: &Stop) -> Result<()> {
    let mut running = RunningProduct::start(paths, BuildMode::Quick, Vec::new(), options.crowd(), stop)?;
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
    product: Product<'a>,
    server: ServerSettings,
    pub processes: Processes<'a>,
    /// The locked data folder. Fields are dropped in order, so the lock is released last.
    _folder: DataFolder,
}

impl<'a> RunningProduct<'a> {
    /// Builds and starts everything, and prints the addresses. The server gets these settings in addition to its own.
    /// `crowd` is the number of simulated visitors.
    pub fn start(
        paths: &'a Paths,
        mode: BuildMode,
        mut settings: Vec<(&'static str, String)>,
        crowd: u16,
        stop: &'a Stop,
    ) -> Result<Self> {
        let began = Instant::now();
        progress::begin_first_run();
        let (mut folder, mut processes, stores) = progress::part(FirstRunPart::Packages, || {
            // Missing packages are reported together, before minutes of compiling.
            packages::require_all(&[&|| services::require(stop), &|| Toolchain::require(paths, stop).map(drop)])?;
            let mut folder = DataFolder::open(paths, "run", false)?;
            let mut processes = Processes::new(stop);
            let stores = services::start(&mut folder, &mut processes, stop)?;
            anyhow::Ok((folder, processes, stores))
        })?;
        build_at_once(paths, mode, stop)?;
        let (product, server, manager) = progress::part(FirstRunPart::Rest, || {
            let mut product = Product::prepare(paths, &mut folder, stores, stop)?;
            if crowd > 0 {
                product.add_demo_waiting_room(stop)?;
                settings.push(("DEMO_CROWD", true.to_string()));
            }
            let server = server(&folder, settings)?;
            product.start_simulator(&mut processes, &folder, server.listen.ip(), Output::Shown)?;
            product.start_server(&mut processes, &server, Output::Shown)?;
            if crowd > 0 {
                product.start_crowd(&mut processes, &server, crowd)?;
            }
            let manager = product.create_demo_manager(&mut folder, stop)?;
            anyhow::Ok((product, server, manager))
        })?;
        progress::end_first_run();
        announce(&folder, &server, &product, manager.as_deref(), crowd, began);
        Ok(Self { product, server, processes, _folder: folder })
    }

    /// Replaces the running server by the latest build.
    pub fn restart_server(&mut self) -> Result<()> {
        self.processes.end(self.server.name)?;
        let started = self.product.start_server(&mut self.processes, &self.server, Output::Shown);
        if started.is_err() {
            self.processes.end(self.server.name)?;
        }
        started.context("waiting for the next change")
    }
}

/// Builds client and server at the same time: each has minutes in which one compiler runs alone.
pub fn build_at_once(paths: &Paths, mode: BuildMode, stop: &Stop) -> Result<()> {
    let site = SiteBuild::prepare(paths, mode, stop)?;
    std::thread::scope(|scope| {
        let client = scope.spawn(|| progress::part(FirstRunPart::Client, || site.compile()));
        let server = progress::part(FirstRunPart::Server, || native::build(paths, stop));
        let client = client.join().map_err(|_| anyhow!("the build of the client panicked"))?;
        server.and(client)
    })?;
    progress::part(FirstRunPart::Site, || site.make_site())
}

/// Builds server and client after an edit. The client's files are made while the server is built, so a failed build of
/// the server can leave a newer client beside it.
pub fn build_after_edit(paths: &Paths, mode: BuildMode, stop: &Stop) -> Result<()> {
    // The files must not be made by a program older than its sources.
    native::build_site_builder(paths, stop)?;
    let site = SiteBuild::prepare(paths, mode, stop)?;
    std::thread::scope(|scope| {
        let client = scope.spawn(|| site.compile().and_then(|()| site.make_site()));
        let server = native::build(paths, stop);
        let client = client.join().map_err(|_| anyhow!("the build of the client panicked"))?;
        server.and(client)
    })
}

fn server(folder: &DataFolder, settings: Vec<(&'static str, String)>) -> Result<ServerSettings> {
    let listen = serving::listen_address(folder)?;
    let public_url = std::env::var("PUBLIC_URL").unwrap_or_else(|_| serving::public_address(listen));
    Ok(ServerSettings { name: "rowlock", listen, public_url, settings })
}

fn announce(
    folder: &DataFolder,
    server: &ServerSettings,
    product: &Product<'_>,
    manager: Option<&str>,
    crowd: u16,
    began: Instant,
) {
    // The staff pages; only with the private database.
    let staff = manager
        .map(|manager| format!("    for staff        {}/staff\n                     {manager}\n", server.public_url));
    let crowd =
        (crowd > 0).then(|| format!("    demo crowd       {crowd} simulated visitors; --crowd 0 runs without them\n"));
    eprintln!(
        "\n  Rowlock is open after {}\n\n    the cinemas      {}\n{}{}    payments         {}\n    mails            {}\n    logs             {}\n\n  Ctrl-C stops everything.\n",
        seconds(began.elapsed()),
        server.public_url,
        staff.unwrap_or_default(),
        crowd.unwrap_or_default(),
        product.simulator_url,
        folder.mailbox().display(),
        folder.path.join("logs").display(),
    );
}

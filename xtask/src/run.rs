//! `cargo xtask run`: builds and starts the whole product from a fresh checkout; and `cargo xtask dev`, the same with a
//! rebuild after every change.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use notify::{EventKind, RecursiveMode, Watcher};

use crate::native;
use crate::paths::Paths;
use crate::processes::{Output, Processes};
use crate::progress::{note, seconds};
use crate::services::{self, DataFolder};
use crate::serving::{self, Product, ServerSettings};
use crate::setup::packages;
use crate::setup::wasm::Toolchain;
use crate::site::{self, BuildMode};
use crate::stop::Stop;

/// Folders that `dev` watches.
const WATCHED: [&str; 8] = ["app", "domain", "frontend", "messages", "migrations", "server", "simulator", "style"];
/// Quiet time after the last change: editors write a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(150);
/// Polling interval for a stop request and for ended programs.
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

/// Runs the product, and rebuilds and restarts it after a change. After a failed build the old version keeps running. The
/// client is built fast instead of small.
pub fn dev(paths: &Paths, stop: &Stop) -> Result<()> {
    let mut running = RunningProduct::start(paths, BuildMode::Fast, stop)?;
    let (sender, changes) = channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Some systems report reads as events.
        if event.is_ok_and(|event| !matches!(event.kind, EventKind::Access(_))) {
            // Fails only after the receiver was dropped at the end.
            let _ = sender.send(());
        }
    })?;
    for folder in WATCHED.map(|name| paths.root.join(name)).iter().filter(|folder| folder.exists()) {
        watcher.watch(folder, RecursiveMode::Recursive).with_context(|| format!("watch {}", folder.display()))?;
    }
    let mut built = built_at(paths);
    while !stop.is_requested() {
        if !has_changed(&changes) {
            continue;
        }
        if let Err(error) = rebuild(paths, stop) {
            stop.check()?;
            note(&format!("the old version keeps running: {error:#}"));
            continue;
        }
        let now = built_at(paths);
        if now != built {
            built = now;
            running.processes.end(running.server.name)?;
            if let Err(error) = running.product.start_server(&mut running.processes, &running.server, Output::Shown) {
                stop.check()?;
                running.processes.end(running.server.name)?;
                note(&format!("{error:#}; waiting for the next change"));
                continue;
            }
        }
        note(&format!("up to date: reload {}", running.server.public_url));
    }
    running.processes.end_all();
    Ok(())
}

fn rebuild(paths: &Paths, stop: &Stop) -> Result<()> {
    native::build(paths, stop)?;
    site::build(paths, BuildMode::Fast, stop)
}

fn built_at(paths: &Paths) -> Option<SystemTime> {
    paths.program("rowlock").metadata().and_then(|meta| meta.modified()).ok()
}

/// Waits briefly for a change and for the end of a burst. Returns `true` when there was one.
fn has_changed(changes: &Receiver<()>) -> bool {
    match changes.recv_timeout(POLL_INTERVAL) {
        Ok(()) => {
            while changes.recv_timeout(QUIET_TIME).is_ok() {}
            true
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
    }
}

/// The running product of `run` and `dev`.
struct RunningProduct<'a> {
    /// Settings shared by the servers.
    product: Product<'a>,
    server: ServerSettings,
    processes: Processes<'a>,
    /// The locked data folder. Fields are dropped in order, so the lock is released last.
    _folder: DataFolder,
}

impl<'a> RunningProduct<'a> {
    /// Builds and starts everything, and prints the addresses.
    fn start(paths: &'a Paths, mode: BuildMode, stop: &'a Stop) -> Result<Self> {
        let began = Instant::now();
        // Missing packages are reported together, before minutes of compiling.
        packages::require_all(&[&|| services::require(stop), &|| Toolchain::require(paths, stop).map(drop)])?;
        let mut folder = DataFolder::open(paths, "run", false)?;
        let mut processes = Processes::new(stop);
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

//! `cargo xtask dev`: like run, and rebuilds and restarts after a change.
//!
//! After a failed build the old version keeps running. The client is built fast instead of small.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use notify::{EventKind, RecursiveMode, Watcher};

use crate::native;
use crate::paths::Paths;
use crate::processes::Output;
use crate::progress::note;
use crate::run::RunningProduct;
use crate::site::{self, BuildMode};
use crate::stop::Stop;

const WATCHED: [&str; 8] = ["app", "domain", "frontend", "messages", "migrations", "server", "simulator", "style"];
/// Quiet time after the last change: editors write a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(150);
/// Polling interval for a stop request and for ended programs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

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

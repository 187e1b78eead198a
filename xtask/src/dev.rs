//! `cargo xtask dev`: like run, and what changes is rebuilt and restarted.
//!
//! A build that fails leaves the old one running. The browser half is built quickly instead of small.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use notify::{EventKind, RecursiveMode, Watcher};

use crate::native;
use crate::places::Places;
use crate::processes::Output;
use crate::progress::note;
use crate::run::Open;
use crate::site::{self, Size};
use crate::stop::Stop;

/// What is watched.
const WATCHED: [&str; 8] = ["app", "domain", "frontend", "messages", "migrations", "server", "simulator", "style"];
/// Editors write a file in several steps; we wait until nothing happened for this long.
const SETTLED_AFTER: Duration = Duration::from_millis(150);
/// How often we look for Ctrl-C and for programs that ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs until asked to stop.
pub fn dev(places: &Places, stop: &Stop) -> Result<()> {
    let mut open = Open::start(places, Size::Large, stop)?;
    let (sender, changes) = channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading is an event too on some systems.
        if event.is_ok_and(|event| !matches!(event.kind, EventKind::Access(_))) {
            // Nobody listens any more only while we end.
            let _ = sender.send(());
        }
    })?;
    for folder in WATCHED.map(|name| places.root.join(name)).iter().filter(|folder| folder.exists()) {
        watcher.watch(folder, RecursiveMode::Recursive).with_context(|| format!("watch {}", folder.display()))?;
    }
    let mut built = built_at(places);
    while !stop.asked() {
        if !changed(&changes) {
            continue;
        }
        if let Err(error) = rebuild(places, stop) {
            stop.check()?;
            note(&format!("the old version goes on: {error:#}"));
            continue;
        }
        let now = built_at(places);
        if now != built {
            built = now;
            open.processes.end(open.server.name)?;
            if let Err(error) = open.product.start_server(&mut open.processes, &open.server, Output::Shown) {
                stop.check()?;
                open.processes.end(open.server.name)?;
                note(&format!("{error:#}; waiting for the next change"));
                continue;
            }
        }
        note(&format!("up to date: reload {}", open.server.public_url));
    }
    open.processes.end_all();
    Ok(())
}

fn rebuild(places: &Places, stop: &Stop) -> Result<()> {
    native::build(places, stop)?;
    site::build(places, Size::Large, stop)
}

fn built_at(places: &Places) -> Option<SystemTime> {
    places.program("rowlock").metadata().and_then(|meta| meta.modified()).ok()
}

/// Whether something changed; waits a moment for it, and for the end of a burst.
fn changed(changes: &Receiver<()>) -> bool {
    match changes.recv_timeout(LOOK_EVERY) {
        Ok(()) => {
            while changes.recv_timeout(SETTLED_AFTER).is_ok() {}
            true
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
    }
}

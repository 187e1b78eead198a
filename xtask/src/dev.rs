//! `cargo xtask dev`: runs the product and shows every change in the browser.
//!
//! A style or a script is copied. A message needs nothing: the server reads its file again. For Rust, server and client
//! are built at the same time, and the server restarts. Then the open pages reload ([`reload`]). After a failed build
//! the old server keeps running, possibly with the new client. The client is built fast instead of small.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use notify::{EventKind, RecursiveMode, Watcher};

use crate::paths::Paths;
use crate::progress::{note, seconds};
use crate::reload;
use crate::run::{POLL_INTERVAL, RunningProduct, build_after_edit};
use crate::site::{self, BuildMode};
use crate::stop::Stop;

/// Watched folders.
const WATCHED: [&str; 9] =
    ["app", "domain", "frontend", "language", "messages", "migrations", "server", "simulator", "style"];
/// Folders whose files are only copied.
const COPIED: [&str; 2] = ["frontend/static", "style"];
const MESSAGES: &str = "messages";
/// Quiet time after the last change: editors write a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(150);

/// Runs until a stop is requested.
pub fn dev(paths: &Paths, stop: &Stop) -> Result<()> {
    let messages = paths.root.join(MESSAGES).to_string_lossy().into_owned();
    let mut running = RunningProduct::start(paths, BuildMode::Fast, vec![("MESSAGES_DIR", messages)], 0, stop)?;
    let site = paths.site();
    reload::reload_pages(&site)?;
    let (sender, events) = channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Some systems report reads as events.
        if let Ok(event) = event
            && !matches!(event.kind, EventKind::Access(_))
        {
            // Fails only after the receiver was dropped at the end.
            let _ = sender.send(event.paths);
        }
    })?;
    for folder in WATCHED.map(|name| paths.root.join(name)).iter().filter(|folder| folder.exists()) {
        watcher.watch(folder, RecursiveMode::Recursive).with_context(|| format!("watch {}", folder.display()))?;
    }
    let mut built = server_build_time(paths);
    while !stop.is_requested() {
        let changes = next_changes(&paths.root, &events);
        if changes.is_empty() {
            continue;
        }
        let began = Instant::now();
        let applied = apply(&changes, &mut running, &mut built, paths, stop);
        match applied.and_then(|()| reload::reload_pages(&site)) {
            Ok(()) => note(&format!("up to date after {}", seconds(began.elapsed()))),
            Err(error) => {
                stop.check()?;
                note(&format!("{error:#}"));
            }
        }
    }
    running.processes.end_all();
    Ok(())
}

/// Makes changes visible to pages that are loaded from now on.
fn apply(
    changes: &BTreeSet<SourceChange>,
    running: &mut RunningProduct<'_>,
    built: &mut Option<SystemTime>,
    paths: &Paths,
    stop: &Stop,
) -> Result<()> {
    if changes.contains(&SourceChange::Rust) {
        build_after_edit(paths, BuildMode::Fast, stop).context("the old server keeps running")?;
        let now = server_build_time(paths);
        if now != *built {
            *built = now;
            running.restart_server()?;
        }
    } else if changes.contains(&SourceChange::Copied) {
        site::build_files(paths, BuildMode::Fast, stop)?;
    }
    if changes.contains(&SourceChange::Message) {
        check_messages(&paths.root.join(MESSAGES)).context("the old messages stay")?;
    }
    Ok(())
}

fn server_build_time(paths: &Paths) -> Option<SystemTime> {
    paths.program("rowlock").metadata().and_then(|meta| meta.modified()).ok()
}

/// The work that a changed file causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SourceChange {
    /// A copy in the site.
    Copied,
    /// A check only: the server reads the file itself.
    Message,
    /// A build.
    Rust,
}

impl SourceChange {
    /// The change of a file, by its path in the checkout. `None` for files that only an editor uses.
    fn of(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_string_lossy();
        if name.starts_with('.') || name.ends_with('~') {
            None
        } else if file.starts_with(MESSAGES) {
            Some(Self::Message)
        } else if COPIED.iter().any(|folder| file.starts_with(folder)) {
            Some(Self::Copied)
        } else {
            Some(Self::Rust)
        }
    }
}

/// Waits briefly for a change, and then for the end of its burst.
fn next_changes(root: &Path, events: &Receiver<Vec<PathBuf>>) -> BTreeSet<SourceChange> {
    let (mut changes, mut timeout) = (BTreeSet::new(), POLL_INTERVAL);
    while let Ok(files) = events.recv_timeout(timeout) {
        changes.extend(files.iter().filter_map(|file| SourceChange::of(file.strip_prefix(root).ok()?)));
        timeout = QUIET_TIME;
    }
    changes
}

/// Fails if a file of messages cannot be read; the server then uses its last readable content.
fn check_messages(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.path();
        if file.extension().is_some_and(|ending| ending == "json") {
            let text = std::fs::read_to_string(&file)?;
            serde_json::from_str::<BTreeMap<String, String>>(&text).with_context(|| file.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_classified_by_its_path() {
        for (file, change) in [
            ("style/00-tokens.css", Some(SourceChange::Copied)),
            ("frontend/static/boot.js", Some(SourceChange::Copied)),
            ("messages/en.json", Some(SourceChange::Message)),
            ("app/src/shell.rs", Some(SourceChange::Rust)),
            ("frontend/src/lib.rs", Some(SourceChange::Rust)),
            ("server/seats/src/seat_locks/lua/lock.lua", Some(SourceChange::Rust)),
            ("messages/.en.json.swp", None),
            ("style/00-tokens.css~", None),
            ("", None),
        ] {
            assert_eq!(SourceChange::of(Path::new(file)), change, "{file}");
        }
    }

    #[test]
    fn a_burst_of_events_is_one_set_of_changes() {
        let (sender, events) = channel();
        for file in ["/rowlock/style/.a.swp", "/rowlock/style/a.css", "/rowlock/app/src/lib.rs", "/elsewhere/b.css"] {
            sender.send(vec![PathBuf::from(file)]).expect("sent");
        }
        let changes = next_changes(Path::new("/rowlock"), &events);
        assert_eq!(changes, BTreeSet::from([SourceChange::Copied, SourceChange::Rust]));
        assert!(next_changes(Path::new("/rowlock"), &events).is_empty());
    }

    #[test]
    fn the_messages_of_the_checkout_are_readable() {
        let root = Paths::find().expect("the checkout").root;
        check_messages(&root.join(MESSAGES)).expect("readable");
        check_messages(&root.join("demo")).expect_err("not texts by key");
    }
}

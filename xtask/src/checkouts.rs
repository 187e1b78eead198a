//! A target folder that several checkouts share: CI's clones, and worktrees.
//!
//! Cargo tells by time whether a file changed since it was compiled, and names what it compiled alike in all checkouts.
//! A file of this checkout that is older than what another one had compiled would pass for compiled, and a page would be
//! given a module of other sources than its server's.

use std::collections::BTreeSet;
use std::fs::File;

use anyhow::{Context, Result};

use crate::fingerprint;
use crate::places::Places;

/// All that cargo compiles, and the files that it compiles in.
const SOURCES: [&str; 14] = [
    "Cargo.lock",
    "Cargo.toml",
    "app",
    "bench",
    "demo",
    "deploy",
    "docs",
    "domain",
    "frontend",
    "messages",
    "migrations",
    "server",
    "simulator",
    "xtask",
];

/// Makes the sources of this checkout new to cargo if another checkout had the target folder last.
pub fn take_over(places: &Places) -> Result<()> {
    // Nobody else's.
    if places.target.starts_with(&places.root) {
        return Ok(());
    }
    let (last, own) = (places.target.join(".checkout"), places.root.to_string_lossy());
    if std::fs::read_to_string(&last).is_ok_and(|last| last == own) {
        return Ok(());
    }
    let mut files = BTreeSet::new();
    for source in SOURCES {
        fingerprint::collect(&places.root.join(source), &mut files)?;
    }
    // Nobody has it until all are touched; written now, it says what time that is.
    std::fs::create_dir_all(&places.target)?;
    std::fs::write(&last, "").with_context(|| last.display().to_string())?;
    let now = last.metadata()?.modified()?;
    for file in files {
        let opened = File::options().append(true).open(&file);
        opened.and_then(|opened| opened.set_modified(now)).with_context(|| file.display().to_string())?;
    }
    std::fs::write(&last, own.as_bytes()).with_context(|| last.display().to_string())
}

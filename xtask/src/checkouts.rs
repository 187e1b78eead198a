//! A target folder shared by several checkouts, such as CI clones and worktrees.
//!
//! Cargo compares modification times to find changed files, and uses the same output names in all checkouts. A source
//! file of this checkout that is older than the output of another checkout would count as compiled. Then a page could
//! get a client module of other sources than its server's.

use std::collections::BTreeSet;
use std::fs::File;

use anyhow::{Context, Result};

use crate::fingerprint;
use crate::paths::Paths;

/// Everything cargo compiles or embeds.
const SOURCES: [&str; 16] = [
    "Cargo.lock",
    "Cargo.toml",
    "app",
    "bench",
    "demo",
    "deploy",
    "docs",
    "domain",
    "frontend",
    "language",
    "messages",
    "migrations",
    "server",
    "simulator",
    "site-builder",
    "xtask",
];

/// Touches all sources of this checkout if another checkout used the target folder last.
pub fn touch_sources(paths: &Paths) -> Result<()> {
    // A target folder inside the checkout is not shared.
    if paths.target.starts_with(&paths.root) {
        return Ok(());
    }
    let (last, own) = (paths.target.join(".checkout"), paths.root.to_string_lossy());
    if std::fs::read_to_string(&last).is_ok_and(|last| last == own) {
        return Ok(());
    }
    let mut files = BTreeSet::new();
    for source in SOURCES {
        fingerprint::collect(&paths.root.join(source), &mut files)?;
    }
    // An empty file while the sources are touched: an interrupted run starts again. Its time is the time to set.
    std::fs::create_dir_all(&paths.target)?;
    std::fs::write(&last, "").with_context(|| last.display().to_string())?;
    let now = last.metadata()?.modified()?;
    for file in files {
        let opened = File::options().append(true).open(&file);
        opened.and_then(|opened| opened.set_modified(now)).with_context(|| file.display().to_string())?;
    }
    std::fs::write(&last, own.as_bytes()).with_context(|| last.display().to_string())
}

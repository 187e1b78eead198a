//! Node and npm: for wasm-opt, for Playwright and for the linter of the API's document.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::{self, Need};
use crate::command;
use crate::stop::Stop;

/// The oldest Node that Playwright runs on.
const OLDEST: u32 = 18;

const NEED: Need = Need {
    what: "Node.js 18 or newer, with npm",
    debian: &["nodejs", "npm"],
    dnf: "nodejs npm",
    pacman: "nodejs npm",
    brew: "node",
    otherwise: "`cargo xtask test --skip-browser` does without.",
};

/// npm, if a Node that is new enough is here already.
pub fn npm() -> Option<PathBuf> {
    let node = command::find(&["node"], &[])?;
    let said = command::output(Command::new(node).arg("--version")).ok()?;
    let major: u32 = said.trim().trim_start_matches('v').split('.').next()?.parse().ok()?;
    if major < OLDEST { None } else { command::find(&["npm"], &[]) }
}

/// npm, installed with Node if need be.
pub fn require(stop: &Stop) -> Result<PathBuf> {
    if let Some(npm) = npm() {
        return Ok(npm);
    }
    packages::install(&NEED, stop)?;
    match npm() {
        Some(npm) => Ok(npm),
        None => bail!("{} is needed; the one of this system is older", NEED.what),
    }
}

/// `npm ci` in a folder with a lock file, when what it names is not installed yet.
pub fn install_locked(npm: &Path, folder: &Path, stop: &Stop) -> Result<bool> {
    let lock = std::fs::read(folder.join("package-lock.json")).context("package-lock.json belongs to the checkout")?;
    let stamp = folder.join("node_modules/.installed-lock");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(false);
    }
    let mut command = Command::new(npm);
    command.current_dir(folder).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    // No telemetry of packages that report their installation.
    command.env("SCARF_ANALYTICS", "false").env("DO_NOT_TRACK", "1");
    command::run_silently(command.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]), stop)?;
    std::fs::write(&stamp, lock)?;
    Ok(true)
}

//! Node and npm, for wasm-opt, Playwright and the linter of the OpenAPI document.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::{self, RequiredPackage};
use crate::command;
use crate::stop::Stop;

/// Minimum version of Node for Playwright.
const MIN_VERSION: u32 = 18;

const NEED: RequiredPackage = RequiredPackage {
    what: "Node.js 18 or newer, with npm",
    debian: &["nodejs", "npm"],
    dnf: "nodejs npm",
    pacman: "nodejs npm",
    brew: "node",
    otherwise: "`cargo xtask test --skip-browser` does not need it.",
};

/// Finds npm if Node is installed and new enough.
pub fn npm() -> Option<PathBuf> {
    let node = command::find(&["node"], &[])?;
    let text = command::output(Command::new(node).arg("--version")).ok()?;
    let major: u32 = text.trim().trim_start_matches('v').split('.').next()?.parse().ok()?;
    if major < MIN_VERSION { None } else { command::find(&["npm"], &[]) }
}

/// Finds npm, or installs it with Node.
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

/// Runs `npm ci` in a folder unless its lock file is already installed. Returns `true` when it ran.
pub fn install_locked(npm: &Path, folder: &Path, stop: &Stop) -> Result<bool> {
    let lock = std::fs::read(folder.join("package-lock.json")).context("package-lock.json is missing")?;
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

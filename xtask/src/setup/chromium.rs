//! A Chromium for the browser tests: an installed one, Debian's package, or Playwright's download.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::node;
use super::packages::{self, RequiredPackage};
use crate::command;
use crate::paths::is_root;
use crate::progress::ProgressStep;
use crate::stop::Stop;

const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

const NEED: RequiredPackage = RequiredPackage {
    what: "Chromium",
    debian: &["chromium"],
    dnf: "chromium",
    pacman: "chromium",
    brew: "--cask chromium",
    otherwise: "Or set CHROMIUM to a program; or `cargo xtask test --skip-browser`.",
};

/// Installs the locked Playwright of `end2end`. Returns the Chromium program; `None` means Playwright's own download.
pub fn with_playwright(end2end: &Path, stop: &Stop) -> Result<Option<PathBuf>> {
    let npm = node::require(stop)?;
    let step = ProgressStep::quiet("install Playwright");
    node::install_locked(&npm, end2end, stop)?;
    step.done();
    require(end2end, stop)
}

fn require(end2end: &Path, stop: &Stop) -> Result<Option<PathBuf>> {
    if let Some(program) = std::env::var_os("CHROMIUM") {
        return Ok(Some(PathBuf::from(program)));
    }
    if let Some(found) = find() {
        return Ok(Some(found));
    }
    // Ubuntu's package is a snap, which a container cannot run; only Debian's is installed.
    if is_real_debian() && is_root() {
        packages::install(&NEED, stop)?;
        return find().map(Some).context("chromium is installed but not found");
    }
    let step = ProgressStep::start("download Playwright's Chromium");
    let mut download = Command::new("npx");
    download.current_dir(end2end).args(["--no-install", "playwright", "install", "chromium"]);
    if command::run_silently(&mut download, stop).is_err() {
        packages::install(&NEED, stop)?;
    }
    step.done();
    Ok(None)
}

fn find() -> Option<PathBuf> {
    let apps = [
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ];
    command::find(&NAMES, &[]).or_else(|| apps.map(PathBuf::from).into_iter().find(|app| command::is_program(app)))
}

fn is_real_debian() -> bool {
    std::fs::read_to_string("/etc/os-release").is_ok_and(|text| text.lines().any(|line| line == "ID=debian"))
}

//! System packages: installed as root on Debian, otherwise reported with the install command.

use std::process::Command;
use std::sync::Once;

use anyhow::{Result, bail};

use crate::command;
use crate::paths::is_root;
use crate::progress::ProgressStep;
use crate::stop::Stop;

/// A required program and its package names.
pub struct RequiredPackage {
    /// Name in messages: "Postgres 14 or newer".
    pub what: &'static str,
    /// Packages of Debian and Ubuntu.
    pub debian: &'static [&'static str],
    /// Package of Fedora.
    pub dnf: &'static str,
    /// Package of Arch.
    pub pacman: &'static str,
    /// Package of Homebrew.
    pub brew: &'static str,
    /// An alternative, printed after the command; may be empty.
    pub otherwise: &'static str,
}

/// Returns `true` when apt-get is available.
pub fn is_debian() -> bool {
    command::find(&["apt-get"], &[]).is_some()
}

/// Installs the packages as root on Debian; otherwise fails with the install command.
pub fn install(package: &RequiredPackage, stop: &Stop) -> Result<()> {
    if is_debian() && is_root() && !package.debian.is_empty() {
        let step = ProgressStep::start(format!("install {}", package.debian.join(" ")));
        refresh_lists(stop)?;
        command::run_silently(apt().args(["install", "-y", "--no-install-recommends"]).args(package.debian), stop)?;
        step.done();
        return Ok(());
    }
    let command = if is_debian() && !package.debian.is_empty() {
        format!("sudo apt-get install {}", package.debian.join(" "))
    } else if command::find(&["brew"], &[]).is_some() || cfg!(target_os = "macos") {
        format!("brew install {}", package.brew)
    } else if command::find(&["dnf"], &[]).is_some() {
        format!("sudo dnf install {}", package.dnf)
    } else if command::find(&["pacman"], &[]).is_some() {
        format!("sudo pacman -S {}", package.pacman)
    } else {
        format!("(with your system's packages) {}", package.brew)
    };
    bail!("{} is missing. Install it with\n\n    {command}\n\nand start again. {}", package.what, package.otherwise)
}

/// Updates the package lists once per process: a new container has none.
fn refresh_lists(stop: &Stop) -> Result<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = command::run_silently(apt().arg("update"), stop));
    result
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

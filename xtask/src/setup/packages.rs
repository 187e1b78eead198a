//! System packages: installed as root on Debian, otherwise reported with the install command.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::paths::is_root;
use crate::progress::ProgressStep;
use crate::stop::Stop;

pub struct RequiredPackage {
    /// Name in messages: "Postgres 14 or newer".
    pub what: &'static str,
    pub debian: &'static [&'static str],
    pub dnf: &'static str,
    pub pacman: &'static str,
    pub brew: &'static str,
    /// An alternative, printed after the command; may be empty.
    pub otherwise: &'static str,
}

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

/// Returns the program that an environment variable names, or one in the usual folders, installed if needed.
pub fn require_program(variable: &str, name: &str, package: &RequiredPackage, stop: &Stop) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(variable) {
        return Ok(PathBuf::from(program));
    }
    let folders = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"].map(PathBuf::from);
    if let Some(found) = command::find(&[name], &folders) {
        return Ok(found);
    }
    install(package, stop)?;
    command::find(&[name], &folders).with_context(|| format!("{name} is installed but not found"))
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

//! Packages of the system: installed where we may, named with the command to type where we may not.

use std::process::Command;
use std::sync::Once;

use anyhow::{Result, bail};

use crate::command;
use crate::places::is_root;
use crate::progress::Step;
use crate::stop::Stop;

/// Something a machine may lack, and what each system calls it.
pub struct Need {
    /// For people: "Postgres 14 or newer".
    pub what: &'static str,
    /// Debian's and Ubuntu's packages.
    pub debian: &'static [&'static str],
    /// Fedora's.
    pub dnf: &'static str,
    /// Arch's.
    pub pacman: &'static str,
    /// Homebrew's.
    pub brew: &'static str,
    /// Another way out, said along with the command; may be empty.
    pub otherwise: &'static str,
}

/// Whether packages are Debian's: apt-get is there.
pub fn is_debian() -> bool {
    command::find(&["apt-get"], &[]).is_some()
}

/// Installs it on a Debian where we are root; everywhere else the error names the command.
pub fn install(need: &Need, stop: &Stop) -> Result<()> {
    if is_debian() && is_root() && !need.debian.is_empty() {
        let step = Step::start(format!("install {}", need.debian.join(" ")));
        refresh_lists(stop)?;
        command::run_silently(apt().args(["install", "-y", "--no-install-recommends"]).args(need.debian), stop)?;
        step.done();
        return Ok(());
    }
    let command = if is_debian() && !need.debian.is_empty() {
        format!("sudo apt-get install {}", need.debian.join(" "))
    } else if command::find(&["brew"], &[]).is_some() || cfg!(target_os = "macos") {
        format!("brew install {}", need.brew)
    } else if command::find(&["dnf"], &[]).is_some() {
        format!("sudo dnf install {}", need.dnf)
    } else if command::find(&["pacman"], &[]).is_some() {
        format!("sudo pacman -S {}", need.pacman)
    } else {
        format!("(with your system's packages) {}", need.brew)
    };
    bail!("{} is missing. Install it with\n\n    {command}\n\nand start again. {}", need.what, need.otherwise)
}

/// A fresh container has no package lists at all; once per start is enough.
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

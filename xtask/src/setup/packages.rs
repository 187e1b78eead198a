//! System packages: installed as root on Debian and Ubuntu, otherwise reported with the install command.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

use anyhow::{Context, Result};

use crate::command;
use crate::paths::is_root;
use crate::progress::ProgressStep;
use crate::stop::Stop;

#[derive(Debug)]
pub struct RequiredPackage {
    /// Name in messages: "Postgres 14 or newer".
    pub what: &'static str,
    pub debian: &'static [&'static str],
    pub dnf: &'static str,
    pub pacman: &'static str,
    pub brew: &'static str,
    /// An alternative, printed beside the name.
    pub otherwise: &'static str,
}

/// The packages that a user has to install.
#[derive(Debug)]
struct MissingPackages(Vec<&'static RequiredPackage>);

impl fmt::Display for MissingPackages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "this is missing here:\n")?;
        for package in &self.0 {
            writeln!(formatter, "    {}. {}", package.what, package.otherwise)?;
        }
        write!(formatter, "\nInstall it with\n\n    {}\n\nand start again.", install_command(&self.0))
    }
}

impl std::error::Error for MissingPackages {}

fn install_command(packages: &[&RequiredPackage]) -> String {
    let names =
        |of: fn(&RequiredPackage) -> String| packages.iter().map(|package| of(package)).collect::<Vec<_>>().join(" ");
    let is_found = |program: &str| command::find(&[program], &[]).is_some();
    // A minimal Debian has no sudo.
    let as_root =
        |command: String| if is_found("sudo") { format!("sudo {command}") } else { format!("su -c '{command}'") };
    if has_apt() {
        as_root(format!("apt-get install {}", names(|package| package.debian.join(" "))))
    } else if is_found("brew") || cfg!(target_os = "macos") {
        format!("brew install {}", names(|package| package.brew.to_owned()))
    } else if is_found("dnf") {
        as_root(format!("dnf install {}", names(|package| package.dnf.to_owned())))
    } else if is_found("pacman") {
        as_root(format!("pacman -S {}", names(|package| package.pacman.to_owned())))
    } else {
        format!("(with your system's packages) {}", names(|package| package.brew.to_owned()))
    }
}

/// Returns `true` on Debian and the systems derived from it.
pub fn has_apt() -> bool {
    command::find(&["apt-get"], &[]).is_some()
}

/// Returns `true` on Debian itself. Ubuntu has no Rust for browsers, and its Chromium is a snap.
pub fn is_debian() -> bool {
    std::fs::read_to_string("/etc/os-release").is_ok_and(|text| text.lines().any(|line| line == "ID=debian"))
}

/// Runs all checks. Packages that several of them miss are reported together, with one command.
pub fn require_all(checks: &[&dyn Fn() -> Result<()>]) -> Result<()> {
    let mut missing = Vec::new();
    for check in checks {
        if let Err(error) = check() {
            missing.extend(error.downcast::<MissingPackages>()?.0);
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(MissingPackages(missing).into()) }
}

/// Installs the packages as root on Debian and Ubuntu; otherwise fails with the install command.
pub fn install(package: &'static RequiredPackage, stop: &Stop) -> Result<()> {
    if !has_apt() || !is_root() {
        return Err(MissingPackages(vec![package]).into());
    }
    let step = ProgressStep::start(format!("install {}", package.debian.join(" ")));
    refresh_lists(stop)?;
    command::run_silently(apt().args(["install", "-y", "--no-install-recommends"]).args(package.debian), stop)?;
    step.done();
    Ok(())
}

/// Returns the program that an environment variable names, or one in the usual folders, installed if needed.
pub fn require_program(variable: &str, name: &str, package: &'static RequiredPackage, stop: &Stop) -> Result<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const BREAD: RequiredPackage = RequiredPackage {
        what: "Bread 2 or newer",
        debian: &["bread", "butter"],
        dnf: "bread",
        pacman: "bread",
        brew: "bread",
        otherwise: "Or set BREAD to one.",
    };
    const TEA: RequiredPackage =
        RequiredPackage { what: "Tea", debian: &["tea"], dnf: "tea", pacman: "tea", brew: "tea", ..BREAD };

    fn fails_without(packages: Vec<&'static RequiredPackage>) -> Result<()> {
        Err(MissingPackages(packages).into())
    }

    #[test]
    fn missing_packages_of_all_checks_are_reported_with_one_command() {
        let nested = || require_all(&[&|| fails_without(vec![&BREAD]), &|| Ok(())]);
        let refused = require_all(&[&nested, &|| Ok(()), &|| fails_without(vec![&TEA])]).expect_err("two are missing");
        let text = refused.to_string();
        for part in ["Bread 2 or newer. Or set BREAD to one.", "Tea. ", &install_command(&[&BREAD, &TEA])] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(require_all(&[&|| Ok(())]).is_ok());
    }

    #[test]
    fn another_error_ends_the_checks() {
        let refused =
            require_all(&[&|| fails_without(vec![&BREAD]), &|| anyhow::bail!("no disk"), &|| panic!("not called")]);
        assert_eq!(refused.expect_err("the disk is missing").to_string(), "no disk");
    }
}

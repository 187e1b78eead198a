//! Operators' programs for the tests of deploy/: promtool and HAProxy.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::packages::{self, RequiredPackage};
use crate::command;
use crate::stop::Stop;

const PROMTOOL: RequiredPackage = RequiredPackage {
    what: "promtool, which comes with Prometheus",
    debian: &["prometheus"],
    dnf: "golang-github-prometheus",
    pacman: "prometheus",
    brew: "prometheus",
    otherwise: "Or set PROMTOOL to a program.",
};

const HAPROXY: RequiredPackage = RequiredPackage {
    what: "HAProxy 2.6 or newer",
    debian: &["haproxy"],
    dnf: "haproxy",
    pacman: "haproxy",
    brew: "haproxy",
    otherwise: "Or set HAPROXY to a program.",
};

/// Finds or installs promtool, which tests the alerts.
pub fn promtool(stop: &Stop) -> Result<PathBuf> {
    require("PROMTOOL", "promtool", &PROMTOOL, stop)
}

/// Finds or installs HAProxy, the proxy of the rolling-update tests.
pub fn haproxy(stop: &Stop) -> Result<PathBuf> {
    require("HAPROXY", "haproxy", &HAPROXY, stop)
}

pub(super) fn require(variable: &str, name: &str, package: &RequiredPackage, stop: &Stop) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(variable) {
        return Ok(PathBuf::from(program));
    }
    let folders = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"].map(PathBuf::from);
    if let Some(found) = command::find(&[name], &folders) {
        return Ok(found);
    }
    packages::install(package, stop)?;
    command::find(&[name], &folders).with_context(|| format!("{name} is installed but not found"))
}

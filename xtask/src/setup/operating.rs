//! Programs of operators, on which shipped files are tested: Prometheus' tool and a proxy.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::packages::{self, Need};
use crate::command;
use crate::stop::Stop;

const PROMTOOL: Need = Need {
    what: "promtool, which comes with Prometheus",
    debian: &["prometheus"],
    dnf: "golang-github-prometheus",
    pacman: "prometheus",
    brew: "prometheus",
    otherwise: "Or set PROMTOOL to the program of one.",
};

const HAPROXY: Need = Need {
    what: "HAProxy 2.6 or newer",
    debian: &["haproxy"],
    dnf: "haproxy",
    pacman: "haproxy",
    brew: "haproxy",
    otherwise: "Or set HAPROXY to the program of one.",
};

/// Prometheus' own tool, which tries the alerts.
pub fn promtool(stop: &Stop) -> Result<PathBuf> {
    require("PROMTOOL", "promtool", &PROMTOOL, stop)
}

/// The proxy behind which replicas are exchanged.
pub fn haproxy(stop: &Stop) -> Result<PathBuf> {
    require("HAPROXY", "haproxy", &HAPROXY, stop)
}

pub(super) fn require(variable: &str, name: &str, need: &Need, stop: &Stop) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Ok(PathBuf::from(named));
    }
    let folders = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"].map(PathBuf::from);
    if let Some(found) = command::find(&[name], &folders) {
        return Ok(found);
    }
    packages::install(need, stop)?;
    command::find(&[name], &folders).with_context(|| format!("{name} is installed but not found"))
}

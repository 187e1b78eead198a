//! Prometheus' own tool, which tries the alerts that are shipped.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::packages::{self, Need};
use crate::command;
use crate::stop::Stop;

const NEED: Need = Need {
    what: "promtool, which comes with Prometheus",
    debian: &["prometheus"],
    dnf: "golang-github-prometheus",
    pacman: "prometheus",
    brew: "prometheus",
    otherwise: "Or set PROMTOOL to the program of one.",
};

/// The program to use.
pub fn require(stop: &Stop) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("PROMTOOL") {
        return Ok(PathBuf::from(named));
    }
    let folders = ["/opt/homebrew/bin", "/usr/local/bin"].map(PathBuf::from);
    if let Some(found) = command::find(&["promtool"], &folders) {
        return Ok(found);
    }
    packages::install(&NEED, stop)?;
    command::find(&["promtool"], &folders).context("promtool is installed but not found")
}

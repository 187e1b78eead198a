//! The native half: our programs, by the cargo that started us.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::places::Places;
use crate::progress::Step;
use crate::stop::Stop;

/// Packages with tests or programs that run on this machine. `frontend` is not among them: cargo would
/// join its features to the server's, and `app` cannot be hydrating and rendering at once.
pub const PACKAGES: [&str; 6] = ["domain", "app", "server", "simulator", "bench", "xtask"];

/// A cargo command in the checkout.
pub fn cargo(places: &Places, verb: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&places.root).arg(verb);
    // What the cargo that started us says of *this* package. Build scripts that look at it (ring's does)
    // would be run again, with all that depends on them, whenever someone calls cargo by hand in between.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    command
}

/// The same, for all of [`PACKAGES`].
pub fn cargo_all(places: &Places, verb: &str) -> Command {
    let mut command = cargo(places, verb);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    command
}

/// Builds the server and the payment simulator.
pub fn build(places: &Places, stop: &Stop) -> Result<()> {
    let step = Step::start("build the server");
    command::run(cargo(places, "build").args(["--package", "server", "--package", "simulator"]), stop)?;
    step.done();
    Ok(())
}

/// A built program of ours, started in the checkout: data paths are relative to it.
pub fn program(places: &Places, name: &str) -> Command {
    started_in_checkout(places, &places.program(name))
}

/// The same, optimised.
pub fn release_program(places: &Places, name: &str) -> Command {
    started_in_checkout(places, &places.release_program(name))
}

fn started_in_checkout(places: &Places, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(&places.root);
    command
}

//! The native crates, built with the cargo that started this process.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::cargo_progress;
use crate::command;
use crate::paths::Paths;
use crate::progress::ProgressStep;
use crate::stop::Stop;

/// Creates a cargo command in the checkout.
pub fn cargo(paths: &Paths, verb: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&paths.root).arg(verb);
    // These variables describe *this* package. Build scripts that read them (ring's does) would run again,
    // with all dependants, after each call of cargo by hand.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    command
}

/// Creates a cargo command for the packages of the product and its tests. Cargo unifies the features of dependencies over
/// these packages, so commands with the same ones share what is compiled. `frontend` is excluded: `app` cannot have the
/// features for hydration and rendering at once. `xtask` is excluded: it is compiled already, and it would
/// add features to the server's dependencies.
pub fn cargo_all(paths: &Paths, verb: &str) -> Command {
    let mut command = cargo(paths, verb);
    command.args(["--workspace", "--exclude", "frontend", "--exclude", "xtask"]);
    command
}

/// Builds the programs that `run` needs.
pub fn build(paths: &Paths, stop: &Stop) -> Result<()> {
    let mut build = cargo_all(paths, "build");
    build.args(["--bin", "rowlock", "--bin", "payment-simulator", "--bin", "site-builder"]);
    build_programs("build the server", &mut build, stop)
}

/// Builds the program that makes the files of the site.
pub fn build_site_builder(paths: &Paths, stop: &Stop) -> Result<()> {
    build_programs("build the site builder", cargo_all(paths, "build").args(["--bin", "site-builder"]), stop)
}

fn build_programs(what: &str, command: &mut Command, stop: &Stop) -> Result<()> {
    let step = ProgressStep::start(what);
    cargo_progress::run(command, &step, stop)?;
    step.done();
    Ok(())
}

/// Runs the test that compares the table of endpoints in `docs/api.md`, and has it write instead.
pub fn write_api_table(paths: &Paths, stop: &Stop) -> Result<()> {
    let mut test = cargo(paths, "test");
    test.args(["--package", "rowlock", "--lib", "endpoint_table"]).env("WRITE_API_TABLE", "1");
    command::run(&mut test, stop)
}

/// Creates a command of a built program, started in the checkout: data paths are relative to it.
pub fn program(paths: &Paths, name: &str) -> Command {
    command_in_checkout(paths, &paths.program(name))
}

/// Creates a command of any program, started in the checkout.
pub fn command_in_checkout(paths: &Paths, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(&paths.root);
    command
}

//! `cargo xtask ci`: format, types, lints, a short run of the benchmarks and all tests, the fast checks first.

use std::process::Command;

use anyhow::Result;

use crate::bench::{self, BenchOptions};
use crate::cargo_progress;
use crate::native;
use crate::paths::Paths;
use crate::progress::ProgressStep;
use crate::setup::{self, wasm::Toolchain};
use crate::stop::Stop;
use crate::test;

/// Runs all checks. Returns `true` when all passed. The tests run even after a failed lint or benchmark.
pub fn ci(paths: &Paths, stop: &Stop) -> Result<bool> {
    let mut all_passed = true;
    all_passed &= passes("format", native::cargo(paths, "fmt").args(["--all", "--check"]), stop)?;
    let end2end = paths.root.join("end2end");
    setup::install_playwright(&end2end, stop)?;
    let mut types = Command::new("npm");
    all_passed &= passes("types, browser tests", types.current_dir(&end2end).args(["run", "--silent", "check"]), stop)?;
    let mut native = native::cargo_all(paths, "clippy");
    all_passed &= passes("lints, native crates", native.args(["--all-targets", "--", "-D", "warnings"]), stop)?;
    let mut xtask = native::cargo(paths, "clippy");
    xtask.args(["--package", "xtask", "--all-targets", "--", "-D", "warnings"]);
    all_passed &= passes("lints, xtask", &mut xtask, stop)?;
    let toolchain = Toolchain::require(paths, stop)?;
    let mut browser = toolchain.clippy(paths, stop)?;
    // The profile of the real build, so that lints and build share compiled dependencies.
    let name = format!("lints, client ({})", toolchain.name());
    all_passed &= passes(&name, browser.args(["--profile", "wasm", "--", "-D", "warnings"]), stop)?;
    // The server is built here as the tests need it. Their line of counts remains the last one.
    all_passed &= benchmarks_work(paths, stop)?;
    // What is delivered is tested.
    let options = test::TestOptions { delivery: true, ..test::TestOptions::default() };
    let tests = test::test(paths, &options, stop)?;
    if !all_passed {
        eprintln!("error: format, types, lints or benchmarks failed, see above");
    }
    Ok(all_passed && tests)
}

/// Runs the benchmarks for a moment: they must still work with the server, without violations and errors.
fn benchmarks_work(paths: &Paths, stop: &Stop) -> Result<bool> {
    bench::bench(paths, &BenchOptions::all_quick(), stop).or_else(|error| {
        stop.check()?;
        eprintln!("\nerror: the benchmarks did not finish: {error:#}");
        Ok(false)
    })
}

fn passes(name: &str, command: &mut Command, stop: &Stop) -> Result<bool> {
    let step = ProgressStep::start(name);
    let all_passed = cargo_progress::status(command, &step, stop)?.success();
    step.done_with(if all_passed { "" } else { "FAILED" });
    Ok(all_passed)
}

//! `cargo xtask ci`: what a change must pass. Quick complaints come first.

use anyhow::Result;

use crate::command;
use crate::native;
use crate::places::Places;
use crate::progress::Step;
use crate::setup::wasm::Toolchain;
use crate::stop::Stop;
use crate::test;

/// All of it; whether everything passed. A failed lint does not hide the tests' result.
pub fn ci(places: &Places, stop: &Stop) -> Result<bool> {
    let mut good = true;
    good &= passes("format", native::cargo(places, "fmt").args(["--all", "--check"]), stop)?;
    let mut native = native::cargo_all(places, "clippy");
    good &= passes("lints, native half", native.args(["--all-targets", "--", "-D", "warnings"]), stop)?;
    let toolchain = Toolchain::require(places, stop)?;
    let mut browser = toolchain.clippy(places, stop)?;
    // The profile of the real build, so that nothing is compiled for the lints alone that is not shared.
    let name = format!("lints, browser half ({})", toolchain.name());
    good &= passes(&name, browser.args(["--profile", "wasm", "--", "-D", "warnings"]), stop)?;
    let tests = test::test(places, &test::Options::default(), stop)?;
    if !good {
        eprintln!("error: format or lints failed, see above");
    }
    Ok(good && tests)
}

fn passes(name: &str, command: &mut std::process::Command, stop: &Stop) -> Result<bool> {
    let step = Step::start(name);
    let good = command::status(command, stop)?.success();
    step.done_with(if good { "" } else { "FAILED" });
    Ok(good)
}

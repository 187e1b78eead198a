//! wasm-opt, which shrinks the client to a third. It is installed with npm: Debian's version (108)
//! produces modules that Chromium rejects.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::node;
use crate::command;
use crate::paths::Paths;
use crate::progress::{ProgressStep, note};
use crate::stop::Stop;

/// The version tested with Chromium.
const BINARYEN: &str = "binaryen@132.0.0";

/// Finds or installs the program in the target folder; `None`, with a printed note, when that fails.
pub fn find_or_install(paths: &Paths, stop: &Stop) -> Result<Option<PathBuf>> {
    let folder = paths.tools().join(BINARYEN);
    let program = folder.join("node_modules/.bin/wasm-opt");
    if command::is_program(&program) {
        return Ok(Some(program));
    }
    let Some(npm) = node::npm() else {
        note("no Node here: the client stays three times as large, but works");
        return Ok(None);
    };
    let step = ProgressStep::start("install wasm-opt");
    std::fs::create_dir_all(&folder)?;
    let mut install = Command::new(npm);
    install.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(&folder);
    if let Err(error) = command::run_silently(install.arg(BINARYEN), stop) {
        stop.check()?;
        drop(step);
        note(&format!("wasm-opt cannot be installed, the client stays three times as large: {error:#}"));
        return Ok(None);
    }
    step.done();
    Ok(Some(program))
}

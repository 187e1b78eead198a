//! wasm-opt, which shrinks the browser half to a third. npm's build of it: Debian's (108) makes
//! modules that Chromium refuses.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::node;
use crate::command;
use crate::places::Places;
use crate::progress::{Step, note};
use crate::stop::Stop;

/// The version tried with Chromium.
const BINARYEN: &str = "binaryen@132.0.0";

/// The program, installed into the target folder; `None` where it cannot be had, said aloud.
pub fn find_or_install(places: &Places, stop: &Stop) -> Result<Option<PathBuf>> {
    let folder = places.tools().join(BINARYEN);
    let program = folder.join("node_modules/.bin/wasm-opt");
    if command::is_program(&program) {
        return Ok(Some(program));
    }
    let Some(npm) = node::npm() else {
        note("no Node here: the browser half stays three times as large, it works all the same");
        return Ok(None);
    };
    let step = Step::start("install wasm-opt");
    std::fs::create_dir_all(&folder)?;
    let mut install = Command::new(npm);
    install.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(&folder);
    if let Err(error) = command::run_silently(install.arg(BINARYEN), stop) {
        stop.check()?;
        drop(step);
        note(&format!("wasm-opt cannot be had, the browser half stays three times as large: {error:#}"));
        return Ok(None);
    }
    step.done();
    Ok(Some(program))
}

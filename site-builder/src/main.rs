//! `site-builder` makes the files of `target/site` from compiled modules, scripts and style sheets.
//!
//!     site-builder bundle COMPRESSION MODULE SITE NAME[,NAME…] [WASM_OPT]
//!         splits, binds, shrinks and compresses a linked module into SITE/pkg
//!     site-builder files COMPRESSION ROOT SITE
//!         minifies, compresses and copies frontend/static and style
//!
//! `cargo xtask` compiles the modules, calls this program for what is out of date, and publishes the result as a version.
//! It is separate from `xtask` because its dependencies take a minute to compile: `cargo xtask run` compiles them beside
//! the server, and most other tasks need none of them.
//!
//! It may use no crate of the workspace. To change how a module becomes a script: `bundle.rs`; to change which sheets
//! there are: `files.rs`; to add a compression: `output.rs`.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::output::Compression;

mod bundle;
mod files;
mod minify;
mod output;

const USAGE: &str = "site-builder bundle best|quick|none MODULE SITE NAME[,NAME...] [WASM_OPT]
       site-builder files best|quick|none ROOT SITE";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let parse = |name: &str| {
        Compression::parse(name).with_context(|| format!("there is no compression {name}\nusage: {USAGE}"))
    };
    match *arguments.as_slice() {
        ["files", compression, root, site] => files::build(parse(compression)?, Path::new(root), Path::new(site)),
        ["bundle", compression, module, site, names, ref wasm_opt @ ..] if wasm_opt.len() <= 1 => {
            let compression = parse(compression)?;
            let names: Vec<&str> = names.split(',').collect();
            bundle::build(compression, Path::new(module), Path::new(site), &names, wasm_opt.first().map(Path::new))
        }
        _ => bail!("usage: {USAGE}"),
    }
}

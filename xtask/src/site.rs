//! Builds the client into `target/site`: compiles it here, and has `site-builder` make the files.
//!
//!     pkg/    a script and a module for each bundle, a folder of its lazily loaded parts, and the scripts of
//!             frontend/static
//!     style/  main.css: all of style/*.css in order of name; map.css and map-later.css: the sheets that the page of
//!             a live map needs, in two parts; other files unchanged
//!     other files of frontend/static at the same path: fonts/, favicon.svg
//!     versions/  a copy named by its content hash, for builds to deliver: see `versions.rs`
//!
//! Each text and module has a compressed `.br` and `.gz` sibling, so that the server does not compress per request.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cargo_progress;
use crate::command;
use crate::fingerprint;
use crate::native;
use crate::paths::Paths;
use crate::progress::ProgressStep;
use crate::setup::wasm::{Goal, TARGET, Toolchain};
use crate::setup::wasm_opt;
use crate::stop::Stop;
use crate::versions;

const MODULE_INPUTS: [&str; 8] =
    ["Cargo.lock", "Cargo.toml", "app", "domain", "frontend/Cargo.toml", "frontend/src", "language", "site-builder"];
/// Inputs that are only copied.
const PLAIN_INPUTS: [&str; 3] = ["frontend/static", "site-builder", "style"];

/// Build mode of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildMode {
    /// Small, for delivery.
    Optimised,
    /// Quick to build, and quick enough for people, for `run` and `test`. An optimised build that is up to date serves as well.
    Quick,
    /// Fast to build, with messages of panics, for `dev`.
    Fast,
}

impl BuildMode {
    /// Returns the profile in Cargo.toml, its folder, and what the compiler aims at.
    fn profile(self) -> (&'static str, &'static str, Goal) {
        match self {
            Self::Optimised => ("wasm", "wasm", Goal::SmallSize),
            Self::Quick => ("wasm-quick", "wasm-quick", Goal::QuickBuild),
            Self::Fast => ("dev", "debug", Goal::PanicMessages),
        }
    }

    /// Returns the bundles of each module, which are features of `frontend`. A page loads the bundle with its islands.
    /// For delivery each is a module: choosing a seat does not wait for code that is needed only after paying or by
    /// staff. Otherwise one module, compiled once, serves all.
    fn modules(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Optimised => &[&["show"], &["pages"], &["staff"]],
            // The first is the module's name: the page of the door, which works offline, stores files of "staff" only.
            Self::Quick | Self::Fast => &[&["staff", "show", "pages"]],
        }
    }

    /// Returns the compression of modules, as `site-builder` names it. Without any, functions keep their names.
    fn compression(self) -> &'static str {
        match self {
            Self::Optimised => "best",
            Self::Quick => "quick",
            Self::Fast => "none",
        }
    }

    /// Returns the compression of the files that are not compiled. They are small, so those of `run` are as for delivery.
    fn compression_of_files(self) -> &'static str {
        match self {
            Self::Optimised | Self::Quick => "best",
            Self::Fast => "none",
        }
    }
}

/// Builds the client unless it is up to date.
pub fn build(paths: &Paths, mode: BuildMode, stop: &Stop) -> Result<()> {
    let build = SiteBuild::prepare(paths, mode, stop)?;
    build.compile()?;
    if build.is_needed() {
        native::build_site_builder(paths, stop)?;
    }
    build.make_site()
}

/// A build of the client with all that it needs.
pub struct SiteBuild<'a> {
    paths: &'a Paths,
    mode: BuildMode,
    stop: &'a Stop,
    toolchain: Toolchain,
    /// Shrinks modules of a build to deliver.
    wasm_opt: Option<PathBuf>,
    /// Modules that are out of date, as their bundles.
    modules: Vec<&'static [&'static str]>,
    /// Fingerprint of the modules' inputs.
    module_inputs: String,
    /// Fingerprint of the other files' inputs; `None` when they are up to date.
    plain_inputs: Option<String>,
    /// Locks the site: `run` and `test` of one checkout share it.
    _lock: File,
}

impl<'a> SiteBuild<'a> {
    /// Finds what is out of date, and the programs to build it: missing packages are reported before minutes of
    /// compiling.
    pub fn prepare(paths: &'a Paths, mode: BuildMode, stop: &'a Stop) -> Result<Self> {
        std::fs::create_dir_all(paths.site().join("pkg"))?;
        let lock = lock(paths)?;
        let toolchain = Toolchain::require(paths, stop)?;
        let compiler = toolchain.about()?;
        let inputs_in = |mode: BuildMode| {
            let about = format!("{mode:?} {} {compiler}", toolchain.name());
            fingerprint::of(&paths.root, &MODULE_INPUTS, &about)
        };
        let out_of_date = |mode: BuildMode, inputs: &str| -> Vec<&'static [&'static str]> {
            let is_built = |bundle: &&str| fingerprint::is_done(&stamp(paths, bundle), inputs);
            mode.modules().iter().copied().filter(|bundles| !bundles.iter().all(is_built)).collect()
        };
        let optimised = inputs_in(BuildMode::Optimised)?;
        let mode = match mode {
            BuildMode::Quick if out_of_date(BuildMode::Optimised, &optimised).is_empty() => BuildMode::Optimised,
            mode => mode,
        };
        let module_inputs = if mode == BuildMode::Optimised { optimised } else { inputs_in(mode)? };
        let modules = out_of_date(mode, &module_inputs);
        let plain_inputs = plain_inputs(paths, mode)?;
        let plain_inputs = Some(plain_inputs).filter(|inputs| !fingerprint::is_done(&stamp(paths, PLAIN), inputs));
        let shrinks = mode == BuildMode::Optimised && !modules.is_empty();
        let wasm_opt = if shrinks { wasm_opt(paths, stop)? } else { None };
        Ok(Self { paths, mode, stop, toolchain, wasm_opt, modules, module_inputs, plain_inputs, _lock: lock })
    }

    /// Returns `true` unless everything is up to date.
    pub fn is_needed(&self) -> bool {
        !self.modules.is_empty() || self.plain_inputs.is_some()
    }

    /// Compiles the modules that are out of date.
    pub fn compile(&self) -> Result<()> {
        let (profile, _, goal) = self.mode.profile();
        for (index, bundles) in self.modules.iter().enumerate() {
            let names = bundles.join(",");
            let name = format!("compile the client for {names}");
            let step = ProgressStep::start_nth(name, index, self.modules.len());
            // All modules are linked to the same file: cargo would keep that of another module.
            let linked = self.compiled().join("deps/frontend.wasm");
            if linked.exists() {
                std::fs::remove_file(&linked)?;
            }
            let mut cargo = self.toolchain.cargo("build", goal, self.paths)?;
            cargo.args(["--profile", profile, "--no-default-features", "--features", &names]);
            cargo_progress::run(&mut cargo, &step, self.stop)?;
            std::fs::rename(self.compiled().join("frontend.wasm"), self.module(bundles))?;
            step.done();
        }
        Ok(())
    }

    /// Makes the files that are out of date, with the built `site-builder`, and publishes them, except in the fast mode.
    pub fn make_site(self) -> Result<()> {
        let site = self.paths.site();
        if self.mode == BuildMode::Fast {
            // Withdraw the version before the first change.
            versions::withdraw(&site)?;
        }
        for bundles in &self.modules {
            self.bind(bundles)?;
        }
        if let Some(inputs) = &self.plain_inputs {
            make_files(self.paths, self.mode, inputs, self.stop)?;
        }
        match self.mode {
            BuildMode::Optimised | BuildMode::Quick => versions::publish(&site),
            BuildMode::Fast => Ok(()),
        }
    }

    /// Makes the files of a module, unless they were made of the same module before: many edits concern the server alone.
    fn bind(&self, bundles: &[&str]) -> Result<()> {
        let module = self.module(bundles);
        let linked = fingerprint::of(&self.compiled(), &[&format!("{}.wasm", bundles[0])], "")?;
        let about = format!("{} {:?} {linked}", self.mode.compression(), self.wasm_opt);
        let inputs = fingerprint::of(&self.paths.root, &["site-builder"], &about)?;
        let bound = |bundle: &str| stamp(self.paths, &format!("{bundle}-bound"));
        if !bundles.iter().all(|bundle| fingerprint::is_done(&bound(bundle), &inputs)) {
            let what =
                if self.wasm_opt.is_some() { "bind and shrink the client" } else { "bind the client to JavaScript" };
            let step = ProgressStep::start(what);
            for stamp in bundles.iter().flat_map(|bundle| [stamp(self.paths, bundle), bound(bundle)]) {
                // An interrupted build must not look finished.
                if stamp.exists() {
                    std::fs::remove_file(stamp)?;
                }
            }
            let mut builder = native::program(self.paths, "site-builder");
            builder.arg("bundle").arg(self.mode.compression()).arg(&module).arg(self.paths.site());
            builder.arg(bundles.join(",")).args(&self.wasm_opt);
            command::run_silently(&mut builder, self.stop)?;
            let made = self.paths.site().join("pkg").join(format!("{}_bg.wasm", bundles[0]));
            step.done_with(&format!("{} kB", made.metadata()?.len() / 1000));
        }
        for bundle in bundles {
            std::fs::write(bound(bundle), &inputs)?;
            std::fs::write(stamp(self.paths, bundle), &self.module_inputs)?;
        }
        Ok(())
    }

    /// Returns the folder of compiled modules.
    fn compiled(&self) -> PathBuf {
        let (_, folder, _) = self.mode.profile();
        self.paths.target.join("wasm-build").join(TARGET).join(folder)
    }

    /// Returns the file of the linked module with these bundles.
    fn module(&self, bundles: &[&str]) -> PathBuf {
        self.compiled().join(format!("{}.wasm", bundles[0]))
    }
}

/// Makes only the files that are not compiled, whatever the state of the modules.
pub fn build_files(paths: &Paths, mode: BuildMode, stop: &Stop) -> Result<()> {
    let _lock = lock(paths)?;
    make_files(paths, mode, &plain_inputs(paths, mode)?, stop)
}

fn plain_inputs(paths: &Paths, mode: BuildMode) -> Result<String> {
    fingerprint::of(&paths.root, &PLAIN_INPUTS, mode.compression_of_files())
}

fn make_files(paths: &Paths, mode: BuildMode, inputs: &str, stop: &Stop) -> Result<()> {
    let step = ProgressStep::quiet("make scripts and style sheets");
    let stamp = stamp(paths, PLAIN);
    // An interrupted build must not look finished.
    if stamp.exists() {
        std::fs::remove_file(&stamp)?;
    }
    let mut builder = native::program(paths, "site-builder");
    builder.args(["files", mode.compression_of_files()]).arg(&paths.root).arg(paths.site());
    command::run_silently(&mut builder, stop)?;
    std::fs::write(stamp, inputs)?;
    step.done();
    Ok(())
}

/// Locks the site until the file is dropped.
fn lock(paths: &Paths) -> Result<File> {
    let lock = File::create(paths.site().join(".lock"))?;
    lock.lock().context("cannot lock the site")?;
    Ok(lock)
}

/// Name of the stamp of the files that are not compiled.
const PLAIN: &str = "plain";

/// Returns the file with the fingerprint of the inputs of which a bundle, or [`PLAIN`], was built.
fn stamp(paths: &Paths, name: &str) -> PathBuf {
    paths.site().join(format!(".built-{name}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn files_of_dev_are_made_again_for_all_others() {
        // They are not compressed, and pages reload themselves (`reload.rs`).
        let paths = Paths::find().expect("the checkout");
        let inputs = |mode| plain_inputs(&paths, mode).expect("readable");
        assert_eq!(inputs(BuildMode::Quick), inputs(BuildMode::Optimised));
        assert_ne!(inputs(BuildMode::Fast), inputs(BuildMode::Optimised));
    }

    #[test]
    fn every_mode_builds_every_bundle_once() {
        for mode in [BuildMode::Optimised, BuildMode::Quick, BuildMode::Fast] {
            let bundles: Vec<&str> = mode.modules().iter().flat_map(|bundles| bundles.iter().copied()).collect();
            let distinct: BTreeSet<&str> = bundles.iter().copied().collect();
            assert_eq!(bundles.len(), distinct.len(), "{mode:?}");
            assert_eq!(distinct, BTreeSet::from(["pages", "show", "staff"]), "{mode:?}");
        }
    }
}

//! Builds the client: compiles, binds, shrinks and compresses it into `target/site`.
//!
//!     pkg/    a script and a module for each of [`BUNDLES`], a folder of its lazily loaded parts, and the
//!             scripts of frontend/static
//!     style/  main.css: all of style/*.css in order of name; map.css and map-later.css: the sheets that the page of
//!             a live map needs, in two parts; other files unchanged
//!     other files of frontend/static at the same path: fonts/, favicon.svg
//!     versions/  a copy named by its content hash, for builds to deliver: see `versions.rs`
//!
//! Each text and module has a compressed `.br` and `.gz` sibling, so that the server does not compress per request.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::{Bindgen, Output};

use crate::command;
use crate::fingerprint;
use crate::minify;
use crate::paths::Paths;
use crate::progress::ProgressStep;
use crate::setup::wasm::{Goal, TARGET, Toolchain};
use crate::setup::wasm_opt;
use crate::stop::Stop;
use crate::versions;

/// The client bundles, each a feature of `frontend`. A page loads the one with its islands, so choosing a seat
/// does not wait for code that is needed only after paying or by staff.
const BUNDLES: [&str; 3] = ["show", "pages", "staff"];
const MODULE_INPUTS: [&str; 7] =
    ["Cargo.lock", "Cargo.toml", "app", "domain", "frontend/Cargo.toml", "frontend/src", "language"];
/// Inputs that are only copied.
const PLAIN_INPUTS: [&str; 2] = ["frontend/static", "style"];
/// Extensions to compress; pictures and fonts are already compressed.
const COMPRESSIBLE: [&str; 6] = ["css", "js", "json", "svg", "txt", "wasm"];
/// Brotli quality, 0 to 11.
const BROTLI_QUALITY: u32 = 11;
/// Brotli window size, bytes, as a power of two.
const BROTLI_WINDOW: u32 = 22;

/// Sheets of style/ that the page of a live map needs until seats can be taken.
const MAP_SHEETS: [&str; 11] = [
    "00-tokens.css",
    "10-base.css",
    "11-account-mark.css",
    "12-controls.css",
    "13-crumbs.css",
    "28-show.css",
    "30-seat-map.css",
    "31-room.css",
    "32-seats.css",
    "34-sections.css",
    "60-languages.css",
];
/// Sheets that it needs afterwards.
const MAP_LATER_SHEETS: [&str; 6] =
    ["01-fonts.css", "36-areas.css", "36-party.css", "38-waiting-list.css", "40-checkout.css", "52-paper.css"];
/// Selects the files of style/ that are in a sheet.
type SheetFilter = fn(&str) -> bool;
/// The served sheets, built from style/*.css in order of name.
const SHEETS: [(&str, SheetFilter); 3] = [
    ("main.css", |_| true),
    ("map.css", |name| MAP_SHEETS.contains(&name)),
    ("map-later.css", |name| MAP_LATER_SHEETS.contains(&name)),
];

/// Part of the names that leptos exports for streaming answers. Rowlock has none, and an unused export keeps its code.
const STREAMING: &str = "intounderlying";

/// Build mode of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildMode {
    /// Small, for delivery.
    Optimised,
    /// Fast to build, for `dev`.
    Fast,
}

impl BuildMode {
    fn profile(self) -> (&'static str, &'static str) {
        match self {
            Self::Optimised => ("wasm", "wasm"),
            Self::Fast => ("dev", "debug"),
        }
    }
}

/// Builds the client unless it is up to date.
pub fn build(paths: &Paths, mode: BuildMode, stop: &Stop) -> Result<()> {
    let pkg = paths.site().join("pkg");
    std::fs::create_dir_all(&pkg)?;
    // `run` and `test` of one checkout share the site. The lock is released on return.
    let lock = std::fs::File::create(paths.site().join(".lock"))?;
    lock.lock().context("cannot lock the site")?;
    if mode == BuildMode::Fast {
        // Withdraw the version before the first change.
        versions::withdraw(&paths.site())?;
    }
    let toolchain = Toolchain::require(paths, stop)?;
    let about = format!("{mode:?} {} {}", toolchain.name(), toolchain.about()?);
    let inputs = fingerprint::of(&paths.root, &MODULE_INPUTS, &about)?;
    for bundle in BUNDLES {
        let stamp = paths.site().join(format!(".module-{bundle}"));
        if !fingerprint::is_done(&stamp, &inputs) {
            build_bundle(paths, &pkg, bundle, &toolchain, mode, stop)?;
            std::fs::write(&stamp, &inputs)?;
        }
    }
    let inputs = fingerprint::of(&paths.root, &PLAIN_INPUTS, "")?;
    let stamp = paths.site().join(".plain");
    if !fingerprint::is_done(&stamp, &inputs) {
        copy_static_files(paths, &pkg)?;
        std::fs::write(&stamp, &inputs)?;
    }
    match mode {
        BuildMode::Optimised => versions::publish(&paths.site()),
        BuildMode::Fast => Ok(()),
    }
}

fn build_bundle(
    paths: &Paths,
    pkg: &Path,
    bundle: &str,
    toolchain: &Toolchain,
    mode: BuildMode,
    stop: &Stop,
) -> Result<()> {
    let (profile, folder) = mode.profile();
    let goal = if mode == BuildMode::Optimised { Goal::SmallSize } else { Goal::PanicMessages };
    let step = ProgressStep::start(format!("compile the client bundle \"{bundle}\" ({})", toolchain.name()));
    let out = paths.target.join("wasm-build").join(TARGET).join(folder);
    // All bundles are linked to the same file: cargo would keep that of another bundle.
    let linked = out.join("deps/frontend.wasm");
    if linked.exists() {
        std::fs::remove_file(&linked)?;
    }
    let mut cargo = toolchain.cargo("build", goal, paths)?;
    command::run(cargo.args(["--profile", profile, "--no-default-features", "--features", bundle]), stop)?;
    step.done();
    let built = out.join("frontend.wasm");

    let step = ProgressStep::quiet("split it and bind it to JavaScript");
    let output_folder = paths.site().join("pkg-fresh");
    if output_folder.exists() {
        std::fs::remove_dir_all(&output_folder)?;
    }
    let (main, mut modules) = split_module(&built, bundle, &output_folder)?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&main).web(true)?.typescript(false).out_name(bundle);
    // The other parts refer to functions of the main one by the linker's names.
    bindgen.keep_lld_exports(true).demangle(false);
    if mode == BuildMode::Optimised {
        bindgen.remove_name_section(true).remove_producers_section(true);
    }
    let mut output = bindgen.generate_output().context("wasm-bindgen")?;
    let exports = &mut output.wasm_mut().exports;
    let streaming: Vec<String> =
        exports.iter().filter(|export| export.name.contains(STREAMING)).map(|export| export.name.clone()).collect();
    for name in streaming {
        exports.remove(&name).context("an existing export")?;
    }
    let names = if mode == BuildMode::Optimised { shorten_imports(&mut output, bundle) } else { BTreeMap::new() };
    output.emit(&output_folder).context("wasm-bindgen")?;
    if mode == BuildMode::Optimised {
        let (script, loader) = (format!("{bundle}.js"), format!("./{bundle}-parts/load.js"));
        let parts = std::fs::read_to_string(output_folder.join(&loader))?;
        let bindings = minify::minify_bindings(&std::fs::read_to_string(output_folder.join(&script))?, &names);
        std::fs::write(
            output_folder.join(&script),
            minify::inline_loader(&bindings, &minify::minify_script(&parts), &loader),
        )?;
        std::fs::remove_file(output_folder.join(&loader))?;
    }
    step.done();
    if mode == BuildMode::Optimised {
        modules.push(output_folder.join(format!("{bundle}_bg.wasm")));
        for module in &modules {
            shrink(paths, module, stop)?;
        }
    }
    let mut files = BTreeSet::new();
    fingerprint::collect(&output_folder, &mut files)?;
    let mut written = BTreeSet::new();
    for file in &files {
        let to = pkg.join(file.strip_prefix(&output_folder)?);
        copy_file(file, &to, mode)?;
        written.insert(to);
    }
    remove_stale(pkg, &written, |file| bundle_of(file) == Some(bundle))?;
    std::fs::remove_dir_all(&output_folder)?;
    Ok(())
}

/// Returns the bundle of a file below pkg/.
fn bundle_of(file: &Path) -> Option<&'static str> {
    let first = file.iter().next()?.to_str()?;
    let is_of = |bundle: &&str| {
        let rest = first.strip_prefix(*bundle).unwrap_or_default();
        rest == "-parts" || rest.starts_with(".js") || rest.starts_with("_bg.")
    };
    BUNDLES.into_iter().find(is_of)
}

/// Renames a module's imports to short names and returns the mapping. The long names end in random digits, which
/// compress badly and occur in both files.
fn shorten_imports(output: &mut Output, bundle: &str) -> BTreeMap<String, String> {
    let script = format!("./{bundle}_bg.js");
    let imports = output.wasm_mut().imports.iter_mut().filter(|import| import.module == script);
    let named = imports.enumerate().map(|(number, import)| {
        let short = minify::short_name(number);
        (std::mem::replace(&mut import.name, short.clone()), short)
    });
    named.collect()
}

/// Splits a linked module into the main part and lazily loaded parts (`app::seat_map::deferred`). Returns the main
/// file and the files of the others, which are already next to the scripts, with a loader and a list of each part's files.
fn split_module(built: &Path, bundle: &str, scripts: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    let whole = std::fs::read(built).with_context(|| built.display().to_string())?;
    let main = built.with_file_name(format!("{bundle}-main.wasm"));
    // A folder per bundle: the parts have the same names in all of them.
    let folder = scripts.join(format!("{bundle}-parts"));
    std::fs::create_dir_all(&folder)?;
    let (loader, script) = (format!("./{bundle}-parts/load.js"), format!("../{bundle}.js"));
    let mut options = wasm_split_cli_support::Options::new(&whole);
    options.output_dir = scripts;
    options.main_out_path = &main;
    options.link_name = &loader;
    options.main_module = &script;
    let split = wasm_split_cli_support::transform(options).map_err(|why| anyhow::anyhow!("{why:?}"))?;
    // The files of each part, for scripts that cache them for offline use (`keep-door.js`).
    let files: BTreeMap<_, _> = split.prefetch_map.into_iter().collect();
    std::fs::write(folder.join("parts.json"), serde_json::to_vec(&files)?)?;
    let mut parts = Vec::new();
    for part in split.split_modules {
        let moved = folder.join(part.file_name().context("a part without a name")?);
        std::fs::rename(&part, &moved)?;
        parts.push(moved);
    }
    Ok((main, parts))
}

fn shrink(paths: &Paths, module: &Path, stop: &Stop) -> Result<()> {
    let Some(program) = wasm_opt(paths, stop)? else {
        return Ok(());
    };
    let before = module.metadata()?.len();
    let step = ProgressStep::start("shrink it with wasm-opt");
    let small = module.with_extension("small");
    let mut command = Command::new(program);
    // Repeat the passes until the size no longer shrinks.
    command.args(["-Oz", "--converge"]);
    // The features rustc emits by default; binding removes the section that declares them.
    for feature in [
        "bulk-memory",
        "bulk-memory-opt",
        "call-indirect-overlong",
        "multivalue",
        "mutable-globals",
        "nontrapping-float-to-int",
        "reference-types",
        "sign-ext",
    ] {
        command.arg(format!("--enable-{feature}"));
    }
    command::run_silently(command.arg(module).arg("-o").arg(&small), stop)?;
    std::fs::rename(&small, module)?;
    step.done_with(&format!("{} kB to {} kB", before / 1000, module.metadata()?.len() / 1000));
    Ok(())
}

fn copy_static_files(paths: &Paths, pkg: &Path) -> Result<()> {
    let (static_folder, site) = (paths.root.join("frontend/static"), paths.site());
    let (mut files, mut written) = (BTreeSet::new(), BTreeSet::new());
    fingerprint::collect(&static_folder, &mut files)?;
    for file in &files {
        let folder = if has_extension(file, "js") { pkg } else { &site };
        let to = folder.join(file.strip_prefix(&static_folder)?);
        if has_extension(file, "js") {
            write(&to, minify::minify_script(&std::fs::read_to_string(file)?).as_bytes(), BuildMode::Optimised)?;
        } else {
            copy_file(file, &to, BuildMode::Optimised)?;
        }
        written.insert(to);
    }
    let style = paths.root.join("style");
    let mut files = BTreeSet::new();
    fingerprint::collect(&style, &mut files)?;
    let (sheets, others): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(|file| has_extension(file, "css"));
    for (name, is_in) in SHEETS {
        let mut all = String::new();
        for sheet in sheets.iter().filter(|sheet| sheet.file_name().is_some_and(|name| is_in(&name.to_string_lossy())))
        {
            all.push_str(&std::fs::read_to_string(sheet)?);
            all.push('\n');
        }
        let to = site.join("style").join(name);
        write(&to, minify::minify_style(&all).as_bytes(), BuildMode::Optimised)?;
        written.insert(to);
    }
    for file in &others {
        let to = site.join("style").join(file.strip_prefix(&style)?);
        copy_file(file, &to, BuildMode::Optimised)?;
        written.insert(to);
    }
    remove_stale(pkg, &written, |file| bundle_of(file).is_none())?;
    remove_stale(&site.join("style"), &written, |_| true)?;
    remove_stale(&site.join("fonts"), &written, |_| true)
}

/// Removes files that earlier builds left in a folder: a stale file would enter every later version and its fingerprint,
/// and the same source would be a different version on another machine. Removes those that are neither in `made` nor the compressed form of one that is. Only files for which
/// `is_ours` returns `true`, called with the path below the folder.
fn remove_stale(folder: &Path, made: &BTreeSet<PathBuf>, is_ours: impl Fn(&Path) -> bool) -> Result<()> {
    let mut found = BTreeSet::new();
    fingerprint::collect(folder, &mut found)?;
    for file in found {
        let is_packed = file.extension().is_some_and(|ending| ending == "br" || ending == "gz");
        let is_made = made.contains(&file) || (is_packed && made.contains(&file.with_extension("")));
        if !is_made && is_ours(file.strip_prefix(folder)?) {
            std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    Ok(())
}

fn has_extension(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|own| own == ending)
}

fn copy_file(from: &Path, to: &Path, mode: BuildMode) -> Result<()> {
    write(to, &std::fs::read(from)?, mode)
}

/// Writes a file and its compressed siblings, each atomically: a server may be reading them.
fn write(file: &Path, bytes: &[u8], mode: BuildMode) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let siblings = [with_ending(file, "br"), with_ending(file, "gz")];
    for sibling in &siblings {
        // A stale sibling would be served instead of the new file.
        if sibling.exists() {
            std::fs::remove_file(sibling)?;
        }
    }
    replace(file, bytes)?;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if mode == BuildMode::Fast || !COMPRESSIBLE.contains(&ending) {
        return Ok(());
    }
    let step = ProgressStep::quiet(format!("compress {}", file.file_name().unwrap_or_default().to_string_lossy()));
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, BROTLI_QUALITY, BROTLI_WINDOW);
    brotli.write_all(bytes)?;
    replace(&siblings[0], &brotli.into_inner())?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(bytes)?;
    replace(&siblings[1], &gzip.finish()?)?;
    step.done();
    Ok(())
}

fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let new = with_ending(file, "new");
    std::fs::write(&new, bytes).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, file)?;
    Ok(())
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_bundle_are_distinguished_from_other_scripts() {
        for (file, bundle) in [
            ("show.js", Some("show")),
            ("show.js.br", Some("show")),
            ("show_bg.wasm", Some("show")),
            ("staff-parts/parts.json", Some("staff")),
            ("pages-parts/load.js.gz", Some("pages")),
            ("boot.js", None),
            ("plan-file.js", None),
            ("showing.js", None),
            ("rowlock_bg.wasm", None),
        ] {
            assert_eq!(bundle_of(Path::new(file)), bundle, "{file}");
        }
    }

    #[test]
    fn the_sheets_of_the_map_exist() {
        let style = Path::new(env!("CARGO_MANIFEST_DIR")).join("../style");
        for name in MAP_SHEETS.iter().chain(&MAP_LATER_SHEETS) {
            assert!(style.join(name).exists(), "{name}");
        }
    }

    #[test]
    fn stale_files_are_removed_and_files_of_others_stay() {
        let folder = std::env::temp_dir().join(format!("rowlock-leftovers-{}", std::process::id()));
        for file in ["a.js", "a.js.br", "old.js", "old.js.gz", "a.js.new", "parts/old.wasm", "others.js"] {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(path, "").expect("written");
        }
        let made = BTreeSet::from([folder.join("a.js")]);
        remove_stale(&folder, &made, |file| file != Path::new("others.js")).expect("removed");
        let mut left = BTreeSet::new();
        fingerprint::collect(&folder, &mut left).expect("listed");
        assert_eq!(left, BTreeSet::from(["a.js", "a.js.br", "others.js"].map(|file| folder.join(file))));
        std::fs::remove_dir_all(&folder).expect("removed");
        remove_stale(&folder, &made, |_| true).expect("an empty folder");
    }
}

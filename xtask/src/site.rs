//! The browser half: compiled, bound, shrunk and compressed into `target/site`.
//!
//!     pkg/    a script and a module for each of [`HALVES`], a folder of their parts that come later, and the
//!             scripts of frontend/static
//!     style/  main.css: all of style/*.css in the order of their names; map.css and map-later.css: what the page of a
//!             live map needs of them, in two; other files as they are
//!     other files of frontend/static lie where they lie there: fonts/, favicon.svg
//!     versions/  all of it under a name that says what is in it, if it was built to be delivered: see `versions.rs`
//!
//! Each text and module has a `.br` and a `.gz` beside it, made once here instead of at every request.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::{Bindgen, Output};

use crate::command;
use crate::fingerprint;
use crate::lean;
use crate::leftovers;
use crate::places::Places;
use crate::progress::Step;
use crate::setup::wasm::{TARGET, Toolchain, Wish};
use crate::setup::wasm_opt;
use crate::stop::Stop;
use crate::versions;

/// The modules, each a feature of `frontend`: a page loads the one its islands are in. Whoever chooses a
/// seat does not wait for what is needed after paying, nor for what only staff use.
const HALVES: [&str; 3] = ["show", "pages", "staff"];
/// What the modules depend on.
const MODULE_INPUTS: [&str; 6] = ["Cargo.lock", "Cargo.toml", "app", "domain", "frontend/Cargo.toml", "frontend/src"];
/// Files that are only copied.
const PLAIN_INPUTS: [&str; 2] = ["frontend/static", "style"];
/// Files worth compressing; pictures and fonts are compressed already.
const COMPRESSIBLE: [&str; 6] = ["css", "js", "json", "svg", "txt", "wasm"];
/// Brotli's best, 0 to 11.
const BROTLI_QUALITY: u32 = 11;
/// Brotli's window, as a power of two in bytes.
const BROTLI_WINDOW: u32 = 22;

/// What the page of a live map needs of style/ until its seats can be taken.
const OF_THE_MAP: [&str; 11] = [
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
/// What it needs then.
const AFTER_THE_MAP: [&str; 6] =
    ["01-fonts.css", "36-areas.css", "36-party.css", "38-waiting-list.css", "40-checkout.css", "52-paper.css"];
/// Whether a file of style/ is in a sheet.
type IsIn = fn(&str) -> bool;
/// The sheets that pages ask for, made of style/*.css in the order of their names.
const SHEETS: [(&str, IsIn); 3] = [
    ("main.css", |_| true),
    ("map.css", |name| OF_THE_MAP.contains(&name)),
    ("map-later.css", |name| AFTER_THE_MAP.contains(&name)),
];

/// In the names of what leptos exports for answers that stream, which ours do not: nobody calls them, and an export
/// keeps its code.
const STREAMS: &str = "intounderlying";

/// How much work goes into size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As delivered.
    Small,
    /// Quickly rebuilt, for `dev`.
    Large,
}

impl Size {
    /// The cargo profile, which is also the name of its folder.
    fn profile(self) -> (&'static str, &'static str) {
        match self {
            Self::Small => ("wasm", "wasm"),
            Self::Large => ("dev", "debug"),
        }
    }
}

/// Brings the browser half up to date.
pub fn build(places: &Places, size: Size, stop: &Stop) -> Result<()> {
    let pkg = places.site().join("pkg");
    std::fs::create_dir_all(&pkg)?;
    // `run` and `test` of one checkout share the site; released when this returns.
    let lock = std::fs::File::create(places.site().join(".lock"))?;
    lock.lock().context("cannot lock the site")?;
    if size == Size::Large {
        // Before anything changes.
        versions::withdraw(&places.site())?;
    }
    let toolchain = Toolchain::require(places, stop)?;
    let about = format!("{size:?} {} {}", toolchain.name(), toolchain.about()?);
    let inputs = fingerprint::of(&places.root, &MODULE_INPUTS, &about)?;
    for half in HALVES {
        let stamp = places.site().join(format!(".module-{half}"));
        if !fingerprint::is_done(&stamp, &inputs) {
            module(places, &pkg, half, &toolchain, size, stop)?;
            std::fs::write(&stamp, &inputs)?;
        }
    }
    let inputs = fingerprint::of(&places.root, &PLAIN_INPUTS, "")?;
    let stamp = places.site().join(".plain");
    if !fingerprint::is_done(&stamp, &inputs) {
        plain(places, &pkg)?;
        std::fs::write(&stamp, &inputs)?;
    }
    match size {
        Size::Small => versions::publish(&places.site()),
        Size::Large => Ok(()),
    }
}

fn module(places: &Places, pkg: &Path, half: &str, toolchain: &Toolchain, size: Size, stop: &Stop) -> Result<()> {
    let (profile, folder) = size.profile();
    let wish = if size == Size::Small { Wish::Lean } else { Wish::Talkative };
    let step = Step::start(format!("compile the browser half \"{half}\" ({})", toolchain.name()));
    let out = places.target.join("wasm-build").join(TARGET).join(folder);
    // All halves are linked under one name: cargo would find the other's there and leave it.
    let linked = out.join("deps/frontend.wasm");
    if linked.exists() {
        std::fs::remove_file(&linked)?;
    }
    let mut cargo = toolchain.cargo("build", wish, places)?;
    command::run(cargo.args(["--profile", profile, "--no-default-features", "--features", half]), stop)?;
    step.done();
    let built = out.join("frontend.wasm");

    let step = Step::quiet("take it apart and bind it to JavaScript");
    let fresh = places.site().join("pkg-fresh");
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh)?;
    }
    let (main, mut modules) = take_apart(&built, half, &fresh)?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&main).web(true)?.typescript(false).out_name(half);
    // The other parts refer to the main one's functions by the linker's names.
    bindgen.keep_lld_exports(true).demangle(false);
    if size == Size::Small {
        bindgen.remove_name_section(true).remove_producers_section(true);
    }
    let mut output = bindgen.generate_output().context("wasm-bindgen")?;
    let exports = &mut output.wasm_mut().exports;
    let streams: Vec<String> =
        exports.iter().filter(|export| export.name.contains(STREAMS)).map(|export| export.name.clone()).collect();
    for name in streams {
        exports.remove(&name).context("an export that is there")?;
    }
    let names = if size == Size::Small { shorten_imports(&mut output, half) } else { BTreeMap::new() };
    output.emit(&fresh).context("wasm-bindgen")?;
    if size == Size::Small {
        let (script, loader) = (format!("{half}.js"), format!("./{half}-parts/load.js"));
        let parts = std::fs::read_to_string(fresh.join(&loader))?;
        let bindings = lean::glue(&std::fs::read_to_string(fresh.join(&script))?, &names);
        std::fs::write(fresh.join(&script), lean::joined(&bindings, &lean::script(&parts), &loader))?;
        std::fs::remove_file(fresh.join(&loader))?;
    }
    step.done();
    if size == Size::Small {
        modules.push(fresh.join(format!("{half}_bg.wasm")));
        for module in &modules {
            shrink(places, module, stop)?;
        }
    }
    let mut files = BTreeSet::new();
    fingerprint::collect(&fresh, &mut files)?;
    let mut made = BTreeSet::new();
    for file in &files {
        let to = pkg.join(file.strip_prefix(&fresh)?);
        place(file, &to, size)?;
        made.insert(to);
    }
    leftovers::remove(pkg, &made, |file| half_of(file) == Some(half))?;
    std::fs::remove_dir_all(&fresh)?;
    Ok(())
}

/// The half that a file below pkg/ is of.
fn half_of(file: &Path) -> Option<&'static str> {
    let first = file.iter().next()?.to_str()?;
    let is_of = |half: &&str| {
        let rest = first.strip_prefix(*half).unwrap_or_default();
        rest == "-parts" || rest.starts_with(".js") || rest.starts_with("_bg.")
    };
    HALVES.into_iter().find(is_of)
}

/// Gives what a module imports of its script short names, and says which. Their long ones end in digits by chance, which
/// compress badly and stand in both.
fn shorten_imports(output: &mut Output, half: &str) -> BTreeMap<String, String> {
    let script = format!("./{half}_bg.js");
    let imports = output.wasm_mut().imports.iter_mut().filter(|import| import.module == script);
    let named = imports.enumerate().map(|(number, import)| {
        let short = lean::short_name(number);
        (std::mem::replace(&mut import.name, short.clone()), short)
    });
    named.collect()
}

/// Splits a linked module into what is needed at once and what may come later (`app::seat_map::signals::later`): the file of
/// the first, and those of the others, which lie beside the scripts already, with one that loads them and a list of
/// which files each is in.
fn take_apart(built: &Path, half: &str, scripts: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    let whole = std::fs::read(built).with_context(|| built.display().to_string())?;
    let main = built.with_file_name(format!("{half}-main.wasm"));
    // A folder for each half: parts go by the same names in all of them.
    let folder = scripts.join(format!("{half}-parts"));
    std::fs::create_dir_all(&folder)?;
    let (loader, script) = (format!("./{half}-parts/load.js"), format!("../{half}.js"));
    let mut options = wasm_split_cli_support::Options::new(&whole);
    options.output_dir = scripts;
    options.main_out_path = &main;
    options.link_name = &loader;
    options.main_module = &script;
    let split = wasm_split_cli_support::transform(options).map_err(|why| anyhow::anyhow!("{why:?}"))?;
    // Which files a part is in, for whoever keeps them for a time without a network (`keep-door.js`).
    let files: BTreeMap<_, _> = split.prefetch_map.into_iter().collect();
    std::fs::write(folder.join("parts.json"), serde_json::to_vec(&files)?)?;
    let mut parts = Vec::new();
    for part in split.split_modules {
        let moved = folder.join(part.file_name().context("a part has a name")?);
        std::fs::rename(&part, &moved)?;
        parts.push(moved);
    }
    Ok((main, parts))
}

fn shrink(places: &Places, module: &Path, stop: &Stop) -> Result<()> {
    let Some(program) = wasm_opt::find_or_install(places, stop)? else {
        return Ok(());
    };
    let before = module.metadata()?.len();
    let step = Step::start("shrink it with wasm-opt");
    let small = module.with_extension("small");
    let mut command = Command::new(program);
    // Again until nothing more is found.
    command.args(["-Oz", "--converge"]);
    // What rustc emits by default; the section that says so is gone after binding.
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

fn plain(places: &Places, pkg: &Path) -> Result<()> {
    let (statics, site) = (places.root.join("frontend/static"), places.site());
    let (mut files, mut made) = (BTreeSet::new(), BTreeSet::new());
    fingerprint::collect(&statics, &mut files)?;
    for file in &files {
        let folder = if is_a(file, "js") { pkg } else { &site };
        let to = folder.join(file.strip_prefix(&statics)?);
        if is_a(file, "js") {
            write(&to, lean::script(&std::fs::read_to_string(file)?).as_bytes(), Size::Small)?;
        } else {
            place(file, &to, Size::Small)?;
        }
        made.insert(to);
    }
    let style = places.root.join("style");
    let mut files = BTreeSet::new();
    fingerprint::collect(&style, &mut files)?;
    let (sheets, others): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(|file| is_a(file, "css"));
    for (name, is_in) in SHEETS {
        let mut all = String::new();
        for sheet in sheets.iter().filter(|sheet| sheet.file_name().is_some_and(|name| is_in(&name.to_string_lossy())))
        {
            all.push_str(&std::fs::read_to_string(sheet)?);
            all.push('\n');
        }
        let to = site.join("style").join(name);
        write(&to, lean::style(&all).as_bytes(), Size::Small)?;
        made.insert(to);
    }
    for file in &others {
        let to = site.join("style").join(file.strip_prefix(&style)?);
        place(file, &to, Size::Small)?;
        made.insert(to);
    }
    leftovers::remove(pkg, &made, |file| half_of(file).is_none())?;
    leftovers::remove(&site.join("style"), &made, |_| true)?;
    leftovers::remove(&site.join("fonts"), &made, |_| true)
}

fn is_a(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|own| own == ending)
}

fn place(from: &Path, to: &Path, size: Size) -> Result<()> {
    write(to, &std::fs::read(from)?, size)
}

/// Writes a file and its compressed siblings. Each appears whole: a server may be reading them.
fn write(file: &Path, bytes: &[u8], size: Size) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let siblings = [with_ending(file, "br"), with_ending(file, "gz")];
    for sibling in &siblings {
        // An old sibling of a new file would be served instead of it.
        if sibling.exists() {
            std::fs::remove_file(sibling)?;
        }
    }
    replace(file, bytes)?;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if size == Size::Large || !COMPRESSIBLE.contains(&ending) {
        return Ok(());
    }
    let step = Step::quiet(format!("compress {}", file.file_name().unwrap_or_default().to_string_lossy()));
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
    fn a_file_of_a_half_is_told_from_a_script_that_stands_by_itself() {
        for (file, half) in [
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
            assert_eq!(half_of(Path::new(file)), half, "{file}");
        }
    }

    #[test]
    fn the_sheets_of_the_map_are_made_of_files_that_are_there() {
        let style = Path::new(env!("CARGO_MANIFEST_DIR")).join("../style");
        for name in OF_THE_MAP.iter().chain(&AFTER_THE_MAP) {
            assert!(style.join(name).exists(), "{name}");
        }
    }
}

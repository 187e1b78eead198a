//! Makes the scripts and modules of a client bundle from a linked module: splits it, binds it to JavaScript, shrinks it.
//!
//! One module may serve several bundles: the first name is the module's, and the script of each other name forwards to
//! it. Then the module is compiled once, and pages load a larger one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use wasm_bindgen_cli_support::{Bindgen, Output};
use wasm_encoder::{ExportSection, Module, RawSection};
use wasmparser::{Parser, Payload};

use crate::minify;
use crate::output::{self, Compression, files_below, remove_stale};

/// The names under which pages load a module (`WasmModule` of `app/src/shell.rs`).
const BUNDLES: [&str; 3] = ["show", "pages", "staff"];

/// Part of the names that leptos exports for streaming answers. Rowlock has none, and an export keeps its code.
const STREAMING: &str = "intounderlying";

/// Builds the bundles with these names into `pkg/` of the site. Without `wasm_opt`, modules keep the size that the
/// compiler gave them.
pub fn build(
    compression: Compression,
    module: &Path,
    site: &Path,
    names: &[&str],
    wasm_opt: Option<&Path>,
) -> Result<()> {
    let [name, aliases @ ..] = names else { bail!("a bundle without a name") };
    for name in names {
        ensure!(BUNDLES.contains(name), "there is no bundle {name}");
    }
    let fresh = site.join("pkg-fresh");
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh)?;
    }
    let modules = bind(compression, module, name, &fresh)?;
    if let Some(program) = wasm_opt {
        for module in &modules {
            shrink(program, module)?;
        }
    }
    for alias in aliases {
        std::fs::write(fresh.join(format!("{alias}.js")), forwarding_script(name))?;
        // The page passes the address of the module under its own name.
        std::fs::copy(fresh.join(format!("{name}_bg.wasm")), fresh.join(format!("{alias}_bg.wasm")))?;
    }
    let pkg = site.join("pkg");
    let mut written = BTreeSet::new();
    for file in files_below(&fresh)? {
        let to = pkg.join(file.strip_prefix(&fresh)?);
        output::copy(&file, &to, compression)?;
        written.insert(to);
    }
    remove_stale(&pkg, &written, |file| bundle_of(file).is_some_and(|bundle| names.contains(&bundle)))?;
    std::fs::remove_dir_all(&fresh)?;
    Ok(())
}

/// Returns the script of a bundle whose islands are in the module of another one.
fn forwarding_script(name: &str) -> String {
    format!("export * from \"./{name}.js\";\nexport {{ default }} from \"./{name}.js\";\n")
}

/// Returns the bundle of a file below pkg/.
pub fn bundle_of(file: &Path) -> Option<&'static str> {
    let first = file.iter().next()?.to_str()?;
    let is_of = |bundle: &&str| {
        let rest = first.strip_prefix(*bundle).unwrap_or_default();
        rest == "-parts" || rest.starts_with(".js") || rest.starts_with("_bg.")
    };
    BUNDLES.into_iter().find(is_of)
}

/// Splits a linked module and binds it to JavaScript, into a folder. Returns all modules there.
fn bind(compression: Compression, linked: &Path, name: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    let is_delivered = compression != Compression::None;
    let (main, mut modules) = split_module(linked, name, folder)?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&main).web(true)?.typescript(false).out_name(name);
    // The other parts refer to functions of the main one by the linker's names.
    bindgen.keep_lld_exports(true).demangle(false);
    if is_delivered {
        bindgen.remove_name_section(true).remove_producers_section(true);
    }
    let mut output = bindgen.generate_output().context("wasm-bindgen")?;
    let imports = if is_delivered { shorten_imports(&mut output, name) } else { BTreeMap::new() };
    output.emit(folder).context("wasm-bindgen")?;
    modules.push(folder.join(format!("{name}_bg.wasm")));
    if is_delivered {
        let (script, loader) = (folder.join(format!("{name}.js")), format!("./{name}-parts/load.js"));
        let parts = std::fs::read_to_string(folder.join(&loader))?;
        let bindings = minify::minify_bindings(&std::fs::read_to_string(&script)?, &imports);
        std::fs::write(&script, minify::inline_loader(&bindings, &minify::minify_script(&parts), &loader))?;
        std::fs::remove_file(folder.join(&loader))?;
    }
    Ok(modules)
}

/// Returns a linked module without the exports for streaming answers. What only they need then belongs to no part.
fn without_streaming(linked: &[u8]) -> Result<Vec<u8>> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(linked) {
        let payload = payload?;
        if let Payload::ExportSection(exports) = payload {
            let mut kept = ExportSection::new();
            for export in exports {
                let export = export?;
                if !export.name.contains(STREAMING) {
                    kept.export(export.name, export.kind.into(), export.index);
                }
            }
            module.section(&kept);
        } else if let Some((id, range)) = payload.as_section() {
            // Relocations name sections by their order, which stays.
            let data = &linked[usize::try_from(range.start)?..usize::try_from(range.end)?];
            module.section(&RawSection { id, data });
        }
    }
    Ok(module.finish())
}

/// Renames a module's imports to short names. Returns the short name of each. The long names end in random digits, which
/// compress badly and occur in both files.
fn shorten_imports(output: &mut Output, name: &str) -> BTreeMap<String, String> {
    let script = format!("./{name}_bg.js");
    let imports = output.wasm_mut().imports.iter_mut().filter(|import| import.module == script);
    let named = imports.enumerate().map(|(number, import)| {
        let short = minify::short_name(number);
        (std::mem::replace(&mut import.name, short.clone()), short)
    });
    named.collect()
}

/// Splits a linked module into the main part and lazily loaded parts (`app::seat_map::deferred`). Returns the main
/// file and the files of the others, which are already next to the scripts, with a loader and a list of each part's files.
fn split_module(linked: &Path, name: &str, scripts: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    let whole = without_streaming(&std::fs::read(linked).with_context(|| linked.display().to_string())?)?;
    let main = linked.with_file_name(format!("{name}-main.wasm"));
    // A folder per bundle: the parts have the same names in all of them.
    let folder = scripts.join(format!("{name}-parts"));
    std::fs::create_dir_all(&folder)?;
    let (loader, script) = (format!("./{name}-parts/load.js"), format!("../{name}.js"));
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

/// Shrinks a module with wasm-opt.
fn shrink(program: &Path, module: &Path) -> Result<()> {
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
    let status = command.arg(module).arg("-o").arg(&small).status().context("cannot start wasm-opt")?;
    ensure!(status.success(), "wasm-opt ended with {status}");
    std::fs::rename(&small, module)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{CodeSection, ExportKind, Function, FunctionSection, TypeSection};

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
    fn exports_for_streaming_answers_are_removed_and_the_rest_stays() {
        let (mut types, mut functions, mut exports, mut code) =
            (TypeSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
        types.ty().function([], []);
        functions.function(0);
        for name in ["SeatMap", "intounderlyingsink_write", "__wbindgen_describe_intounderlyingsink_write"] {
            exports.export(name, ExportKind::Func, 0);
        }
        let mut body = Function::new([]);
        body.instructions().end();
        code.function(&body);
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&exports).section(&code);
        let left = without_streaming(&module.finish()).expect("a valid module");
        let mut names = Vec::new();
        for payload in Parser::new(0).parse_all(&left) {
            match payload.expect("a valid module") {
                Payload::ExportSection(exports) => {
                    names.extend(exports.into_iter().map(|export| export.expect("an export").name.to_owned()));
                }
                Payload::CodeSectionStart { count, .. } => assert_eq!(count, 1, "the split drops functions, not this"),
                _ => {}
            }
        }
        assert_eq!(names, ["SeatMap"]);
    }

    #[test]
    fn a_forwarding_script_exports_all_names_of_the_module_and_its_default() {
        assert_eq!(
            forwarding_script("staff"),
            "export * from \"./staff.js\";\nexport { default } from \"./staff.js\";\n"
        );
    }
}

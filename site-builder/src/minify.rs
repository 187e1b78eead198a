//! Minifies style sheets and scripts: removes comments, indentation and long names.
//!
//! It does not parse either language: the style sheets are this repository's, and generated bindings have a fixed
//! form. Scripts keep their line breaks, so that missing semicolons do no harm.

use std::collections::BTreeMap;

/// Part of the names that leptos exports for streaming answers. Rowlock has none, and an unused export keeps its code.
const STREAMING: &str = "IntoUnderlying";

/// Removes comments and white space from a style sheet, a sixth of its size.
pub fn minify_style(sheet: &str) -> String {
    let mut bare = String::with_capacity(sheet.len());
    let mut rest = sheet;
    while let Some(start) = rest.find("/*") {
        bare.push_str(&rest[..start]);
        let end = rest[start..].find("*/").map_or(rest.len(), |length| start + length + 2);
        rest = &rest[end..];
    }
    bare.push_str(rest);
    let mut out = String::with_capacity(bare.len());
    for line in bare.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Within a value or a selector a line break is a space; next to these characters it is dropped.
        if !out.is_empty() && !out.ends_with(['{', '}', ';', ',']) && !line.starts_with(['{', '}']) {
            out.push(' ');
        }
        if line == "}" && out.ends_with(';') {
            out.pop();
        }
        match line.strip_suffix('{') {
            Some(selector) => {
                out.push_str(selector.trim_end());
                out.push('{');
            }
            None => out.push_str(&declaration(line)),
        }
    }
    out
}

/// Removes the space of a declaration such as `color: red;`; other lines are unchanged.
fn declaration(line: &str) -> String {
    match line.split_once(": ") {
        Some((name, value)) if name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-') => {
            format!("{name}:{value}")
        }
        _ => line.to_owned(),
    }
}

/// Removes comment lines and indentation from a script.
pub fn minify_script(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_comment = false;
    for line in text.lines().map(str::trim) {
        if in_comment || line.starts_with("/*") {
            in_comment = !line.ends_with("*/");
        } else if !line.is_empty() && !line.starts_with("//") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Minifies the bindings of a module: removes the streaming classes and gives imports their short `names`.
pub fn minify_bindings(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    // End condition of the statement being skipped: a brace in the first column, or a semicolon.
    let mut skipping: Option<fn(&str) -> bool> = None;
    for line in text.lines() {
        if let Some(is_end) = skipping {
            skipping = skipping.filter(|_| !is_end(line));
        } else if line.contains(STREAMING) && line.starts_with("export class ") {
            skipping = Some(|line| line == "}");
        } else if line.contains(STREAMING) && line.starts_with("const ") {
            skipping = Some(|line| line.ends_with(';'));
        } else if !(line.contains(STREAMING) && line.starts_with("if (Symbol.dispose)")) {
            out.push_str(&renamed(line, names).unwrap_or_else(|| line.to_owned()));
            out.push('\n');
        }
    }
    minify_script(&out)
}

/// Inlines the loader script of a module's parts, at the relative path `loader`, into the bindings. That saves a request
/// on which others depend.
pub fn inline_loader(bindings: &str, parts: &str, loader: &str) -> String {
    let ending = format!(" from \"{loader}\"");
    // A module without parts has no loader.
    if !bindings.contains(&ending) {
        return bindings.to_owned();
    }
    let folder = loader.trim_start_matches("./").rsplit_once('/').map_or("", |(folder, _)| folder);
    let (mut out, mut names) = (String::new(), Vec::new());
    for line in parts.lines().filter(|line| !line.starts_with("import ")) {
        let line = match line.strip_prefix("export const ") {
            Some(rest) => {
                names.extend(rest.split_whitespace().next());
                format!("const {rest}")
            }
            None => line.to_owned(),
        };
        out.push_str(&line.replace("new URL(\"./", &format!("new URL(\"./{folder}/")));
        out.push('\n');
    }
    let all = names.join(", ");
    for line in bindings.lines() {
        let import =
            line.trim_end_matches(';').strip_suffix(&ending).and_then(|line| line.strip_prefix("import * as "));
        match import {
            Some(name) => out.push_str(&format!("const {name} = {{ {all} }};")),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Replaces the name of an imported function, `name: function…`, by its short name.
fn renamed(line: &str, names: &BTreeMap<String, String>) -> Option<String> {
    let (name, function) = line.trim_start().split_once(": ")?;
    Some(format!("{}: {function}", names.get(name)?))
}

/// Returns the shortest names in order: `a` to `z`, then `aa`, `ba` and so on.
pub fn short_name(number: usize) -> String {
    let (mut rest, mut name) = (number, String::new());
    loop {
        name.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or_default()));
        if rest < 26 {
            return name;
        }
        rest = rest / 26 - 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_minified_style_is_equivalent() {
        let sheet = "/* seats */\n.seat,\n.row > a {\n  fill: red; /* or\n not */\n  margin: 0\n    auto;\n}\n\n@media (min-width: 48rem) {\n  .mine:not(:focus, :active) {\n    content: \"a: b\";\n  }\n}";
        assert_eq!(
            minify_style(sheet),
            ".seat,.row > a{fill:red;margin:0 auto}@media (min-width: 48rem){.mine:not(:focus, :active){content:\"a: b\"}}"
        );
        assert_eq!(minify_style("a{}/* without an end"), "a{}");
        assert_eq!(minify_style("a {\n  --b: calc(\n    1px + 2px\n  );\n}"), "a{--b:calc( 1px + 2px )}");
    }

    #[test]
    fn a_minified_script_keeps_its_line_breaks() {
        let text = "// why\n/** @type {x} */\n/*\n * more\n */\nconst a = `b // c`;\n\n  if (a)\n    go();\n";
        assert_eq!(minify_script(text), "const a = `b // c`;\nif (a)\ngo();\n");
    }

    #[test]
    fn bindings_lose_streaming_classes_and_long_import_names() {
        let text = "export class IntoUnderlyingSink {\n    free() {\n        go();\n    }\n}\n\
                    if (Symbol.dispose) IntoUnderlyingSink.prototype[Symbol.dispose] = 1;\n\
                    const import0 = {\n        __proto__: null,\n        __wbg_get_2: function(arg0) {\n            return arg0.get;\n        },\n};\n\
                    const IntoUnderlyingSinkFinalization = (typeof x === 'undefined')\n    ? 1\n    : new X(ptr => 1);\nlast();\n";
        let names = BTreeMap::from([("__wbg_get_2".to_owned(), "a".to_owned())]);
        assert_eq!(
            minify_bindings(text, &names),
            "const import0 = {\n__proto__: null,\na: function(arg0) {\nreturn arg0.get;\n},\n};\nlast();\n"
        );
    }

    #[test]
    fn the_loader_is_inlined_into_the_bindings() {
        let parts = "import { initSync } from \"../show.js\";\nconst a = new URL(\"./rest.wasm\", import.meta.url);\nexport const load = wrap(a);\n";
        let bindings = "import * as import1 from \"./show-parts/load.js\"\nimport * as import2 from \"./show-parts/load.js\"\nfunction initSync() {}\n";
        assert_eq!(
            inline_loader(bindings, parts, "./show-parts/load.js"),
            "const a = new URL(\"./show-parts/rest.wasm\", import.meta.url);\nconst load = wrap(a);\n\
             const import1 = { load };\nconst import2 = { load };\nfunction initSync() {}\n"
        );
        assert_eq!(inline_loader("last();\n", parts, "./pages-parts/load.js"), "last();\n");
    }

    #[test]
    fn short_names_differ() {
        let names: BTreeSet<String> = (0..1_000).map(short_name).collect();
        assert_eq!(names.len(), 1_000);
        assert_eq!(
            (short_name(25), short_name(26), short_name(701)),
            ("z".to_owned(), "aa".to_owned(), "zz".to_owned())
        );
    }
}

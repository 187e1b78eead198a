//! Minifies styles and scripts: strips comments, indentation and long names.
//!
//! No reader of either language: styles are ours, and what is written by the generator of bindings has a form to rely
//! on. Lines stay lines in scripts, so that nothing depends on where a semicolon is missing.

use std::collections::BTreeMap;

/// What leptos exports for answers that stream, which ours do not: nobody calls it, and an export keeps its code.
const STREAMS: &str = "IntoUnderlying";

/// A style sheet without its comments and spaces: they are for us, and a sixth of what is sent.
pub fn style(sheet: &str) -> String {
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
        // Within a value or a selector a line's end is a space; around these signs it is nothing.
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

/// `color: red;` without its space; what is no declaration stays as it is.
fn declaration(line: &str) -> String {
    match line.split_once(": ") {
        Some((name, value)) if name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-') => {
            format!("{name}:{value}")
        }
        _ => line.to_owned(),
    }
}

/// A script without lines that are comments, and without indentation.
pub fn script(text: &str) -> String {
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

/// The script that binds a module: without what streams, and with the short `names` of what the module imports.
pub fn glue(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    // What ends the statement that is left out: a brace in the first column, or a semicolon.
    let mut leaving_out: Option<fn(&str) -> bool> = None;
    for line in text.lines() {
        if let Some(is_end) = leaving_out {
            leaving_out = leaving_out.filter(|_| !is_end(line));
        } else if line.contains(STREAMS) && line.starts_with("export class ") {
            leaving_out = Some(|line| line == "}");
        } else if line.contains(STREAMS) && line.starts_with("const ") {
            leaving_out = Some(|line| line.ends_with(';'));
        } else if !(line.contains(STREAMS) && line.starts_with("if (Symbol.dispose)")) {
            out.push_str(&renamed(line, names).unwrap_or_else(|| line.to_owned()));
            out.push('\n');
        }
    }
    script(&out)
}

/// A script of bindings with the one that loads its module's parts in it, which lies at `loader` from there: one request
/// fewer, and one that others waited for.
pub fn joined(bindings: &str, parts: &str, loader: &str) -> String {
    let ending = format!(" from \"{loader}\"");
    // A module of one part has nothing to load.
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

/// The beginning of an imported function, `name: function…`, under its short name.
fn renamed(line: &str, names: &BTreeMap<String, String>) -> Option<String> {
    let (name, function) = line.trim_start().split_once(": ")?;
    Some(format!("{}: {function}", names.get(name)?))
}

/// The shortest names there are, one after another: `a` to `z`, then `aa`, `ba` and so on.
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
    fn a_lean_style_says_the_same() {
        let sheet = "/* seats */\n.seat,\n.row > a {\n  fill: red; /* or\n not */\n  margin: 0\n    auto;\n}\n\n@media (min-width: 48rem) {\n  .mine:not(:focus, :active) {\n    content: \"a: b\";\n  }\n}";
        assert_eq!(
            style(sheet),
            ".seat,.row > a{fill:red;margin:0 auto}@media (min-width: 48rem){.mine:not(:focus, :active){content:\"a: b\"}}"
        );
        assert_eq!(style("a{}/* without an end"), "a{}");
        assert_eq!(style("a {\n  --b: calc(\n    1px + 2px\n  );\n}"), "a{--b:calc( 1px + 2px )}");
    }

    #[test]
    fn a_lean_script_keeps_its_lines() {
        let text = "// why\n/** @type {x} */\n/*\n * more\n */\nconst a = `b // c`;\n\n  if (a)\n    go();\n";
        assert_eq!(script(text), "const a = `b // c`;\nif (a)\ngo();\n");
    }

    #[test]
    fn bindings_lose_what_streams_and_imports_their_long_names() {
        let text = "export class IntoUnderlyingSink {\n    free() {\n        go();\n    }\n}\n\
                    if (Symbol.dispose) IntoUnderlyingSink.prototype[Symbol.dispose] = 1;\n\
                    const import0 = {\n        __proto__: null,\n        __wbg_get_2: function(arg0) {\n            return arg0.get;\n        },\n};\n\
                    const IntoUnderlyingSinkFinalization = (typeof x === 'undefined')\n    ? 1\n    : new X(ptr => 1);\nlast();\n";
        let names = BTreeMap::from([("__wbg_get_2".to_owned(), "a".to_owned())]);
        assert_eq!(
            glue(text, &names),
            "const import0 = {\n__proto__: null,\na: function(arg0) {\nreturn arg0.get;\n},\n};\nlast();\n"
        );
    }

    #[test]
    fn bindings_load_their_parts_themselves() {
        let parts = "import { initSync } from \"../show.js\";\nconst a = new URL(\"./rest.wasm\", import.meta.url);\nexport const load = wrap(a);\n";
        let bindings = "import * as import1 from \"./show-parts/load.js\"\nimport * as import2 from \"./show-parts/load.js\"\nfunction initSync() {}\n";
        assert_eq!(
            joined(bindings, parts, "./show-parts/load.js"),
            "const a = new URL(\"./show-parts/rest.wasm\", import.meta.url);\nconst load = wrap(a);\n\
             const import1 = { load };\nconst import2 = { load };\nfunction initSync() {}\n"
        );
        assert_eq!(joined("last();\n", parts, "./pages-parts/load.js"), "last();\n");
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

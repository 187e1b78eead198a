//! The table of endpoints in `docs/api.md`, generated from the handlers' documentation and the table of routes.
//!
//! `cargo xtask api-table` runs the test below so that it writes the table; otherwise the test compares.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::authorisation::TABLE;

/// The document.
const DOCUMENT: &str = "docs/api.md";
/// Lines before and after the generated table.
const BEGIN: &str = "<!-- Written by `cargo xtask api-table` from the handlers. -->\n\n";
const END: &str = "\n<!-- End of the generated table. -->\n";
/// Set by `cargo xtask api-table`: write the table instead of comparing it.
const WRITE: &str = "WRITE_API_TABLE";

/// One row for each route, in the order of [`TABLE`].
fn table(openapi: &Value) -> String {
    let mut out = String::from("| | | | for |\n|---|---|---|---|\n");
    for (method, path, access, _) in TABLE {
        let operation = &openapi["paths"][path][method.to_lowercase()];
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let key = if parameters.any(|parameter| parameter["name"] == "Idempotency-Key") { "*key.* " } else { "" };
        let text = text(operation).replace('|', "\\|");
        let audience = access.audience().unwrap_or_default();
        let _infallible = writeln!(out, "| {method} | `{path}` | {key}{text} | {audience} |");
    }
    out
}

/// The first paragraph after the summary, which has the details, or the summary.
fn text(operation: &Value) -> String {
    let part = |name: &str| operation[name].as_str().unwrap_or_default().trim();
    let details = part("description").split("\n\n").next().unwrap_or_default();
    let text = if details.is_empty() { part("summary") } else { details };
    text.replace('\n', " ").trim_end_matches('.').to_owned()
}

#[test]
fn api_md_has_the_table_of_all_endpoints() {
    let openapi = serde_json::to_value(super::router::openapi()).expect("a document is JSON");
    let table = table(&openapi);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DOCUMENT);
    let document = std::fs::read_to_string(&path).expect("docs/api.md");
    let (before, rest) = document.split_once(BEGIN).expect("the begin of the table");
    let (written, after) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, [before, BEGIN, &table, END, after].concat()).expect("docs/api.md is written");
        return;
    }
    for (old, new) in written.lines().zip(table.lines()) {
        assert_eq!(old, new, "run `cargo xtask api-table`");
    }
    assert_eq!(written, table, "run `cargo xtask api-table`");
}

//! Checks that ARCHITECTURE.md and the documents around it name only what the checkout has.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::paths::Paths;

/// Maximum length of ARCHITECTURE.md, in words as `wc -w` counts them.
const MAX_WORDS: usize = 2_000;
/// Minimum number of rows in the table "To change X, edit Y".
const MIN_ROWS: usize = 25;
const TABLE: &str = "## To change X, edit Y";
/// Documents whose links and paths are checked, besides the decisions.
const CHECKED: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/invariants.md", "docs/tables.md"];
const DECISIONS: &str = "docs/decisions";
/// Endings that make a name in backticks with a slash a path of a file.
const ENDINGS: [&str; 5] = [".rs", ".lua", ".md", ".sql", ".ts"];
/// Parts of paths in recipes that stand for a name the reader chooses.
const PLACEHOLDERS: [&str; 4] = ["NAME", "NNNN", "TAG", "…"];

fn root() -> PathBuf {
    Paths::find().expect("the checkout").root
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

/// Returns the texts in backticks on one line or cell.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the rows of the table below [`TABLE`], without its head.
fn rows(document: &str) -> Vec<&str> {
    let (_, table) = document.split_once(TABLE).expect("the table");
    let table = table.split("\n## ").next().unwrap_or_default();
    table.lines().filter(|line| line.starts_with('|')).skip(2).collect()
}

/// Returns `true` if `text` contains `name` and no longer identifier around it.
fn has_name(text: &str, name: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

/// Returns the text of a Rust or Lua file without the lines that are comments: they may contain any word.
fn without_comments(text: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("--");
    text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

/// Returns the findings in one row: a file that does not exist, a name that is not in the code of the file before it.
fn findings_of_row(root: &Path, row: &str) -> Vec<String> {
    let edit = row.trim_matches('|').rsplit('|').next().unwrap_or_default();
    let (mut findings, mut text) = (Vec::new(), None);
    for span in code_spans(edit) {
        if span.contains('/') {
            text = fs::read_to_string(root.join(span)).ok().map(|text| without_comments(&text));
            if text.is_none() {
                findings.push(format!("{span} does not exist: {row}"));
            }
        } else if !text.as_ref().is_some_and(|text| has_name(text, span)) {
            findings.push(format!("{span} is not in the file named before it: {row}"));
        }
    }
    if code_spans(edit).next().is_none() && !edit.contains("](") {
        findings.push(format!("names no file: {row}"));
    }
    findings
}

/// Returns the paths in backticks: those that begin with a folder of the checkout, and those that end as a file does.
fn paths_named<'a>(document: &'a str, folders: &HashSet<String>) -> Vec<&'a str> {
    let is_path = |span: &&str| {
        let Some((first, _)) = span.split_once('/') else { return false };
        (folders.contains(first) || ENDINGS.iter().any(|ending| span.ends_with(ending)))
            && !PLACEHOLDERS.iter().any(|placeholder| span.contains(placeholder))
            && !span.contains([' ', '*', '{', ':'])
    };
    document.lines().flat_map(code_spans).filter(is_path).collect()
}

/// Returns the targets of links that are no addresses.
fn links(document: &str) -> impl Iterator<Item = &str> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// Returns the anchors of a document's headings, as GitHub makes them.
fn anchors(document: &str) -> HashSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            heading.chars().filter(|character| character.is_alphanumeric() || matches!(character, '-' | '_')).collect()
        })
        .collect()
}

fn findings_of_links(root: &Path, name: &str, document: &str) -> Vec<String> {
    let folder = root.join(name).parent().expect("a folder").to_owned();
    let is_broken = |target: &&str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { root.join(name) } else { folder.join(path) };
        !path.exists() || (!anchor.is_empty() && !anchors(&read(&path)).contains(anchor))
    };
    links(document).filter(is_broken).map(|target| format!("{name}: the link {target} leads nowhere")).collect()
}

#[test]
fn architecture_has_at_most_two_thousand_words() {
    let words = read(&root().join("ARCHITECTURE.md")).split_whitespace().count();
    assert!(words <= MAX_WORDS, "{words} words");
}

#[test]
fn files_and_names_in_the_table_of_changes_exist() {
    let root = root();
    let document = read(&root.join("ARCHITECTURE.md"));
    let rows = rows(&document);
    assert!(rows.len() >= MIN_ROWS, "{} rows", rows.len());
    let findings: Vec<String> = rows.into_iter().flat_map(|row| findings_of_row(&root, row)).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn paths_and_links_in_documents_lead_somewhere() {
    let root = root();
    let entries = fs::read_dir(&root).expect("the checkout").filter_map(Result::ok);
    let folders: HashSet<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let decisions = fs::read_dir(root.join(DECISIONS)).expect("the decisions").filter_map(Result::ok);
    let decisions = decisions.map(|entry| format!("{DECISIONS}/{}", entry.file_name().to_string_lossy()));
    let mut findings = Vec::new();
    for name in CHECKED.into_iter().map(str::to_owned).chain(decisions) {
        let document = read(&root.join(&name));
        let missing = paths_named(&document, &folders).into_iter().filter(|path| !root.join(path).exists());
        findings.extend(missing.map(|path| format!("{name}: {path} does not exist")));
        findings.extend(findings_of_links(&root, &name, &document));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn a_missing_file_or_name_in_a_row_is_found() {
    let root = root();
    let row = |edit: &str| findings_of_row(&root, &format!("| this | {edit} |")).len();
    assert_eq!(row("`xtask/src/paths.rs`: `Paths`, `is_root`"), 0);
    assert_eq!(row("`xtask/src/paths.rs`: `is_roo`"), 1);
    assert_eq!(row("`xtask/src/no_such_file.rs`: `Paths`"), 2);
    assert_eq!(row("`Paths`"), 1);
    assert_eq!(row("a word"), 1);
    assert_eq!(row("[recipe](CONTRIBUTING.md#recipes)"), 0);
    assert_eq!(without_comments("/// A name.\nfn other() {}\n-- A name."), "fn other() {}");
}

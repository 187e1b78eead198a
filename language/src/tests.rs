//! Tests that the message files agree with each other, with their languages, and with the code that uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use domain::api::accounts::THEATRE_ACTIONS;

use super::catalogue::{Messages, of};
use super::message::{branches, closing};
use super::{Language, say_in, with_language};

/// The keys of the texts about seat kinds.
const SEAT_KINDS: &str = "domain/src/api/seat_kind.rs";
/// Prefixes of keys composed at run time: problems by their code.
const BY_CODE: [&str; 2] = ["problem.", "staff_problem."];

/// The code of a message about a problem.
fn code_of(key: &str) -> Option<&str> {
    BY_CODE.iter().find_map(|prefix| key.strip_prefix(prefix))
}

/// Islands that contain another one: the folder of each, and that of the contained one.
const CONTAINED_ISLANDS: [(&str, &str); 4] = [
    ("app/src/show_island", "app/src/seat_map"),
    ("app/src/show_island", "app/src/checkout"),
    ("app/src/staff/islands/box_office", "app/src/seat_map"),
    ("app/src/staff/islands/box_office", "app/src/checkout"),
];

/// Messages that are the same in another language as in English.
const SAME_AS_IN_ENGLISH: [(&str, &[Language]); 15] = [
    ("search.format", &[Language::German]),
    ("pay.name", &[Language::German]),
    ("ticket.format", &[Language::German]),
    ("ticket.name", &[Language::German]),
    ("map.live", &[Language::German]),
    ("organiser.format", &[Language::German]),
    ("organiser.genre", &[Language::German]),
    ("staff.team", &[Language::German]),
    ("systems.webhooks", &[Language::German, Language::Spanish]),
    ("team.title", &[Language::German]),
    ("map.seconds", &[Language::German, Language::Spanish]),
    ("booking.total", &[Language::Spanish]),
    ("list.hours", &[Language::Spanish]),
    ("list.hours_and_minutes", &[Language::Spanish]),
    ("list.minutes", &[Language::Spanish]),
];

/// Collects the placeholders of a message, and the choices of its plurals.
fn placeholders(pattern: &str, found: &mut BTreeSet<String>, plurals: &mut Vec<Vec<String>>) {
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        let end = closing(&rest[at..]).unwrap_or_else(|| panic!("a brace is open in {pattern}"));
        let inside = &rest[at + 1..at + end];
        let mut parts = inside.splitn(3, ',');
        let name = parts.next().unwrap_or_default().trim();
        let kind = parts.next().unwrap_or_default().trim();
        assert!(matches!(kind, "" | "plural" | "select"), "{pattern}");
        found.insert(format!("{name} {kind}"));
        if let Some(choices) = parts.next() {
            let names: Vec<String> = branches(choices).map(|(name, _)| name.to_owned()).collect();
            assert!(names.iter().any(|name| name == "other"), "{pattern} has no other");
            for (_, text) in branches(choices) {
                placeholders(text, found, plurals);
            }
            if kind == "plural" {
                plurals.push(names);
            }
        }
        rest = &rest[at + end + 1..];
    }
    assert!(!rest.contains('}'), "a brace too many in {pattern}");
}

/// Collects the source files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The groups of the message keys.
fn groups() -> BTreeSet<&'static str> {
    of(Language::English).keys().filter_map(|key| Some(key.split_once('.')?.0)).collect()
}

/// Every literal that looks like a message key, with its file.
fn keys_in_code(folders: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let groups = groups();
    let is_key = |text: &str| {
        let Some((group, name)) = text.split_once('.') else { return false };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let is_file = ["ics", "js", "css", "json", "svg", "rs", "lua"].contains(&name);
        groups.contains(group) && is_name && !is_file
    };
    let mut files = Vec::new();
    for path in folders {
        if path.is_dir() { sources(path, &mut files) } else { files.push(path.clone()) }
    }
    let mut keys = BTreeMap::new();
    for file in files.iter().filter(|file| !file.ends_with("language/src/tests.rs")) {
        let text = std::fs::read_to_string(file).expect("a source is text");
        for (at, _) in text.match_indices('"') {
            let literal = text[at + 1..].split('"').next().unwrap_or_default();
            if is_key(literal) {
                keys.insert(literal.to_owned(), file.clone());
            }
        }
    }
    keys
}

#[test]
fn every_language_has_the_same_messages_and_each_once() {
    let english: Vec<&String> = of(Language::English).keys().collect();
    for language in Language::ALL {
        assert_eq!(of(language).keys().collect::<Vec<_>>(), english, "{language:?}");
        let lines = language.facts().messages.lines().filter(|line| line.contains("\": \"")).count();
        assert_eq!(lines, english.len(), "{language:?} has a message twice");
        let strange = of(language).iter().find(|(_, text)| text.contains('\'') || text.trim().is_empty());
        assert_eq!(strange, None, "{language:?}");
    }
}

#[test]
fn every_message_takes_the_same_values_in_every_language() {
    let takes = |messages: &Messages, key: &str| {
        let mut found = BTreeSet::new();
        placeholders(&messages[key], &mut found, &mut Vec::new());
        found
    };
    for key in of(Language::English).keys() {
        // A clock has twelve hours or twenty-four.
        if key.starts_with("date.time") {
            continue;
        }
        for language in Language::ALL {
            assert_eq!(takes(of(language), key), takes(of(Language::English), key), "{language:?} {key}");
        }
    }
}

#[test]
fn every_plural_offers_all_categories_of_its_language_and_no_others() {
    for language in Language::ALL {
        for (key, text) in of(language) {
            let mut plurals = Vec::new();
            placeholders(text, &mut BTreeSet::new(), &mut plurals);
            for plural in plurals {
                let named: Vec<&str> =
                    plural.iter().map(String::as_str).filter(|name| !name.starts_with('=')).collect();
                assert_eq!(named, language.facts().plural.categories, "{language:?} {key}");
            }
        }
    }
}

#[test]
fn messages_of_other_languages_are_translated() {
    for language in Language::ALL.into_iter().filter(|language| *language != Language::English) {
        for (key, text) in of(language) {
            let mut names = BTreeSet::new();
            placeholders(text, &mut names, &mut Vec::new());
            // Whether any word is left without the values.
            let mut bare = text.clone();
            for name in &names {
                bare = bare.replace(&format!("{{{}}}", name.trim()), "");
            }
            let has_words = bare.chars().any(char::is_alphabetic);
            let may_be_same = SAME_AS_IN_ENGLISH.iter().any(|(same, where_)| same == key && where_.contains(&language));
            assert!(
                *text != of(Language::English)[key] || !has_words || may_be_same,
                "{language:?} {key} is still English"
            );
        }
    }
}

#[test]
fn the_code_uses_every_message_and_no_other() {
    let server = std::fs::read_dir(root().join("server")).expect("the server's crates");
    let server = server.map(|member| member.expect("a crate").path().join("src"));
    let used = keys_in_code(
        &["app/src", "language/src", SEAT_KINDS]
            .map(|path| root().join(path))
            .into_iter()
            .chain(server)
            .collect::<Vec<_>>(),
    );
    for (key, file) in &used {
        assert!(of(Language::English).contains_key(key), "{key} of {} is no message", file.display());
    }
    let acts = THEATRE_ACTIONS.map(|act| format!("acts.{act}"));
    let is_used = |key: &String| code_of(key).is_some() || used.contains_key(key) || acts.contains(key);
    let unused: Vec<&String> = of(Language::English).keys().filter(|key| !is_used(key)).collect();
    assert_eq!(unused, [""; 0], "unused messages");
}

#[test]
fn messages_of_problems_belong_to_codes_of_the_api() {
    let documented = std::fs::read_to_string(root().join("docs/api.md")).expect("docs/api.md");
    for code in of(Language::English).keys().filter_map(|key| code_of(key)) {
        assert!(code == "other" || documented.contains(&format!("| `{code}` |")), "no problem is called {code}");
    }
}

/// The message groups that the pages of an island carry: the `WORDS` in its source. `None` if it has none.
fn carried_groups(source: &str) -> Option<Vec<&str>> {
    let (_, list) = source.split_once("const WORDS: &[&str] = &[")?;
    Some(list.split("];").next()?.split('"').skip(1).step_by(2).collect())
}

#[test]
fn pages_carry_the_messages_of_their_islands() {
    let (groups, mut files) = (groups(), Vec::new());
    sources(&root().join("app/src"), &mut files);
    let mut islands = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source is text");
        let Some(carried) = carried_groups(&text) else {
            assert!(!text.contains("const WORDS"), "WORDS of {} is not a list of groups", file.display());
            continue;
        };
        islands += 1;
        let strange: Vec<&&str> = carried.iter().filter(|group| !groups.contains(**group)).collect();
        assert!(strange.is_empty(), "no message begins with {strange:?}");
        let own = if file.ends_with("mod.rs") { file.parent().expect("its folder").to_owned() } else { file };
        let contained = CONTAINED_ISLANDS.iter().filter(|(island, _)| own.ends_with(island));
        let mut folders: Vec<PathBuf> = contained.map(|(_, inner)| root().join(inner)).collect();
        folders.push(own);
        for (key, file) in keys_in_code(&folders) {
            let group = key.split('.').next().unwrap_or_default();
            assert!(carried.contains(&group), "no page carries {key} for {}", file.display());
        }
    }
    assert!(islands >= 7, "{islands} islands with messages");
}

#[test]
fn an_unknown_message_is_shown_as_its_key() {
    assert_eq!(say_in(Language::German, "nothing.like_it", &[]), "nothing.like_it");
}

#[test]
fn the_language_is_restored_after_a_document() {
    let inner = with_language(Language::Hindi, || with_language(Language::Arabic, super::current));
    assert_eq!((inner, super::current()), (Language::Arabic, Language::English));
    let panicked = std::panic::catch_unwind(|| with_language(Language::Arabic, || panic!("a page that fails")));
    assert!(panicked.is_err());
    assert_eq!(super::current(), Language::English, "the next document is not Arabic");
}

#[test]
fn regional_tags_are_parsed() {
    for (tag, language) in [
        ("de-AT", Some(Language::German)),
        ("HI", Some(Language::Hindi)),
        ("ar_EG", Some(Language::Arabic)),
        ("fr", None),
        ("", None),
    ] {
        assert_eq!(Language::of_tag(tag), language, "{tag}");
    }
}

#[test]
fn arabic_has_six_plural_forms() {
    let said = |count: i64| say_in(Language::Arabic, "cart.seats", &[("count", count.into())]);
    assert_eq!([0, 1, 2, 3, 11, 100].map(said), ["لا مقاعد", "مقعد واحد", "مقعدان", "3 مقاعد", "11 مقعدًا", "100 مقعد"]);
}

#[test]
fn every_file_that_lists_the_languages_has_all() {
    let read = |path: &str| {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|_| panic!("no {path}"));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let tags = Language::ALL.map(Language::tag);
    let [most @ .., last] = &tags.map(|tag| format!("`{tag}`"));
    let enumerated = format!("{} or {last}", most.join(", "));
    let union = tags.map(|tag| format!("\"{tag}\"")).join(" | ");
    for (path, times, text) in [
        ("deploy/varnish.vcl", 4, format!("({})", tags.join("|"))),
        ("docs/operating.md", 1, enumerated),
        ("end2end/pages/languages.ts", 1, format!("export type Tag = {union};")),
    ] {
        assert_eq!(read(path).matches(&text).count(), times, "{path} lists other languages than {text}");
    }
    for language in Language::ALL {
        let (name, tag) = (format!("{language:?}"), language.tag());
        assert!(read("README.md").contains(&name), "README.md lacks {name}");
        assert!(read("messages/README.md").contains(&format!("{name} (`{tag}`)")), "messages/README.md lacks {name}");
    }
}

//! All messages in all languages, on the server. Compiled in from their files; under `cargo xtask dev` read from them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{Language, message_folder};

/// Messages by key, in the order of their keys.
pub(super) type Messages = BTreeMap<String, String>;

/// Each language is read at its first use.
static ALL: [OnceLock<Messages>; Language::ALL.len()] = [const { OnceLock::new() }; Language::ALL.len()];

fn read(file: &str) -> Messages {
    serde_json::from_str(file).expect("a test reads every file of messages")
}

pub(super) fn of(language: Language) -> &'static Messages {
    // In the order of `Language::ALL`, which is that of the enum.
    let compiled_in = || ALL[language as usize].get_or_init(|| read(language.facts().messages));
    message_folder::edited(language).unwrap_or_else(compiled_in)
}

/// A thread renders English unless a language is set.
pub(super) const fn of_page() -> Language {
    Language::English
}

/// Passes the pattern of a message to `write`, in English if the language lacks it.
pub(super) fn pattern<T>(language: Language, key: &str, write: impl FnOnce(&str) -> T) -> Option<T> {
    let pattern = of(language).get(key).or_else(|| of(Language::English).get(key))?;
    Some(write(pattern))
}

/// The messages of these groups (the part of a key before its first dot) as the JSON that a page carries. Nothing in it
/// can end its element.
pub fn carried_by(language: Language, groups: &[&str]) -> String {
    let in_groups = |key: &str| key.split_once('.').is_some_and(|(group, _)| groups.contains(&group));
    let carried: BTreeMap<&str, &str> = of(language)
        .iter()
        .filter(|(key, _)| in_groups(key))
        .map(|(key, pattern)| (key.as_str(), pattern.as_str()))
        .collect();
    let json = serde_json::to_string(&carried).expect("texts are JSON");
    json.replace('<', "\\u003c")
}

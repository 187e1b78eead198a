//! Enumerations of names. Source of the patterns: Unicode CLDR 48, `listPatterns`, the standard list.

use super::message::{Arg, isolated};
use super::{current, say_in};

/// `C7`, `C7 and C8`, `C7, C8 and C9`. Used in other messages as [`Arg::Ours`].
#[must_use]
pub fn listed(names: &[&str]) -> String {
    let language = current();
    let join = |key: &str, one: &str, name: &str| {
        say_in(language, key, &[("one", Arg::Ours(one)), ("other", Arg::Text(name))])
    };
    match names {
        [] => String::new(),
        [one] => isolated(one, language),
        [first, middle @ .., last] => {
            let first = isolated(first, language);
            let start = middle.iter().fold(first, |so_far, name| join("common.list_more", &so_far, name));
            join("common.list_last", &start, last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Language, with_language};
    use super::*;

    #[test]
    fn lists_follow_the_pattern_of_the_language() {
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&["C7"]), "C7");
        assert_eq!(listed(&["C7", "C8"]), "C7 and C8");
        assert_eq!(listed(&["C7", "C8", "C9", "D1"]), "C7, C8, C9 and D1");
        assert_eq!(with_language(Language::German, || listed(&["C7", "C8", "C9"])), "C7, C8 und C9");
        let arabic = with_language(Language::Arabic, || listed(&["C7", "C8", "C9"]));
        assert_eq!(arabic.replace(['\u{2068}', '\u{2069}'], ""), "C7 وC8 وC9");
        assert_eq!(arabic.matches('\u{2068}').count(), 3, "each name by itself");
    }
}

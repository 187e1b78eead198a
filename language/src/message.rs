//! ICU MessageFormat, reduced to what is used: `{name}`, `{count, plural, one {# seat} other {# seats}}` with `=0` for
//! exact numbers, and `{kind, select, a {…} other {…}}`, nested where needed; and enumerations of names for messages.
//!
//! Nothing is quoted: messages contain no apostrophe (they use ’) and no literal brace or #; a test ensures that.
//! Grammar: <https://unicode-org.github.io/icu/userguide/format_parse/messages/>. Source of the patterns of enumerations:
//! Unicode CLDR 48, `listPatterns`, the standard list.

use domain::money::Money;

use super::{Language, current, number, say_in};

/// First strong isolate, U+2068: the following text has its own direction…
const ISOLATE: char = '\u{2068}';
/// …until its end, U+2069.
const ISOLATE_END: char = '\u{2069}';

/// A value of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg<'a> {
    /// A name or other external text, in any script.
    Text(&'a str),
    /// A text of the same language, inserted unchanged.
    Ours(&'a str),
    /// A whole number.
    Number(i64),
    /// An amount of money.
    Money(Money),
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Arg<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for Arg<'_> {
    fn from(number: u16) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<u32> for Arg<'_> {
    fn from(number: u32) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<usize> for Arg<'_> {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<Money> for Arg<'_> {
    fn from(money: Money) -> Self {
        Self::Money(money)
    }
}

pub(super) fn format_message(pattern: &str, args: &[(&str, Arg<'_>)], language: Language) -> String {
    let mut out = String::with_capacity(pattern.len());
    Writer { args, language }.write(&mut out, pattern, None);
    out
}

struct Writer<'a> {
    args: &'a [(&'a str, Arg<'a>)],
    language: Language,
}

impl Writer<'_> {
    /// Writes a pattern. `count` replaces `#` inside a plural.
    fn write(&self, out: &mut String, mut rest: &str, count: Option<i64>) {
        while let Some(at) = rest.find(['{', '#']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = match (rest.starts_with('#'), count) {
                (true, Some(count)) => {
                    out.push_str(&number::number(count, self.language));
                    1
                }
                (false, _) => match closing(rest) {
                    Some(end) => {
                        self.put(out, &rest[1..end], count);
                        end + 1
                    }
                    None => break,
                },
                (true, None) => {
                    out.push('#');
                    1
                }
            };
            rest = &rest[length..];
        }
        out.push_str(rest);
    }

    /// Writes the placeholder between two braces. `count` is that of the surrounding plural.
    fn put(&self, out: &mut String, inside: &str, count: Option<i64>) {
        let (name, how) = inside.split_once(',').unwrap_or((inside, ""));
        let Some((_, arg)) = self.args.iter().find(|(known, _)| *known == name.trim()) else {
            // A test compares placeholders, so this is never reached; a visible error is better than a silent one.
            out.push_str(inside);
            return;
        };
        let (kind, choices) = how.split_once(',').unwrap_or((how, ""));
        match (kind.trim(), arg) {
            ("plural", Arg::Number(count)) => {
                let exact = |name: &str| name.strip_prefix('=').is_some_and(|text| text.parse() == Ok(*count));
                let category = self.language.facts().plural.category(*count);
                let chosen = choose(choices, exact).or_else(|| choose(choices, |name| name == category));
                let chosen = chosen.or_else(|| choose(choices, |name| name == "other"));
                self.write(out, chosen.unwrap_or_default(), Some(*count));
            }
            ("select", Arg::Text(value) | Arg::Ours(value)) => {
                let chosen = choose(choices, |name| name == *value);
                let chosen = chosen.or_else(|| choose(choices, |name| name == "other"));
                self.write(out, chosen.unwrap_or_default(), count);
            }
            (_, arg) => self.put_value(out, arg),
        }
    }

    fn put_value(&self, out: &mut String, arg: &Arg<'_>) {
        match arg {
            Arg::Text(text) => out.push_str(&isolated(text, self.language)),
            Arg::Ours(text) => out.push_str(text),
            Arg::Number(value) => out.push_str(&number::number(*value, self.language)),
            Arg::Money(money) => out.push_str(&number::money(*money, self.language)),
        }
    }
}

/// Isolates a name inside a message: a Latin name must not reorder the punctuation of an Arabic sentence, nor its own
/// (`12+`).
pub fn isolated(text: &str, language: Language) -> String {
    if language.is_right_to_left() { format!("{ISOLATE}{text}{ISOLATE_END}") } else { text.to_owned() }
}

/// Position of the brace that closes the one at the start of `text`.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// The text of the first choice that matches.
fn choose(choices: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    branches(choices).find(|(name, _)| is_wanted(name)).map(|(_, text)| text)
}

/// The choices of a plural or a select: names and texts.
pub(super) fn branches(choices: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = choices;
    std::iter::from_fn(move || {
        let open = rest.find('{')?;
        let close = open + closing(&rest[open..])?;
        let branch = (rest[..open].trim(), &rest[open + 1..close]);
        rest = &rest[close + 1..];
        Some(branch)
    })
}

/// `C7`, `C7 and C8`, `C7, C8 and C9`. Used in other messages as [`Arg::Ours`].
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
    use domain::money::Currency;

    use super::*;
    use crate::with_language;

    const SEATS: &str = "{seats, plural, =0 {no seat} one {# seat} other {# seats in {row}}}.";

    fn seats(number: i64) -> String {
        format_message(SEATS, &[("seats", Arg::Number(number)), ("row", Arg::Text("C"))], Language::English)
    }

    #[test]
    fn a_plural_prefers_the_exact_number_then_the_category_then_other() {
        assert_eq!([0, 1, 2].map(seats), ["no seat.", "1 seat.", "2 seats in C."]);
        assert_eq!(seats(1_234), "1,234 seats in C.");
    }

    #[test]
    fn a_select_falls_back_to_other() {
        let half = |value| {
            format_message(
                "{half, select, am {before} other {after}} noon",
                &[("half", Arg::Ours(value))],
                Language::English,
            )
        };
        assert_eq!((half("am"), half("pm")), ("before noon".to_owned(), "after noon".to_owned()));
    }

    #[test]
    fn a_select_inside_a_plural_replaces_its_count() {
        let pattern = "{seats, plural, other {{where, select, stage {# at the stage} other {# at the screen}}}}";
        let args = [("seats", Arg::Number(3)), ("where", Arg::Ours("stage"))];
        assert_eq!(format_message(pattern, &args, Language::English), "3 at the stage");
    }

    #[test]
    fn names_in_arabic_sentences_are_isolated() {
        let formatted = |language| format_message("{name}!", &[("name", Arg::Text("C7"))], language);
        assert_eq!(formatted(Language::Arabic), "\u{2068}C7\u{2069}!");
        assert_eq!(formatted(Language::German), "C7!");
    }

    #[test]
    fn money_is_formatted_by_language() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        assert_eq!(format_message("from {price}", &[("price", price.into())], Language::English), "from €12.50");
        assert_eq!(format_message("ab {price}", &[("price", price.into())], Language::German), "ab 12,50\u{a0}€");
    }

    #[test]
    fn malformed_messages_stay_readable() {
        for broken in ["{seats", "}", "#", "{other}", "{seats, plural, }"] {
            let formatted = format_message(broken, &[("seats", Arg::Number(1))], Language::English);
            assert!(formatted.len() <= broken.len(), "{broken}: {formatted}");
        }
    }

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

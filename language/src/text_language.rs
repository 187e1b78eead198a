//! Detects the language of an external text for its `lang`: synopses and taglines are stored without one.
//!
//! A script used mostly by one language decides. For Latin letters the commonest words do; if they do not either, there
//! is no result. Scripts: Unicode 17, `Blocks.txt`.

use std::ops::RangeInclusive;

/// Scripts used mostly by one language, with their letters.
const SCRIPTS: [(&str, &[RangeInclusive<char>]); 11] = [
    ("ar", &['\u{620}'..='\u{64a}', '\u{671}'..='\u{6d3}', '\u{750}'..='\u{77f}']),
    ("bn", &['\u{980}'..='\u{9fe}']),
    ("el", &['\u{370}'..='\u{3ff}', '\u{1f00}'..='\u{1fff}']),
    ("he", &['\u{5d0}'..='\u{5ea}']),
    ("hi", &['\u{900}'..='\u{963}', '\u{970}'..='\u{97f}']),
    // Before Chinese: Japanese texts contain Chinese characters.
    ("ja", &['\u{3041}'..='\u{30ff}']),
    ("ko", &['\u{1100}'..='\u{11ff}', '\u{ac00}'..='\u{d7a3}']),
    ("ru", &['\u{400}'..='\u{52f}']),
    ("ta", &['\u{b82}'..='\u{bfa}']),
    ("th", &['\u{e01}'..='\u{e5b}']),
    ("zh", &['\u{3400}'..='\u{9fff}']),
];

/// Words found in nearly every text of a language, and mostly not in the others.
const WORDS: [(&str, &[&str]); 3] = [
    (
        "en",
        &["the", "and", "of", "to", "is", "her", "his", "they", "that", "with", "for", "by", "an", "she", "he", "what"],
    ),
    (
        "de",
        &[
            "der", "die", "das", "und", "ist", "ein", "eine", "den", "dem", "mit", "von", "nicht", "zu", "sie", "auf",
            "für",
        ],
    ),
    ("es", &["el", "la", "los", "las", "y", "de", "en", "un", "una", "del", "que", "por", "con", "su", "para", "se"]),
];
/// Number of different words of a language that a text must contain.
const MIN_WORDS: usize = 2;

/// Tag (BCP 47) of a text's language; `None` if it cannot be detected.
pub fn text_language(text: &str) -> Option<&'static str> {
    let letters = text.chars().filter(|letter| letter.is_alphabetic()).count();
    let of_script = |ranges: &[RangeInclusive<char>]| {
        text.chars().filter(|letter| ranges.iter().any(|range| range.contains(letter))).count()
    };
    // A quarter is enough: other scripts mix Chinese characters and Latin names.
    let script = SCRIPTS.iter().find(|(_, ranges)| of_script(ranges) * 4 >= letters.max(1));
    script.map(|(tag, _)| *tag).or_else(|| by_words(text))
}

fn by_words(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|letter: char| !letter.is_alphabetic()).collect();
    let mut known = WORDS.map(|(tag, common)| (common.iter().filter(|word| words.contains(word)).count(), tag));
    known.sort_unstable();
    let [.., (second, _), (most, tag)] = known;
    (most >= MIN_WORDS && most > second).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Language;

    #[test]
    fn every_language_of_the_site_can_be_detected() {
        for tag in Language::ALL.map(Language::tag) {
            let is_known = SCRIPTS.iter().any(|(of, _)| *of == tag) || WORDS.iter().any(|(of, _)| *of == tag);
            assert!(is_known, "{tag} has neither a script nor common words");
        }
    }

    #[test]
    fn a_language_is_detected_by_script_or_common_words() {
        for (text, tag) in [
            ("A village schoolteacher proves with chalk and patience that her district has been robbed.", Some("en")),
            ("Ein Dorf, in dem die Uhren stehen, und ein Mann, der sie nicht hört.", Some("de")),
            ("Una maestra descubre que los números del pueblo no cuadran.", Some("es")),
            ("في قرية بعيدة، معلّمة تحسب ما أخذوه (1984).", Some("ar")),
            ("एक गाँव की कहानी।", Some("hi")),
            ("東京の夜", Some("ja")),
            ("重庆森林", Some("zh")),
            ("올드보이", Some("ko")),
            ("Зеркало", Some("ru")),
            ("Glass Orbit", None),
            ("Die Hard", None),
            ("La La Land", None),
            ("33 1/3 ♥", None),
            ("", None),
        ] {
            assert_eq!(text_language(text), tag, "{text}");
        }
    }
}

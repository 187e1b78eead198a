//! In which language a text from outside is written, for its `lang`: synopses and taglines are stored without one.
//!
//! A script that is mostly that of one language names it; for Latin letters the commonest words do, and where they do not
//! either, nothing is claimed. Scripts: Unicode 17, `Blocks.txt`.

use std::ops::RangeInclusive;

/// Scripts that mostly one language is written in, by their letters.
const SCRIPTS: [(&str, &[RangeInclusive<char>]); 11] = [
    ("ar", &['\u{620}'..='\u{64a}', '\u{671}'..='\u{6d3}', '\u{750}'..='\u{77f}']),
    ("bn", &['\u{980}'..='\u{9fe}']),
    ("el", &['\u{370}'..='\u{3ff}', '\u{1f00}'..='\u{1fff}']),
    ("he", &['\u{5d0}'..='\u{5ea}']),
    ("hi", &['\u{900}'..='\u{963}', '\u{970}'..='\u{97f}']),
    // Before Chinese: Japanese has Chinese characters among its own.
    ("ja", &['\u{3041}'..='\u{30ff}']),
    ("ko", &['\u{1100}'..='\u{11ff}', '\u{ac00}'..='\u{d7a3}']),
    ("ru", &['\u{400}'..='\u{52f}']),
    ("ta", &['\u{b82}'..='\u{bfa}']),
    ("th", &['\u{e01}'..='\u{e5b}']),
    ("zh", &['\u{3400}'..='\u{9fff}']),
];

/// Words that nearly every text of a language has, and the others mostly do not.
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
/// Different words of a language that a text must have.
const LEAST_WORDS: usize = 2;

/// Tag (BCP 47) of the language a text is written in; `None` where it does not show.
#[must_use]
pub fn text_language(text: &str) -> Option<&'static str> {
    let letters = text.chars().filter(|letter| letter.is_alphabetic()).count();
    let of_script = |ranges: &[RangeInclusive<char>]| {
        text.chars().filter(|letter| ranges.iter().any(|range| range.contains(letter))).count()
    };
    // A quarter is enough: Chinese characters and Latin names stand among the letters of the others.
    let script = SCRIPTS.iter().find(|(_, ranges)| of_script(ranges) * 4 >= letters.max(1));
    script.map(|(tag, _)| *tag).or_else(|| by_words(text))
}

fn by_words(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|letter: char| !letter.is_alphabetic()).collect();
    let mut known = WORDS.map(|(tag, common)| (common.iter().filter(|word| words.contains(word)).count(), tag));
    known.sort_unstable();
    let [.., (second, _), (most, tag)] = known;
    (most >= LEAST_WORDS && most > second).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_one_language_names_it_and_common_words_do() {
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

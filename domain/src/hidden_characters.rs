//! Invisible characters that change how other text is read: marks that reorder text, and characters without a width. Two
//! names that differ by them alone look the same.

use std::fmt::Write as _;

/// True if it embeds, overrides or isolates a direction (Unicode Standard Annex 9, 2): without an end it reorders the text
/// behind it as well.
#[must_use]
pub const fn is_bidi_override(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// True if it influences the direction of text: [`is_bidi_override`], and the marks that act as one letter of a direction.
#[must_use]
pub const fn is_bidi_control(c: char) -> bool {
    is_bidi_override(c) || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}')
}

/// True if it joins or separates letters without a width. Persian, Hindi and emoji are written with both.
#[must_use]
pub const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200C}' | '\u{200D}')
}

/// True if it has no width and no use in a name: every character without a width but the joiners.
#[must_use]
pub const fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{34F}' | '\u{180E}' | '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}

/// True if it selects a variant of the character before it, or tags it. Most fonts ignore both.
#[must_use]
const fn is_selector(c: char) -> bool {
    matches!(c, '\u{180B}'..='\u{180D}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0000}'..='\u{E01EF}')
}

/// Returns the text without all of these characters: two names that look the same are the same text.
#[must_use]
pub fn visible(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let is_seen = |c: &char| !(is_bidi_control(*c) || is_joiner(*c) || is_zero_width(*c) || is_selector(*c));
    text.chars().filter(is_seen).collect()
}

/// Returns the text with these and control characters written out, `A[U+202E]1`, so that a person can find them.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi_control(c) || is_joiner(c) || is_zero_width(c) {
            // Writing to a String cannot fail.
            let _infallible = write!(shown, "[U+{:04X}]", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_written_out_and_others_kept() {
        assert_eq!(shown("A\u{202E}1\t e\u{301} \u{200D}\u{FEFF}"), "A[U+202E]1[U+0009] e\u{301} [U+200D][U+FEFF]");
        assert!(!is_zero_width('\u{200D}') && !is_bidi_control('ل'));
        assert_eq!(visible("A\u{202E}1 é\u{200D}\u{200C}\u{FEFF}\u{FE0F}ل".to_owned()), "A1 éل");
    }
}

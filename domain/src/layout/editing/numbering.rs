//! Numbering of seats and rows: first label, direction and step.

use super::super::error::MAX_NAME_CHARS;

/// Maximum length of a label that is counted in letters: `AAA` is counted, `AAAA` is a name.
const MAX_LETTERS: usize = 3;
/// Size of the alphabet that rows are counted in.
const LETTERS: u32 = 26;

/// Numbering of a row's seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The first label: `1`, `101`, `A`, `K1`.
    pub first: String,
    /// Step between labels: 1, or 2 for only odd or only even numbers.
    pub step: u32,
    /// True if numbers begin at the right, as seen from the seats towards the front.
    pub from_right: bool,
}

impl Numbering {
    /// Returns `count` labels from left to right; `None` if a label has no successor.
    #[must_use]
    pub fn labels(&self, count: usize) -> Option<Vec<String>> {
        let mut labels = Vec::with_capacity(count);
        let mut next = self.first.trim().to_owned();
        for number in 0..count {
            if number > 0 {
                next = label_after(&next, self.step)?;
            }
            labels.push(next.clone());
        }
        if self.from_right {
            labels.reverse();
        }
        Some(labels)
    }
}

/// Returns the label that is `step` after this one: `9` `10`, `A` `B`, `Z` `AA`, `K9` `K10`. `None` for a name without
/// a successor.
#[must_use]
pub fn label_after(label: &str, step: u32) -> Option<String> {
    let digits = label.len() - label.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (name, number) = label.split_at(digits);
    if !number.is_empty() {
        let width = number.len();
        let next = number.parse::<u32>().ok()?.checked_add(step)?;
        // Leading zeros are kept: `02` follows `01`.
        let next = if number.starts_with('0') { format!("{next:0width$}") } else { next.to_string() };
        return (name.len() + next.len() <= MAX_NAME_CHARS).then(|| format!("{name}{next}"));
    }
    let is_counted = (1..=MAX_LETTERS).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_counted {
        return None;
    }
    let place = label.bytes().fold(0, |sum, byte| sum * LETTERS + u32::from(byte - b'A') + 1);
    letters(place.checked_add(step)?)
}

/// Returns the n-th label in letters, from 1.
fn letters(mut place: u32) -> Option<String> {
    let mut written = Vec::new();
    while place > 0 {
        place -= 1;
        written.push(char::from(b'A' + u8::try_from(place % LETTERS).ok()?));
        place /= LETTERS;
    }
    (written.len() <= MAX_LETTERS).then(|| written.into_iter().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(first: &str, step: u32, from_right: bool, count: usize) -> String {
        let numbering = Numbering { first: first.to_owned(), step, from_right };
        numbering.labels(count).map_or_else(|| "none".to_owned(), |labels| labels.join(" "))
    }

    #[test]
    fn seats_are_numbered_in_both_directions_odd_and_even() {
        assert_eq!(numbers("1", 1, false, 4), "1 2 3 4");
        assert_eq!(numbers("1", 1, true, 4), "4 3 2 1");
        assert_eq!(numbers("1", 2, false, 4), "1 3 5 7");
        assert_eq!(numbers(" 2 ", 2, true, 3), "6 4 2");
        assert_eq!(numbers("098", 1, false, 3), "098 099 100");
    }

    #[test]
    fn rows_are_counted_in_letters_and_with_a_numeric_suffix() {
        assert_eq!(numbers("Y", 1, false, 4), "Y Z AA AB");
        assert_eq!(numbers("ZZ", 1, false, 2), "ZZ AAA");
        assert_eq!(numbers("K9", 1, false, 2), "K9 K10");
    }

    #[test]
    fn name_without_a_successor_allows_only_one_label() {
        assert_eq!(numbers("Loge", 1, false, 1), "Loge");
        for (name, step) in [("Loge", 1), ("", 1), ("Ж", 1), ("ZZZ", 1), ("4294967295", 1), ("a", 1)] {
            assert_eq!(numbers(name, step, false, 2), "none", "{name}");
        }
    }
}

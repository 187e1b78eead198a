//! How seats and rows are numbered: where it begins, in which direction, in which steps.

use super::super::error::MAX_NAME_CHARS;

/// The most letters of a row that are counted in letters: `AAA` is there, `AAAA` is a name.
const MAX_LETTERS: usize = 3;
/// Letters of the alphabet rows are counted in.
const LETTERS: u32 = 26;

/// The numbers of a row's seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The first of them: `1`, `101`, `A`, `K1`.
    pub first: String,
    /// From one to the next: 1, or 2 for odd numbers only and for even ones.
    pub step: u32,
    /// Whether they begin at the right, as one looks from the seats to the front.
    pub from_right: bool,
}

impl Numbering {
    /// So many labels, from left to right; `None` where there is no counting on from the first.
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

/// The label so many steps after this one: `9` `10`, `A` `B`, `Z` `AA`, `K9` `K10`. `None` for a name nobody counts
/// on from.
#[must_use]
pub fn label_after(label: &str, step: u32) -> Option<String> {
    let digits = label.len() - label.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (name, number) = label.split_at(digits);
    if !number.is_empty() {
        let width = number.len();
        let next = number.parse::<u32>().ok()?.checked_add(step)?;
        // `01` is followed by `02`.
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

/// The n-th label in letters, from 1.
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
    fn seats_are_counted_both_ways_odd_and_even() {
        assert_eq!(numbers("1", 1, false, 4), "1 2 3 4");
        assert_eq!(numbers("1", 1, true, 4), "4 3 2 1");
        assert_eq!(numbers("1", 2, false, 4), "1 3 5 7");
        assert_eq!(numbers(" 2 ", 2, true, 3), "6 4 2");
        assert_eq!(numbers("098", 1, false, 3), "098 099 100");
    }

    #[test]
    fn rows_are_counted_in_letters_and_behind_a_name() {
        assert_eq!(numbers("Y", 1, false, 4), "Y Z AA AB");
        assert_eq!(numbers("ZZ", 1, false, 2), "ZZ AAA");
        assert_eq!(numbers("K9", 1, false, 2), "K9 K10");
    }

    #[test]
    fn a_name_stands_alone() {
        assert_eq!(numbers("Loge", 1, false, 1), "Loge");
        for (name, step) in [("Loge", 1), ("", 1), ("Ж", 1), ("ZZZ", 1), ("4294967295", 1), ("a", 1)] {
            assert_eq!(numbers(name, step, false, 2), "none", "{name}");
        }
    }
}

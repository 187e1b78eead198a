//! The two notations of a sketch: labels of rows, and seats of a row.
//!
//! Rows are letters or numbers, with ranges up or down, separated by spaces: `A-H J-L`, `1-30`, `AA`.
//! Seats are listed from left to right, separated by spaces:
//!
//! | written | means |
//! |---|---|
//! | `1-8`, `8-1`, `1-15/2` | a range of seats, counting up, down, or in steps |
//! | `7`, `14_bis` | one seat; `_` is a space |
//! | `.`, `..`, `:` | an aisle one seat wide, two seats, half a seat |
//! | `@gold`, `@` | the category of the following seats: gold; the row's own |

use super::super::error::LayoutError;
use crate::seats::MAX_SEATS_PER_SHOW;

/// An element of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowElement<'a> {
    /// A seat with its number, and its category if it differs from the row's.
    Seat { number: String, category: Option<&'a str> },
    /// An aisle; its width in seats.
    Aisle(f64),
}

pub(super) fn rows(text: &str) -> Result<Vec<String>, LayoutError> {
    let mut labels = Vec::new();
    for token in text.split_whitespace() {
        match letters(token) {
            Some((from, to)) if from <= to => labels.extend((from..=to).map(String::from)),
            Some((from, to)) => labels.extend((to..=from).rev().map(String::from)),
            None => numbers(token, text, &mut labels)?,
        }
        // Each row has a seat.
        if labels.len() > MAX_SEATS_PER_SHOW {
            return Err(LayoutError::TooManySeats);
        }
    }
    if labels.is_empty() {
        return Err(LayoutError::Sketch { text: text.to_owned(), why: "it names no row" });
    }
    Ok(labels)
}

/// Parses the elements of `seats`, from left to right.
pub(super) fn seats(text: &str) -> Result<Vec<RowElement<'_>>, LayoutError> {
    let mut elements = Vec::new();
    let mut category = None;
    for token in text.split_whitespace() {
        if let Some(name) = token.strip_prefix('@') {
            category = (!name.is_empty()).then_some(name);
        } else if token.bytes().all(|byte| byte == b'.' || byte == b':') {
            let width = token.bytes().map(|byte| if byte == b'.' { 1.0 } else { 0.5 }).sum();
            elements.push(RowElement::Aisle(width));
        } else {
            let mut labels = Vec::new();
            numbers(token, text, &mut labels)?;
            elements.extend(labels.into_iter().map(|number| RowElement::Seat { number, category }));
        }
        if elements.len() > MAX_SEATS_PER_SHOW {
            return Err(LayoutError::TooManySeats);
        }
    }
    if !elements.iter().any(|element| matches!(element, RowElement::Seat { .. })) {
        return Err(LayoutError::Sketch { text: text.to_owned(), why: "it has no seat" });
    }
    Ok(elements)
}

/// Parses `A-H` as its two letters.
fn letters(token: &str) -> Option<(char, char)> {
    let mut chars = token.chars();
    let pair = (chars.next()?, chars.next()?, chars.next()?);
    let (from, '-', to) = pair else { return None };
    (chars.next().is_none() && from.is_ascii_uppercase() && to.is_ascii_uppercase()).then_some((from, to))
}

/// Parses a range of numbers or a single label, and appends it to `labels`.
fn numbers(token: &str, text: &str, labels: &mut Vec<String>) -> Result<(), LayoutError> {
    let refuse = |why| Err(LayoutError::Sketch { text: text.to_owned(), why });
    let (range, step) = match token.split_once('/') {
        Some((range, step)) => match step.parse::<usize>() {
            Ok(step @ 1..=1_000) => (range, step),
            _ => return refuse("the step after / is not a number from 1 to 1000"),
        },
        None => (token, 1),
    };
    let ends = range.split_once('-').map(|(from, to)| (from.parse::<u32>(), to.parse::<u32>()));
    match ends {
        Some((Ok(from), Ok(to))) => {
            if from.abs_diff(to) as usize / step >= MAX_SEATS_PER_SHOW {
                return Err(LayoutError::TooManySeats);
            }
            if from <= to {
                labels.extend((from..=to).step_by(step).map(|number| number.to_string()));
            } else {
                labels.extend((to..=from).rev().step_by(step).map(|number| number.to_string()));
            }
        }
        Some(_) => return refuse("a range has a whole number, or one capital letter, on either side"),
        None if step == 1 && !token.contains('/') => labels.push(token.replace('_', " ")),
        None => return refuse("a step needs a range before it"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers_of(text: &str) -> String {
        let elements = seats(text).expect("a readable pattern");
        let written = elements.iter().map(|element| match element {
            RowElement::Seat { number, category: Some(category) } => format!("{number}@{category}"),
            RowElement::Seat { number, category: None } => number.clone(),
            RowElement::Aisle(width) => format!("<{width}>"),
        });
        written.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn seats_are_ranges_separated_by_aisles() {
        assert_eq!(numbers_of("1-3 . 4 .. 6-5"), "1 2 3 <1> 4 <2> 6 5");
        assert_eq!(numbers_of("1-7/2 .: 8-2/2"), "1 3 5 7 <1.5> 8 6 4 2");
        assert_eq!(numbers_of("13 14_bis"), "13 14 bis");
    }

    #[test]
    fn category_applies_until_the_next_sign() {
        assert_eq!(numbers_of("1 @gold 2-3 @ 4"), "1 2@gold 3@gold 4");
    }

    #[test]
    fn rows_are_letters_or_numbers_in_either_direction() {
        assert_eq!(rows("A-C E").expect("rows"), ["A", "B", "C", "E"]);
        assert_eq!(rows("C-A").expect("rows"), ["C", "B", "A"]);
        assert_eq!(rows("9-11 AA").expect("rows"), ["9", "10", "11", "AA"]);
    }

    #[test]
    fn invalid_patterns_are_refused_with_their_text() {
        for bad in ["", ".", "@gold", "1-x", "1-5/0", "1-5/y", "7/2", "A-5"] {
            assert!(seats(bad).is_err(), "{bad}");
        }
        assert!(rows(" ").is_err());
        assert_eq!(seats("1-4000000000"), Err(LayoutError::TooManySeats));
        assert_eq!(rows("1-4000000000"), Err(LayoutError::TooManySeats));
        assert_eq!(rows("1-60000 1-60000"), Err(LayoutError::TooManySeats), "before further labels are made");
    }
}

//! What a scanner read or somebody typed: the codes of one ticket, or of a whole party.
//!
//! Scanners that pose as keyboards type what they read with the layout the computer has: the bar between the fields of
//! a QR code may come out as any other sign. So fields are told apart by what codes are made of, and not by the bar.

use std::fmt;

use crate::seats::MAX_SEATS_PER_HOLD;

/// Characters of a code.
pub const CODE_LENGTH: usize = 26;
/// Longest text that is looked at, bytes: what a ticket's QR code holds at most.
pub const MAX_SCANNED_BYTES: usize = 400;
/// What the text of our QR codes begins with.
const PREFIX: &str = "ROWLOCK1";
/// Crockford's digits: no I, L, O or U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A code as tickets carry it: 26 digits of Crockford's base 32, in capitals. Whether there is such a ticket is another
/// question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(String);

impl Code {
    /// Reads a code as people type it: in any case, with I and L for 1 and O for 0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != CODE_LENGTH {
            return None;
        }
        text.bytes().map(digit).collect::<Option<Vec<char>>>().map(|digits| Self(digits.into_iter().collect()))
    }

    /// As it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn digit(byte: u8) -> Option<char> {
    let upper = match byte.to_ascii_uppercase() {
        b'I' | b'L' => b'1',
        b'O' => b'0',
        other => other,
    };
    DIGITS.contains(&upper).then_some(char::from(upper))
}

/// A text that holds no code of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Longer than any of ours.
    #[error("the text is longer than a ticket's")]
    TooLong,
    /// No code where one has to be.
    #[error("the text holds no code of a ticket")]
    NoCode,
    /// More than a party has.
    #[error("the text holds more codes than a party has")]
    TooMany,
}

/// The codes of a scanned or typed text, each once, in its order: of one ticket or of a party.
///
/// # Errors
/// [`Unreadable`], for whatever is not a ticket of ours by its form.
pub fn read(text: &str) -> Result<Vec<Code>, Unreadable> {
    if text.len() > MAX_SCANNED_BYTES {
        return Err(Unreadable::TooLong);
    }
    let text = text.trim();
    let is_ours = text.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
    let codes = if is_ours { of_qr(&text[PREFIX.len()..]) } else { typed(text) };
    match codes.len() {
        0 => Err(Unreadable::NoCode),
        1..=MAX_SEATS_PER_HOLD => Ok(codes),
        _ => Err(Unreadable::TooMany),
    }
}

/// Codes follow one another until something else comes: the seat, or how many they are.
fn of_qr(fields: &str) -> Vec<Code> {
    let mut codes = Vec::new();
    let fields = fields.split(|c: char| !c.is_ascii_alphanumeric()).filter(|field| !field.is_empty());
    for code in fields.map_while(Code::parse) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

/// People put spaces and hyphens into what they copy.
fn typed(text: &str) -> Vec<Code> {
    let bare: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    Code::parse(&bare).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = "0123456789ABCDEFGHJKMNPQRS";
    const TWO: &str = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";

    fn texts(text: &str) -> Result<Vec<String>, Unreadable> {
        read(text).map(|codes| codes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_ticket_is_read_however_it_comes() {
        for text in [
            format!("ROWLOCK1|{ONE}|C7|Ana"),
            // Another keyboard's idea of a bar.
            format!("ROWLOCK1~{ONE}~C7~Ana"),
            format!("rowlock1|{}|c7|ana\r\n", ONE.to_lowercase()),
            ONE.to_owned(),
            format!("  {} ", ONE.to_lowercase()),
            "01234-56789 ABCDE-FGHJK MNPQRS".to_owned(),
            ONE.replace('0', "o").replace('1', "l"),
            // A friend's name that looks like a code is not one.
            format!("ROWLOCK1|{ONE}|C7|{TWO}"),
        ] {
            assert_eq!(texts(&text), Ok(vec![ONE.to_owned()]), "{text:?}");
        }
    }

    #[test]
    fn a_party_is_all_its_codes_each_once() {
        let text = format!("ROWLOCK1|{ONE},{TWO},{ONE}|3 tickets|Ana");
        assert_eq!(texts(&text), Ok(vec![ONE.to_owned(), TWO.to_owned()]));
    }

    #[test]
    fn what_is_no_ticket_is_said_to_be_none() {
        let many: Vec<String> = (0..11).map(|number| format!("{}{number:02}", &ONE[..24])).collect();
        let long = format!("ROWLOCK1|{ONE}|C7|{}", "x".repeat(MAX_SCANNED_BYTES));
        for (text, why) in [
            ("", Unreadable::NoCode),
            ("4006381333931", Unreadable::NoCode),
            ("https://rowlock.example/tickets", Unreadable::NoCode),
            ("ROWLOCK1||C7|Ana", Unreadable::NoCode),
            ("ROWLOCK1", Unreadable::NoCode),
            (&ONE[1..], Unreadable::NoCode),
            (&format!("{ONE}0"), Unreadable::NoCode),
            (&format!("U{}", &ONE[1..]), Unreadable::NoCode),
            (&"é".repeat(13), Unreadable::NoCode),
            (&"0".repeat(401), Unreadable::TooLong),
            (&long, Unreadable::TooLong),
            (&format!("ROWLOCK1|{}|11 tickets|Ana", many.join(",")), Unreadable::TooMany),
        ] {
            assert_eq!(read(text), Err(why), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".{0,500}") {
            if let Ok(codes) = read(&text) {
                prop_assert!(!codes.is_empty() && codes.len() <= MAX_SEATS_PER_HOLD);
                for code in codes {
                    prop_assert_eq!(Code::parse(code.as_str()), Some(code));
                }
            }
        }
    }
}

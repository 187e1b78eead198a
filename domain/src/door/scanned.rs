//! Parses scanned or typed text into the codes of one ticket or of a party.
//!
//! A scanner that acts as a keyboard uses the keyboard layout of the computer, so the bar between the fields of a QR
//! code may arrive as any other character. Fields are therefore recognised by the characters of codes, not by the bar.

use std::fmt;

use crate::seats::MAX_SEATS_PER_HOLD;

/// Number of characters in a code.
pub const CODE_LENGTH: usize = 26;
/// Maximum length of a text, bytes: the maximum content of a ticket's QR code.
pub const MAX_SCANNED_BYTES: usize = 400;
/// Prefix of the text in our QR codes, with its version.
pub const QR_PREFIX: &str = "ROWLOCK1";
/// Crockford's base 32 digits: without I, L, O and U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A well-formed ticket code: 26 digits of Crockford's base 32, in capitals. The ticket need not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(String);

impl Code {
    /// Parses a code as people type it: in either case, with I and L for 1 and O for 0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != CODE_LENGTH {
            return None;
        }
        text.bytes().map(digit).collect::<Option<Vec<char>>>().map(|digits| Self(digits.into_iter().collect()))
    }

    /// The code as stored.
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

/// Reason why a text contains no ticket codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableCode {
    /// Longer than any ticket's text.
    #[error("the text is longer than a ticket's")]
    TooLong,
    /// Without a code where one is expected.
    #[error("the text holds no code of a ticket")]
    NoCode,
    /// More codes than a party may have.
    #[error("the text holds more codes than a party has")]
    TooMany,
}

/// Parses the codes of one ticket or of a party. Each code is returned once, in the order of the text.
///
/// # Errors
/// [`UnreadableCode`], if the text does not have the form of a ticket.
pub fn read(text: &str) -> Result<Vec<Code>, UnreadableCode> {
    if text.len() > MAX_SCANNED_BYTES {
        return Err(UnreadableCode::TooLong);
    }
    let text = text.trim();
    let has_prefix = text.get(..QR_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(QR_PREFIX));
    let codes = if has_prefix { parse_qr_fields(&text[QR_PREFIX.len()..]) } else { parse_typed(text) };
    match codes.len() {
        0 => Err(UnreadableCode::NoCode),
        1..=MAX_SEATS_PER_HOLD => Ok(codes),
        _ => Err(UnreadableCode::TooMany),
    }
}

/// Reads codes up to the first other field: the seat or the number of tickets.
fn parse_qr_fields(fields: &str) -> Vec<Code> {
    let mut codes = Vec::new();
    let fields = fields.split(|c: char| !c.is_ascii_alphanumeric()).filter(|field| !field.is_empty());
    for code in fields.map_while(Code::parse) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

/// People insert spaces and hyphens when they copy a code.
fn parse_typed(text: &str) -> Vec<Code> {
    let bare: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    Code::parse(&bare).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = "0123456789ABCDEFGHJKMNPQRS";
    const TWO: &str = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";

    fn texts(text: &str) -> Result<Vec<String>, UnreadableCode> {
        read(text).map(|codes| codes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ticket_is_parsed_in_every_notation() {
        for text in [
            format!("ROWLOCK1|{ONE}|C7|Ana"),
            // The bar in another keyboard layout.
            format!("ROWLOCK1~{ONE}~C7~Ana"),
            format!("rowlock1|{}|c7|ana\r\n", ONE.to_lowercase()),
            ONE.to_owned(),
            format!("  {} ", ONE.to_lowercase()),
            "01234-56789 ABCDE-FGHJK MNPQRS".to_owned(),
            ONE.replace('0', "o").replace('1', "l"),
            // A holder's name in the form of a code is ignored.
            format!("ROWLOCK1|{ONE}|C7|{TWO}"),
        ] {
            assert_eq!(texts(&text), Ok(vec![ONE.to_owned()]), "{text:?}");
        }
    }

    #[test]
    fn party_contains_each_code_once() {
        let text = format!("ROWLOCK1|{ONE},{TWO},{ONE}|3 tickets|Ana");
        assert_eq!(texts(&text), Ok(vec![ONE.to_owned(), TWO.to_owned()]));
    }

    #[test]
    fn text_without_a_ticket_is_refused_with_its_reason() {
        let many: Vec<String> = (0..11).map(|number| format!("{}{number:02}", &ONE[..24])).collect();
        let long = format!("ROWLOCK1|{ONE}|C7|{}", "x".repeat(MAX_SCANNED_BYTES));
        for (text, why) in [
            ("", UnreadableCode::NoCode),
            ("4006381333931", UnreadableCode::NoCode),
            ("https://rowlock.example/tickets", UnreadableCode::NoCode),
            ("ROWLOCK1||C7|Ana", UnreadableCode::NoCode),
            ("ROWLOCK1", UnreadableCode::NoCode),
            (&ONE[1..], UnreadableCode::NoCode),
            (&format!("{ONE}0"), UnreadableCode::NoCode),
            (&format!("U{}", &ONE[1..]), UnreadableCode::NoCode),
            (&"é".repeat(13), UnreadableCode::NoCode),
            (&"0".repeat(401), UnreadableCode::TooLong),
            (&long, UnreadableCode::TooLong),
            (&format!("ROWLOCK1|{}|11 tickets|Ana", many.join(",")), UnreadableCode::TooMany),
        ] {
            assert_eq!(read(text), Err(why), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,500}") {
            if let Ok(codes) = read(&text) {
                prop_assert!(!codes.is_empty() && codes.len() <= MAX_SEATS_PER_HOLD);
                for code in codes {
                    prop_assert_eq!(Code::parse(code.as_str()), Some(code));
                }
            }
        }
    }
}

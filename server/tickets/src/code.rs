//! The content of a ticket's QR code.
//!
//! The code alone admits its holder: it cannot be guessed, and only a server with the secret makes valid ones (`signing`). It is
//! written in Crockford's base 32, which a person can read out when a phone's screen is broken.

use std::fmt;

use domain::door::{Code, QR_PREFIX};
use domain::hidden_characters::is_bidi_override;

use super::signing;

/// Crockford's digits: no I, L, O or U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits of five bits each: 128 bits, and two in front that say how these were made.
const LENGTH: usize = domain::door::CODE_LENGTH;
/// The two bits of a signed code, as what they add to the first digit.
const SIGNED: u8 = 1 << 3;
/// Characters of the holder's name in the QR code: more make it too dense to scan.
const MAX_HOLDER_CHARS: usize = 40;
/// Bytes of it that go into the code of a whole party, which carries up to ten codes besides.
const MAX_GROUP_HOLDER_BYTES: usize = 60;

/// A ticket's code, 26 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TicketCode(String);

impl TicketCode {
    /// A fresh code, signed, from random bits.
    ///
    /// # Panics
    /// Before [`signing::sign_with`] has set the secrets.
    #[must_use]
    pub fn signed(random: [u8; 16]) -> Self {
        Self::of_signed_bits(signing::signed(random))
    }

    /// A code of the kind that was never signed.
    #[must_use]
    pub fn from_bits(bits: [u8; 16]) -> Self {
        Self::of(0, bits)
    }

    pub(super) fn of_signed_bits(bits: [u8; 16]) -> Self {
        Self::of(SIGNED, bits)
    }

    fn of(kind: u8, bits: [u8; 16]) -> Self {
        let mut rest = u128::from_be_bytes(bits);
        let mut values = [0_u8; LENGTH];
        for value in values.iter_mut().rev() {
            *value = (rest % 32) as u8;
            rest /= 32;
        }
        // 26 digits have room for 130 bits: of the first digit's five, 128 bits take three.
        values[0] |= kind;
        Self(values.iter().map(|value| char::from(DIGITS[usize::from(*value)])).collect())
    }

    /// As stored and shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TicketCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The version of a code, by its first two bits (0: not signed, 1: signed), and its other 128 bits; `None` when it has an
/// invalid digit.
pub(super) fn parts(code: &Code) -> Option<(u8, [u8; 16])> {
    let mut bits = 0_u128;
    let mut kind = 0;
    for (place, digit) in code.as_str().bytes().enumerate() {
        let value = DIGITS.iter().position(|known| *known == digit)? as u8;
        if place == 0 {
            kind = value >> 3;
            bits = u128::from(value & 7);
        } else {
            bits = (bits << 5) | u128::from(value);
        }
    }
    Some((kind, bits.to_be_bytes()))
}

/// The text inside the QR code: `ROWLOCK1|<code>|<seat>|<holder>`. Seat and holder are there for the
/// person at the door; only the code is checked. Bars and control characters in a name become spaces.
#[must_use]
pub fn qr_text(code: &str, seat: &str, holder: &str) -> String {
    format!("{QR_PREFIX}|{code}|{}|{}", clean(seat), clean(holder))
}

/// The text of one QR code for a whole party: `ROWLOCK1|<code>,<code>,…|<number> tickets|<holder>`. The door checks each code
/// separately, so that a revoked one admits no one.
#[must_use]
pub fn group_qr_text(codes: &[&str], holder: &str) -> String {
    let mut holder = clean(holder);
    while holder.len() > MAX_GROUP_HOLDER_BYTES {
        holder.pop();
    }
    format!("{QR_PREFIX}|{}|{} tickets|{}", codes.join(","), codes.len(), holder.trim_end())
}

fn clean(text: &str) -> String {
    let text = text.chars().filter(|c| !is_bidi_override(*c));
    let spaced: String = text.map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
    spaced.trim().chars().take(MAX_HOLDER_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_26_clear_digits_and_differ_in_every_bit() {
        let zero = TicketCode::from_bits([0; 16]);
        assert_eq!(zero.as_str(), "0".repeat(LENGTH));
        assert_eq!(TicketCode::from_bits([0xFF; 16]).as_str(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        for bit in 0..128 {
            let bits = (1_u128 << bit).to_be_bytes();
            let code = TicketCode::from_bits(bits);
            assert_ne!(code, zero, "bit {bit}");
            assert!(code.as_str().bytes().all(|b| DIGITS.contains(&b)));
        }
    }

    #[test]
    fn the_parts_of_a_code_are_those_it_was_made_of() {
        for bits in [[0; 16], [0xFF; 16], *b"sixteen numbers!"] {
            for (code, kind) in [(TicketCode::from_bits(bits), 0), (TicketCode::of_signed_bits(bits), 1)] {
                let read = Code::parse(code.as_str()).expect("a code");
                assert_eq!(parts(&read), Some((kind, bits)), "{code}");
                assert_eq!(domain::door::read(&qr_text(code.as_str(), "C7", "Ana")), Ok(vec![read]));
            }
        }
    }

    #[test]
    fn the_qr_text_of_a_party_yields_its_code() {
        let codes: Vec<_> = (0..10).map(|number| TicketCode::of_signed_bits([number; 16]).to_string()).collect();
        let texts: Vec<&str> = codes.iter().map(String::as_str).collect();
        let read = domain::door::read(&group_qr_text(&texts, "Ana")).expect("codes");
        assert_eq!(read.iter().map(Code::as_str).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn the_qr_text_has_four_fields_for_any_name() {
        for holder in ["Ana", "a|b|c", "x\r\ny", "ليلى", "👩‍👩‍👧", "<script>", &"long ".repeat(60)] {
            let text = qr_text("CODE", "Circle C7", holder);
            assert_eq!(text.split('|').count(), 4, "{text:?}");
            assert!(text.starts_with("ROWLOCK1|CODE|Circle C7|"), "{text:?}");
            assert!(!text.contains(char::is_control), "{text:?}");
            assert!(text.chars().count() <= 75, "{text:?}");
        }
    }

    #[test]
    fn the_largest_party_fits_one_code() {
        let code = TicketCode::from_bits([0xFF; 16]);
        let codes = [code.as_str(); domain::seats::MAX_SEATS_PER_HOLD];
        let text = group_qr_text(&codes, &"\u{0915}\u{094d}\u{0937}|".repeat(40));
        assert_eq!(text.split('|').count(), 4, "{text}");
        assert_eq!(text.split('|').nth(1).map(|codes| codes.split(',').count()), Some(10));
        assert!(crate::qr::drawing(&text).is_ok(), "{} bytes", text.len());
    }
}

//! What a ticket's QR code carries.
//!
//! The code alone opens the door: 128 random bits that the caller drew, so that nobody guesses one.
//! It is written in Crockford's base 32, which a person can read out when a phone's screen is broken.

use std::fmt;

/// Crockford's digits: no I, L, O or U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits that 128 bits take, five bits each.
const LENGTH: usize = 26;
/// Marks the text of a QR code as one of ours and names its version.
const QR_PREFIX: &str = "ROWLOCK1";
/// Characters of the seat-holder's name that go into the QR code: more make it too dense to scan.
const MAX_HOLDER_CHARS: usize = 40;
/// Bytes of it that go into the code of a whole party, which carries up to ten codes besides.
const MAX_GROUP_HOLDER_BYTES: usize = 60;

/// A ticket's code, 26 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TicketCode(String);

impl TicketCode {
    /// The code made of these random bits.
    #[must_use]
    pub fn from_bits(bits: [u8; 16]) -> Self {
        let mut rest = u128::from_be_bytes(bits);
        let mut digits = [b'0'; LENGTH];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(rest % 32) as usize];
            rest /= 32;
        }
        Self(digits.iter().copied().map(char::from).collect())
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

/// The text inside the QR code: `ROWLOCK1|<code>|<seat>|<holder>`. Seat and holder are there for the
/// person at the door; only the code is checked. Bars and control characters in a name become spaces.
#[must_use]
pub fn qr_text(code: &str, seat: &str, holder: &str) -> String {
    format!("{QR_PREFIX}|{code}|{}|{}", clean(seat), clean(holder))
}

/// The text of one QR code for a whole party: `ROWLOCK1|<code>,<code>,…|<number> tickets|<holder>`. The door checks
/// each code by itself, so that one that was given back opens nothing.
#[must_use]
pub fn group_qr_text(codes: &[&str], holder: &str) -> String {
    let mut holder = clean(holder);
    while holder.len() > MAX_GROUP_HOLDER_BYTES {
        holder.pop();
    }
    format!("{QR_PREFIX}|{}|{} tickets|{}", codes.join(","), codes.len(), holder.trim_end())
}

fn clean(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
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
    fn the_qr_text_has_four_fields_whatever_the_holder_is_called() {
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
        assert!(crate::tickets::qr::drawing(&text).is_ok(), "{} bytes", text.len());
    }
}

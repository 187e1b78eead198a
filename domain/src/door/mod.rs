//! The rules of the door: what a scanned text says, when a show's door is open, and who was let in by which of
//! several scans when devices were apart.
//!
//! Both sides follow them: the server, and the device at the door while it has no network. Not here: whether a code is
//! genuine, which is the signature's and the books' business.

mod scanned;
mod settling;

pub use scanned::{CODE_LENGTH, Code, MAX_SCANNED_BYTES, Unreadable, read};
pub use settling::{LetIn, Settled, placed, settle};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::api::systems::one_line;
use crate::time::{MINUTE_MS, Timestamp};

/// So long before its start tickets of a show are looked at, milliseconds: nobody uses up one for next week by mistake.
pub const OPENS_BEFORE_MS: i64 = 18 * 60 * MINUTE_MS;
/// So long after its start people still come back in, milliseconds.
pub const CLOSES_AFTER_MS: i64 = 12 * 60 * MINUTE_MS;
/// How long a device may let people in by its list, milliseconds: an evening.
pub const LIST_LIFE_MS: i64 = 12 * 60 * MINUTE_MS;
/// Scans settled in one call at most: a call of ten codes each stays below what a body may have.
pub const MAX_SETTLED_SCANS: usize = 32;
/// Scans a device keeps for later at most.
pub const MAX_QUEUED_SCANS: usize = 2_000;
/// Longest name of a device, characters.
pub const MAX_DEVICE_CHARS: usize = 40;
/// Hex digits of a ticket's digest on a device's list: 96 bits.
const DIGEST_DIGITS: usize = 24;

/// Whether tickets of a show that begins then are looked at now.
#[must_use]
pub const fn is_open(starts_at: Timestamp, now: Timestamp) -> bool {
    starts_at.since(now) <= OPENS_BEFORE_MS && now.since(starts_at) <= CLOSES_AFTER_MS
}

/// What a device knows a ticket by: it is told no codes, so a list that is lost opens no door. Another for each show.
#[must_use]
pub fn digest(show: Uuid, code: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(show.as_bytes());
    hash.update(code.as_bytes());
    let mut digits = String::with_capacity(2 * 32);
    for byte in hash.finalize() {
        for half in [byte >> 4, byte & 15] {
            digits.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    digits.truncate(DIGEST_DIGITS);
    digits
}

/// The name of a device as it is kept: one line, trimmed; `None` when it is too long or empty.
#[must_use]
pub fn device_name(text: &str) -> Option<&str> {
    one_line(text, MAX_DEVICE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_opens_on_the_day_and_closes_when_the_night_is_over() {
        let start = Timestamp(1_000_000_000);
        for (now, open) in [
            (start, true),
            (start.plus_ms(-OPENS_BEFORE_MS), true),
            (start.plus_ms(-OPENS_BEFORE_MS - 1), false),
            (start.plus_ms(CLOSES_AFTER_MS), true),
            (start.plus_ms(CLOSES_AFTER_MS + 1), false),
            (Timestamp(i64::MIN), false),
            (Timestamp(i64::MAX), false),
        ] {
            assert_eq!(is_open(start, now), open, "{now:?}");
        }
    }

    #[test]
    fn a_digest_tells_codes_and_shows_apart_and_is_the_same_everywhere() {
        let show = Uuid::from_u128(7);
        let one = digest(show, "0123456789ABCDEFGHJKMNPQRS");
        assert_eq!(one.len(), DIGEST_DIGITS);
        assert!(one.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(digest(show, "0123456789ABCDEFGHJKMNPQRS"), one);
        assert_ne!(digest(show, "0123456789ABCDEFGHJKMNPQRT"), one);
        assert_ne!(digest(Uuid::from_u128(8), "0123456789ABCDEFGHJKMNPQRS"), one);
    }

    #[test]
    fn a_device_has_a_name_of_one_line() {
        assert_eq!(device_name("  Left door "), Some("Left door"));
        assert_eq!(device_name("الباب الأيسر"), Some("الباب الأيسر"));
        for text in ["", "  ", "a\nb", &"x".repeat(MAX_DEVICE_CHARS + 1)] {
            assert_eq!(device_name(text), None, "{text:?}");
        }
    }
}

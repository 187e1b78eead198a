//! Rules of the door: codes in scanned text, opening times of a show's doors, and the admission among several offline
//! scans of one ticket.
//!
//! The server and offline door devices share these rules. Whether a code is genuine is decided by the signature and the
//! database, not here.

mod scanned;
mod settlement;

pub use scanned::{CODE_LENGTH, Code, MAX_SCANNED_BYTES, QR_PREFIX, UnreadableCode, read};
pub use settlement::{ScanAdmission, SettlementOutcome, scan_time_on_server_clock, settle};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::api::systems::one_line;
use crate::time::{MINUTE_MS, Timestamp};

/// Time before the start at which tickets of a show are first accepted, milliseconds. It prevents the use of a ticket
/// for next week by mistake.
pub const OPENS_BEFORE_MS: i64 = 18 * 60 * MINUTE_MS;
/// Time after the start until which tickets are accepted, milliseconds.
pub const CLOSES_AFTER_MS: i64 = 12 * 60 * MINUTE_MS;
/// Validity of an offline list, milliseconds: an evening.
pub const LIST_LIFE_MS: i64 = 12 * 60 * MINUTE_MS;
/// Maximum number of scans in one settlement. Ten codes per scan stay below the body limit.
pub const MAX_SETTLED_SCANS: usize = 32;
/// Maximum number of scans that an offline device queues.
pub const MAX_QUEUED_SCANS: usize = 2_000;
/// Maximum length of a device's name, characters.
pub const MAX_DEVICE_CHARS: usize = 40;
/// Number of hex digits of a ticket's digest in an offline list: 96 bits.
const DIGEST_DIGITS: usize = 24;

/// True if the doors of a show that starts at `starts_at` are open at `now`.
#[must_use]
pub const fn is_open(starts_at: Timestamp, now: Timestamp) -> bool {
    starts_at.since(now) <= OPENS_BEFORE_MS && now.since(starts_at) <= CLOSES_AFTER_MS
}

/// Returns the digest by which an offline list identifies a ticket in a show. Lists contain no codes, so a lost list
/// admits no one.
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

/// Returns a device's name trimmed to one line; `None` if it is empty or too long.
#[must_use]
pub fn device_name(text: &str) -> Option<&str> {
    one_line(text, MAX_DEVICE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_open_on_the_day_and_close_after_the_night() {
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
    fn digest_is_deterministic_and_differs_by_code_and_show() {
        let show = Uuid::from_u128(7);
        let one = digest(show, "0123456789ABCDEFGHJKMNPQRS");
        assert_eq!(one.len(), DIGEST_DIGITS);
        assert!(one.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(digest(show, "0123456789ABCDEFGHJKMNPQRS"), one);
        assert_ne!(digest(show, "0123456789ABCDEFGHJKMNPQRT"), one);
        assert_ne!(digest(Uuid::from_u128(8), "0123456789ABCDEFGHJKMNPQRS"), one);
    }

    #[test]
    fn device_name_is_one_trimmed_line() {
        assert_eq!(device_name("  Left door "), Some("Left door"));
        assert_eq!(device_name("الباب الأيسر"), Some("الباب الأيسر"));
        for text in ["", "  ", "a\nb", &"x".repeat(MAX_DEVICE_CHARS + 1)] {
            assert_eq!(device_name(text), None, "{text:?}");
        }
    }
}

//! The one place that draws randomness: ids that cannot be guessed, and jitter.

use domain::time::Timestamp;
use rand::Rng;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A fresh random id (UUID version 4, 122 random bits).
#[must_use]
pub fn new_id() -> Uuid {
    // Not `Uuid::new_v4`, which makes a system call each time.
    uuid::Builder::from_random_bytes(random_bits()).into_uuid()
}

/// The id of a booking made at `now` (UUID version 7: milliseconds, then 74 random bits). It cannot be guessed. Bookings of
/// one moment are neighbours in every index that begins with the id: a sale writes eighteen such entries, and in tables of
/// millions of rows each would be on a separate page.
#[must_use]
pub fn booking_id(now: Timestamp) -> Uuid {
    let mut random = [0; 10];
    random.copy_from_slice(&random_bits()[..10]);
    uuid::Builder::from_unix_timestamp_millis(u64::try_from(now.0).unwrap_or_default(), &random).into_uuid()
}

/// Below the id of every booking made at that instant or later.
#[must_use]
pub fn first_booking_id(at: Timestamp) -> Uuid {
    let made = uuid::Builder::from_unix_timestamp_millis(u64::try_from(at.0).unwrap_or_default(), &[0; 10]).into_uuid();
    // The time is in the first six bytes.
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&made.as_bytes()[..6]);
    Uuid::from_bytes(bytes)
}

/// 128 random bits, for cookies and ticket codes.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where randomness comes in")]
pub fn random_bits() -> [u8; 16] {
    rand::rng().random()
}

/// A number drawn evenly from `0..=limit`: full jitter for retries.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where randomness comes in")]
pub fn jitter(limit: u64) -> u64 {
    rand::rng().random_range(0..=limit)
}

/// The pause before a retry, milliseconds, with full jitter. `attempts` counts the failed attempts so far. The bound is
/// `first_ms` after the first and doubles with each further one, up to `longest_ms`.
#[must_use]
pub fn backoff_ms(first_ms: u64, attempts: i32, longest_ms: u64) -> i64 {
    let doubled = first_ms.saturating_mul(1_u64 << attempts.saturating_sub(1).clamp(0, 20));
    jitter(doubled.min(longest_ms)).cast_signed()
}

/// The id that follows from these parts and no others. A retry finds the id of its first try.
#[must_use]
pub fn derived_id(parts: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        // The length goes in as well: ("ab", "c") is not ("a", "bc").
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Letters and digits of a booking reference: none that are mistaken for another when read aloud.
const REFERENCE_ALPHABET: &[u8; 31] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";

/// A booking's name for people, `K7QM-2XPA`, from random bits. 31^8 names; clashes are redrawn by
/// the caller, who has the unique constraint.
#[must_use]
pub fn booking_reference(bits: [u8; 16]) -> String {
    let mut rest = u128::from_be_bytes(bits);
    let mut name = String::with_capacity(9);
    for place in 0..8 {
        if place == 4 {
            name.push('-');
        }
        name.push(char::from(REFERENCE_ALPHABET[(rest % 31) as usize]));
        rest /= 31;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_has_the_id_of_its_first_attempt_and_other_requests_have_others() {
        assert_eq!(derived_id(&["a", "b"]), derived_id(&["a", "b"]));
        assert_ne!(derived_id(&["ab", "c"]), derived_id(&["a", "bc"]));
    }

    #[test]
    fn backoff_doubles_up_to_its_longest_pause() {
        for (attempts, bound) in [(i32::MIN, 500), (1, 500), (2, 1_000), (4, 4_000), (8, 60_000), (i32::MAX, 60_000)] {
            let longest = (0..200).map(|_| backoff_ms(500, attempts, 60_000)).max().expect("200 pauses");
            assert!((bound / 2..=bound).contains(&longest), "{attempts}: {longest}");
        }
    }

    #[test]
    fn later_bookings_have_greater_ids_and_all_ids_differ() {
        let (before, after) = (booking_id(Timestamp(1_764_000_000_000)), booking_id(Timestamp(1_764_000_000_001)));
        assert!(before < after);
        assert_ne!(before, booking_id(Timestamp(1_764_000_000_000)));
        assert_eq!(before.get_version_num(), 7);
    }

    #[test]
    fn references_have_two_groups_of_four_clear_letters() {
        let name = booking_reference([0xAB; 16]);
        assert_eq!(name.len(), 9);
        assert_eq!(name.as_bytes()[4], b'-');
        assert!(name.bytes().filter(|b| *b != b'-').all(|b| REFERENCE_ALPHABET.contains(&b)));
    }
}

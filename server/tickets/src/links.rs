//! The address that opens all tickets of a booking. The mail to the buyer carries it: it is often opened on a phone that has
//! never visited the shop.
//!
//! It replaces a ticket's code in `/tickets/{code}`: 32 hex digits of the booking's id and 32 of a signature over it, so it
//! needs no row in the database. Ticket codes have 26 digits, so the two differ. The tickets are read anew each time: revoked
//! ones are not among them.

use std::sync::OnceLock;

use uuid::Uuid;

use platform::signed_token::Keys;

/// Purpose of the derived keys: no other signature of the same secrets is valid here.
const PURPOSE: &[u8] = b"rowlock tickets of a booking 1\n";
/// Digits of the booking's id.
const ID_DIGITS: usize = 32;

/// The keys of this process, set once, beside those of the codes.
static KEYS: OnceLock<Keys> = OnceLock::new();

/// Sets the secrets that sign addresses; a second call changes nothing.
pub(super) fn sign_with(secrets: &[String]) {
    let _ = KEYS.set(Keys::derived(secrets, PURPOSE));
}

/// The last part of a booking's address; invalid before the secrets are set.
#[must_use]
pub fn key_of(booking: Uuid) -> String {
    let signature = KEYS.get().map(|keys| keys.sign(booking.as_bytes())).unwrap_or_default();
    key_with(booking, &signature)
}

/// The booking whose tickets a key opens; `None` for a forged key.
#[must_use]
pub fn booking_of(key: &str) -> Option<Uuid> {
    booking_with(key, KEYS.get()?)
}

fn key_with(booking: Uuid, signature: &str) -> String {
    format!("{:X}{}", booking.simple(), signature.to_ascii_uppercase())
}

fn booking_with(key: &str, keys: &Keys) -> Option<Uuid> {
    let (id, signature) = key.split_at_checked(ID_DIGITS)?;
    let booking = Uuid::try_parse(id).ok()?;
    keys.is_genuine(booking.as_bytes(), signature).then_some(booking)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_its_booking_and_cannot_be_made_for_another() {
        let keys = Keys::derived(&["a secret".to_owned()], PURPOSE);
        let (ours, another) = (Uuid::from_u128(7 << 100 | 0xabc), Uuid::from_u128(8));
        let key = key_with(ours, &keys.sign(ours.as_bytes()));
        assert!(key.len() == 64 && key.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()), "{key}");
        assert_eq!(booking_with(&key, &keys), Some(ours));
        // Some programs turn addresses into small letters.
        assert_eq!(booking_with(&key.to_ascii_lowercase(), &keys), Some(ours));
        let forged = key_with(another, &keys.sign(ours.as_bytes()));
        let unsigned = key_with(ours, "");
        for wrong in
            [forged.as_str(), &unsigned, &key[..63], &format!("{key}00"), "", "0ABCDEFGHJKMNPQRSTVWXYZ012", "é"]
        {
            assert_eq!(booking_with(wrong, &keys), None, "{wrong}");
        }
        let other_secret = Keys::derived(&["another".to_owned()], PURPOSE);
        assert_eq!(booking_with(&key, &other_secret), None);
    }
}

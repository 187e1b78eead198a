//! Signatures of tokens that clients hold: verified without a lookup.
//!
//! Each capability defines the content and form of its tokens; the signature is common to all. Each purpose has derived keys,
//! so that a token of one purpose is never valid for another.

use domain::time::{SECOND_MS, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

/// Length of a signature, bytes: 128 bits are beyond guessing.
const SIGNATURE_BYTES: usize = 16;

/// The keys of one purpose.
pub struct Keys {
    /// The first key signs; all keys verify.
    keys: Vec<Hmac<Sha256>>,
}

impl Keys {
    /// Derived for a purpose from the secrets that sign tokens, so that neither is ever the other.
    #[must_use]
    pub fn derived(secrets: &[String], purpose: &[u8]) -> Self {
        let keyed = |bytes: &[u8]| Hmac::<Sha256>::new_from_slice(bytes).expect("any length is a key");
        let derived = |secret: &String| {
            let mut mac = keyed(secret.as_bytes());
            mac.update(purpose);
            keyed(&mac.finalize().into_bytes())
        };
        Self { keys: secrets.iter().map(derived).collect() }
    }

    /// The signature of a message, in hex; empty without a secret, and never valid.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> String {
        let Some(key) = self.keys.first() else { return String::new() };
        let mut mac = key.clone();
        mac.update(message);
        hex::encode(&mac.finalize().into_bytes()[..SIGNATURE_BYTES])
    }

    /// Verifies a signature of this message, in constant time.
    #[must_use]
    pub fn is_genuine(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = hex::decode(signature) else { return false };
        let fits = |key: &Hmac<Sha256>| {
            let mut mac = key.clone();
            mac.update(message);
            mac.verify_truncated_left(&signature).is_ok()
        };
        signature.len() == SIGNATURE_BYTES && self.keys.iter().any(fits)
    }
}

/// Digits of the id in a dated key…
const ID_DIGITS: usize = 32;
/// …and of its instant.
const UNTIL_DIGITS: usize = 10;

/// A key for an address: the id in 32 hex digits, the expiry in 10 (seconds since 1970), and a signature over both.
#[must_use]
pub fn dated_key(keys: &Keys, id: Uuid, until: Timestamp) -> String {
    let until_s = until.0 / SECOND_MS;
    format!("{}{until_s:010x}{}", id.simple(), keys.sign(&dated(id, until_s)))
}

/// The id in a dated key; `None` for a key that is forged or expired.
#[must_use]
pub fn read_dated_key(keys: &Keys, key: &str, now: Timestamp) -> Option<Uuid> {
    let (id, rest) = key.split_at_checked(ID_DIGITS)?;
    let (until, signature) = rest.split_at_checked(UNTIL_DIGITS)?;
    let id = Uuid::try_parse(id).ok()?;
    let until_s = i64::from_str_radix(until, 16).ok()?;
    let is_good = keys.is_genuine(&dated(id, until_s), signature) && now.0 / SECOND_MS < until_s;
    is_good.then_some(id)
}

fn dated(id: Uuid, until_s: i64) -> [u8; 24] {
    let mut message = [0; 24];
    message[..16].copy_from_slice(id.as_bytes());
    message[16..].copy_from_slice(&until_s.to_be_bytes());
    message
}

/// A number as we write it: digits only, so that a word has one spelling.
#[must_use]
pub fn parse_number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(secrets: &[&str], purpose: &[u8]) -> Keys {
        Keys::derived(&secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>(), purpose)
    }

    #[test]
    fn a_signature_is_valid_for_its_message_and_purpose_only() {
        let signer = keys(&["one"], b"a test");
        let signature = signer.sign(b"a word");
        assert_eq!(signature.len(), 2 * SIGNATURE_BYTES);
        assert!(signer.is_genuine(b"a word", &signature));
        assert!(!signer.is_genuine(b"another", &signature));
        assert!(!keys(&["one"], b"another test").is_genuine(b"a word", &signature));
        let longer = format!("{signature}00");
        for other in ["", "zz", &signature[2..], &signature[..8], longer.as_str()] {
            assert!(!signer.is_genuine(b"a word", other), "{other}");
        }
    }

    #[test]
    fn a_rotated_secret_verifies_and_without_a_secret_nothing_does() {
        let signature = keys(&["old"], b"a test").sign(b"a word");
        assert!(keys(&["new", "old"], b"a test").is_genuine(b"a word", &signature));
        assert!(!keys(&["new"], b"a test").is_genuine(b"a word", &signature));
        let none = keys(&[], b"a test");
        assert!(!none.is_genuine(b"a word", &none.sign(b"a word")));
    }

    #[test]
    fn a_dated_key_is_valid_for_its_id_time_and_purpose_only() {
        let (signer, other) = (keys(&["one"], b"a test"), keys(&["one"], b"another test"));
        let (ours, now) = (Uuid::from_u128(7 << 100 | 0xabc), Timestamp(1_795_000_000_000));
        let until = now.plus_ms(60_000);
        let key = dated_key(&signer, ours, until);
        assert_eq!(key.len(), ID_DIGITS + UNTIL_DIGITS + 2 * SIGNATURE_BYTES);
        assert_eq!(read_dated_key(&signer, &key, now), Some(ours));
        // Some programs turn addresses into capital letters.
        assert_eq!(read_dated_key(&signer, &key.to_ascii_uppercase(), now), Some(ours));
        assert_eq!(read_dated_key(&other, &key, now), None, "another purpose");
        assert_eq!(read_dated_key(&signer, &key, until), None, "its time is over");
        let until_s = until.0 / SECOND_MS;
        let longer = key.replace(&format!("{until_s:010x}"), &format!("{:010x}", until_s + 1));
        let anothers = key.replace(&ours.simple().to_string(), &Uuid::from_u128(8).simple().to_string());
        let unsigned = &key[..ID_DIGITS + UNTIL_DIGITS];
        for wrong in [longer.as_str(), &anothers, unsigned, &key[..73], &format!("{key}00"), "", "é"] {
            assert_eq!(read_dated_key(&signer, wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(parse_number("0"), Some(0));
        assert_eq!(parse_number("18446744073709551615"), Some(u64::MAX));
        for text in ["", "01", "+1", "-1", " 1", "1 ", "18446744073709551616", "١"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }
}

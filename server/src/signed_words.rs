//! Words that we give away and believe when they come back, because they are signed: nobody need look anything up.
//!
//! What is said, and how it is written, is the business of whoever says it; the signature is the same for all. Each
//! purpose has keys of its own, so that no word of one is ever a word of another.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length of a signature, bytes: 128 bits are beyond guessing.
const SIGNATURE_BYTES: usize = 16;

/// The keys of one purpose.
pub struct Keys {
    /// The first signs, all are believed.
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

    /// The signature of a message, in hex; empty where there is no secret, and believed by nobody.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> String {
        let Some(key) = self.keys.first() else { return String::new() };
        let mut mac = key.clone();
        mac.update(message);
        hex::encode(&mac.finalize().into_bytes()[..SIGNATURE_BYTES])
    }

    /// Whether a signature is ours, of this message. In constant time.
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

/// A number as we write it: digits only, so that a word has one spelling.
#[must_use]
pub fn plain(text: &str) -> Option<u64> {
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
    fn a_signature_is_of_its_message_and_its_purpose() {
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
    fn a_secret_is_replaced_without_a_gap_and_without_one_nothing_is_believed() {
        let signature = keys(&["old"], b"a test").sign(b"a word");
        assert!(keys(&["new", "old"], b"a test").is_genuine(b"a word", &signature));
        assert!(!keys(&["new"], b"a test").is_genuine(b"a word", &signature));
        let none = keys(&[], b"a test");
        assert!(!none.is_genuine(b"a word", &none.sign(b"a word")));
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(plain("0"), Some(0));
        assert_eq!(plain("18446744073709551615"), Some(u64::MAX));
        for text in ["", "01", "+1", "-1", " 1", "1 ", "18446744073709551616", "١"] {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}

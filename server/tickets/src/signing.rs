//! Signs the codes of tickets, and detects forged ones.
//!
//! A code is 26 digits of base 32, 130 bits. The first two bits are the version. 00: 128 random bits, of tickets made before
//! codes were signed. 01: 80 random bits, and 48 bits of an HMAC-SHA-256 over them. Neither can be guessed. The signature
//! lets a reader detect a forged code without a lookup.
//!
//! Postgres decides: a ticket in the database is valid, also if the secret that signed it is not configured any more.

use std::sync::OnceLock;

use domain::door::Code;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a code that are random.
const RANDOM_BYTES: usize = 10;
/// Bytes of a code that are its signature.
const SIGNATURE_BYTES: usize = 6;
/// Prefix of the signed message: no other message signed with the secret has it.
const PURPOSE: &[u8] = b"rowlock ticket 1\n";

/// The secrets of this process; the first signs. A static, because tickets are made deep inside many transactions, whose
/// callers should not pass secrets along.
static SECRETS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

/// Sets the secrets that sign codes: the first signs, all verify. A second call changes nothing.
pub(super) fn sign_with(secrets: &[String]) {
    let _ = SECRETS.set(secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect());
}

/// The validity of a code's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// The signature is valid.
    ByUs,
    /// The code is of the version without a signature.
    Never,
    /// The signature is invalid, or made with a secret that is no longer configured.
    Forged,
}

/// Checks the signature of a code.
#[must_use]
pub fn check_signature(code: &Code) -> Signed {
    check_signature_with(code, SECRETS.get().map(Vec::as_slice).unwrap_or_default())
}

/// Signs the random bits of a new code: the last 48 become the signature.
///
/// # Panics
/// Before [`sign_with`]: no ticket is made before the server has its settings.
pub(super) fn signed(random: [u8; 16]) -> [u8; 16] {
    let secret = SECRETS.get().and_then(|secrets| secrets.first()).expect("the settings have a secret");
    signed_with(random, secret)
}

fn signed_with(random: [u8; 16], secret: &[u8]) -> [u8; 16] {
    let mut bits = random;
    let signature = signature(&random[..RANDOM_BYTES], secret);
    bits[RANDOM_BYTES..].copy_from_slice(&signature);
    bits
}

fn check_signature_with(code: &Code, secrets: &[Vec<u8>]) -> Signed {
    let Some((kind, bits)) = super::code::parts(code) else { return Signed::Forged };
    match kind {
        0 => Signed::Never,
        1 => {
            let (random, claimed) = bits.split_at(RANDOM_BYTES);
            let is_ours = secrets.iter().any(|secret| {
                // In constant time.
                mac(random, secret).verify_truncated_left(claimed).is_ok()
            });
            if is_ours { Signed::ByUs } else { Signed::Forged }
        }
        _ => Signed::Forged,
    }
}

fn mac(random: &[u8], secret: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length is a key");
    mac.update(PURPOSE);
    mac.update(random);
    mac
}

fn signature(random: &[u8], secret: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let mut signature = [0; SIGNATURE_BYTES];
    signature.copy_from_slice(&mac(random, secret).finalize().into_bytes()[..SIGNATURE_BYTES]);
    signature
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TicketCode;

    const SECRET: &[u8] = b"a secret of this test; thirty-two bytes or more";

    fn code(random: [u8; 16]) -> Code {
        Code::parse(TicketCode::of_signed_bits(signed_with(random, SECRET)).as_str()).expect("a code")
    }

    #[test]
    fn a_code_with_one_changed_digit_is_forged() {
        let secrets = [SECRET.to_vec()];
        let ours = code(*b"sixteen numbers!");
        assert_eq!(check_signature_with(&ours, &secrets), Signed::ByUs);
        for at in 0..26 {
            let mut text = ours.to_string().into_bytes();
            text[at] = if text[at] == b'8' { b'9' } else { b'8' };
            let text = String::from_utf8(text).expect("digits");
            if text != ours.as_str() {
                let other = Code::parse(&text).expect("a code");
                assert_eq!(check_signature_with(&other, &secrets), Signed::Forged, "{text} for {ours}");
            }
        }
    }

    #[test]
    fn both_secrets_verify_and_without_secrets_every_code_is_forged() {
        let ours = code([7; 16]);
        let other = b"another secret, that is the first now".to_vec();
        assert_eq!(check_signature_with(&ours, &[other.clone(), SECRET.to_vec()]), Signed::ByUs);
        assert_eq!(check_signature_with(&ours, &[other]), Signed::Forged);
        assert_eq!(check_signature_with(&ours, &[]), Signed::Forged);
    }

    #[test]
    fn unsigned_codes_of_earlier_versions_stay_unsigned() {
        for bits in [[0; 16], [0xFF; 16], *b"sixteen numbers!"] {
            let old = Code::parse(TicketCode::from_bits(bits).as_str()).expect("a code");
            assert_eq!(check_signature_with(&old, &[SECRET.to_vec()]), Signed::Never, "{old}");
        }
        // A version that does not exist.
        let unknown = Code::parse("ZZZZZZZZZZZZZZZZZZZZZZZZZZ").expect("a code");
        assert_eq!(check_signature_with(&unknown, &[SECRET.to_vec()]), Signed::Forged);
    }
}

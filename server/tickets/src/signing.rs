//! Signs the codes of tickets, and tells codes of ours from codes that somebody made up.
//!
//! A code is 26 digits of base 32, 130 bits. The first two say what it is. 00: as tickets were before they were signed,
//! 128 random bits. 01: 80 random bits, and 48 of HMAC-SHA-256 over them, which only we can make.
//! Nobody guesses either. What the signature adds: whoever reads a code knows that it was made up without asking
//! anybody.
//!
//! Postgres has the last word. A ticket that is there stays good when the secret it was signed with is not
//! configured any more: people hold it in their hands.

use std::sync::OnceLock;

use domain::door::Code;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a code that are random.
const RANDOM_BYTES: usize = 10;
/// Bytes of a code that are its signature.
const SIGNATURE_BYTES: usize = 6;
/// What is signed begins with it: nothing else that the secret signs does.
const PURPOSE: &[u8] = b"rowlock ticket 1\n";

/// The secrets of this process, the first signs. Set once: tickets are written deep below transactions that many
/// roads lead to, and none of these roads has a say in how a code is signed.
static SECRETS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

/// Says with what codes are signed: the first secret signs, all of them are believed. A second call changes nothing.
pub(super) fn sign_with(secrets: &[String]) {
    let _ = SECRETS.set(secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect());
}

/// What a code's form says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// We signed it.
    ByUs,
    /// It is of the kind that was never signed.
    Never,
    /// It says that we did, and we did not; or with a secret that is no longer configured.
    Forged,
}

/// What the form of a code says of it.
#[must_use]
pub fn judge(code: &Code) -> Signed {
    judge_with(code, SECRETS.get().map(Vec::as_slice).unwrap_or_default())
}

/// The 128 bits of a fresh code, signed.
///
/// # Panics
/// Before [`sign_with`]: nobody writes tickets before the server has its settings.
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

fn judge_with(code: &Code, secrets: &[Vec<u8>]) -> Signed {
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
    fn a_code_of_ours_is_told_from_every_code_that_is_one_digit_off() {
        let secrets = [SECRET.to_vec()];
        let ours = code(*b"sixteen numbers!");
        assert_eq!(judge_with(&ours, &secrets), Signed::ByUs);
        for at in 0..26 {
            let mut text = ours.to_string().into_bytes();
            text[at] = if text[at] == b'8' { b'9' } else { b'8' };
            let text = String::from_utf8(text).expect("digits");
            if text != ours.as_str() {
                let other = Code::parse(&text).expect("a code");
                assert_eq!(judge_with(&other, &secrets), Signed::Forged, "{text} for {ours}");
            }
        }
    }

    #[test]
    fn both_secrets_are_believed_and_none_says_nothing() {
        let ours = code([7; 16]);
        let other = b"another secret, that is the first now".to_vec();
        assert_eq!(judge_with(&ours, &[other.clone(), SECRET.to_vec()]), Signed::ByUs);
        assert_eq!(judge_with(&ours, &[other]), Signed::Forged);
        assert_eq!(judge_with(&ours, &[]), Signed::Forged);
    }

    #[test]
    fn codes_from_before_signatures_stay_what_they_are() {
        for bits in [[0; 16], [0xFF; 16], *b"sixteen numbers!"] {
            let old = Code::parse(TicketCode::from_bits(bits).as_str()).expect("a code");
            assert_eq!(judge_with(&old, &[SECRET.to_vec()]), Signed::Never, "{old}");
        }
        // A kind there never was.
        let strange = Code::parse("ZZZZZZZZZZZZZZZZZZZZZZZZZZ").expect("a code");
        assert_eq!(judge_with(&strange, &[SECRET.to_vec()]), Signed::Forged);
    }
}

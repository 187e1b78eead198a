//! Challenges: what is asked of whom, until when, signed. Nobody need look anything up to believe one.
//!
//! `BITS-UNTIL-SALT-SIGNATURE`: how many zero bits, when it runs out (milliseconds), what makes it another one than the
//! next, and a signature of all that with the show and the visitor. So an easy puzzle does for nobody else, nor for
//! longer, and fewer bits than asked for are another challenge.

use domain::puzzle::MOST_BITS;
use domain::time::{MINUTE_MS, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

/// How long a puzzle may be solved, milliseconds: a slow phone with the hardest, and what became of its request.
pub(super) const LIFE_MS: i64 = 2 * MINUTE_MS;
/// What the key for these is derived with from the secret that signs tokens, so that neither is ever the other.
const PURPOSE: &[u8] = b"rowlock puzzles 1";
/// Length of a signature, bytes: 128 bits are beyond guessing.
const SIGNATURE_BYTES: usize = 16;
/// Digits of a salt: 64 bits in hex.
const SALT_DIGITS: usize = 16;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Zero bits a solution begins with.
    pub(super) bits: u8,
    /// Not from here on.
    pub(super) until: Timestamp,
    /// Random: names the puzzle.
    pub(super) salt: u64,
}

/// Signs and reads them.
pub(super) struct Signer {
    /// The first signs, all are believed.
    keys: Vec<Hmac<Sha256>>,
}

impl Signer {
    /// From the secrets that sign tokens.
    pub(super) fn new(secrets: &[String]) -> Self {
        let keyed = |bytes: &[u8]| Hmac::<Sha256>::new_from_slice(bytes).expect("any length is a key");
        let derived = |secret: &String| {
            let mut mac = keyed(secret.as_bytes());
            mac.update(PURPOSE);
            keyed(&mac.finalize().into_bytes())
        };
        Self { keys: secrets.iter().map(derived).collect() }
    }

    /// The challenge for a visitor of a show.
    pub(super) fn sign(&self, show: Uuid, owner: &str, asked: Asked) -> String {
        let Asked { bits, until, salt } = asked;
        let signature = self.keys.first().map(|key| {
            let mut mac = key.clone();
            mac.update(&said(show, owner, asked));
            hex::encode(&mac.finalize().into_bytes()[..SIGNATURE_BYTES])
        });
        format!("{bits}-{}-{salt:016x}-{}", until.0, signature.unwrap_or_default())
    }

    /// What a genuine challenge for this visitor of this show asks.
    pub(super) fn read(&self, show: Uuid, owner: &str, challenge: &str) -> Option<Asked> {
        let mut parts = challenge.splitn(4, '-');
        let (bits, until, salt) = (plain(parts.next()?)?, plain(parts.next()?)?, parts.next()?);
        let signature = hex::decode(parts.next()?).ok().filter(|signature| signature.len() == SIGNATURE_BYTES)?;
        let asked = Asked {
            bits: u8::try_from(bits).ok().filter(|bits| *bits <= MOST_BITS)?,
            until: Timestamp(i64::try_from(until).ok()?),
            salt: u64::from_str_radix(salt, 16).ok().filter(|_| salt.len() == SALT_DIGITS)?,
        };
        let message = said(show, owner, asked);
        // In constant time.
        let fits = |key: &Hmac<Sha256>| {
            let mut mac = key.clone();
            mac.update(&message);
            mac.verify_truncated_left(&signature).is_ok()
        };
        self.keys.iter().any(fits).then_some(asked)
    }
}

/// What is signed: every part has one length or stands last.
fn said(show: Uuid, owner: &str, asked: Asked) -> Vec<u8> {
    let mut message = Vec::with_capacity(80);
    message.extend_from_slice(show.as_bytes());
    message.push(asked.bits);
    message.extend_from_slice(&asked.until.0.to_be_bytes());
    message.extend_from_slice(&asked.salt.to_be_bytes());
    message.extend_from_slice(owner.as_bytes());
    message
}

/// A number as we write it: digits only.
fn plain(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use domain::puzzle::LEAST_BITS;

    use super::*;

    const SHOW: Uuid = Uuid::from_u128(7);
    const ASKED: Asked = Asked { bits: LEAST_BITS, until: Timestamp(1_795_000_000_000), salt: 0xAB };

    fn signer(secrets: &[&str]) -> Signer {
        Signer::new(&secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_challenge_is_its_visitors_and_its_shows() {
        let signer = signer(&["one"]);
        let challenge = signer.sign(SHOW, "ann", ASKED);
        assert_eq!(signer.read(SHOW, "ann", &challenge), Some(ASKED));
        assert_eq!(signer.read(SHOW, "bob", &challenge), None);
        assert_eq!(signer.read(Uuid::from_u128(8), "ann", &challenge), None);
    }

    #[test]
    fn nobody_makes_it_easier_or_last_longer() {
        let signer = signer(&["one"]);
        let challenge = signer.sign(SHOW, "ann", ASKED);
        assert!(challenge.starts_with("14-1795000000000-00000000000000ab-"), "{challenge}");
        for (from, to) in [
            ("14-", "1-"),
            ("14-", "014-"),
            ("14-", "+14-"),
            ("14-", "-14-"),
            ("14-", "300-"),
            ("1795", "2795"),
            ("00ab-", "00ac-"),
            ("00ab-", "00AB-0"),
            ("-00000000000000ab", "-ab"),
        ] {
            let other = challenge.replacen(from, to, 1);
            assert_ne!(other, challenge);
            assert_eq!(signer.read(SHOW, "ann", &other), None, "{other}");
        }
        let half = &challenge[..challenge.len() - 2];
        for text in [half, "", "-", "14", "14-1-2", "14-1-2-", "14-1795000000000-00000000000000ab-é"] {
            assert_eq!(signer.read(SHOW, "ann", text), None, "{text}");
        }
    }

    #[test]
    fn a_solution_of_the_longest_number_fits_into_what_is_looked_at() {
        let longest = Asked { bits: MOST_BITS, until: Timestamp(99_999_999_999_999), salt: u64::MAX };
        let challenge = signer(&["one"]).sign(SHOW, "ann", longest);
        assert!(challenge.len() + 1 + domain::puzzle::MOST_DIGITS <= super::super::MAX_BYTES, "{challenge}");
    }

    #[test]
    fn a_secret_is_replaced_without_a_gap() {
        let challenge = signer(&["old"]).sign(SHOW, "ann", ASKED);
        assert_eq!(signer(&["new", "old"]).read(SHOW, "ann", &challenge), Some(ASKED));
        assert_eq!(signer(&["new"]).read(SHOW, "ann", &challenge), None);
    }
}

//! Challenges: the parameters of a puzzle, signed, so that the server stores nothing to verify them.
//!
//! `BITS-UNTIL-SALT-SIGNATURE`: number of zero bits, expiry (milliseconds), a random salt, and a signature over these
//! with the show and the visitor. So a challenge is valid only for its visitor and time, and its bits cannot be
//! lowered.

use domain::puzzle::MAX_BITS;
use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use platform::signed_token::{Keys, parse_number};

/// Lifetime of a challenge, milliseconds: long enough for a slow phone with the hardest puzzle, and the retry after it.
pub(super) const LIFE_MS: i64 = 2 * MINUTE_MS;
/// Derivation label of the key, which differs from the keys of other tokens with the same secrets.
const PURPOSE: &[u8] = b"rowlock puzzles 1";
/// Digits of a salt: 64 bits in hex.
const SALT_DIGITS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Zero bits with which the digest of a solution begins.
    pub(super) bits: u8,
    /// Its expiry, exclusive.
    pub(super) until: Timestamp,
    /// Random number that identifies the puzzle.
    pub(super) salt: u64,
}

/// Signs and verifies challenges.
pub(super) struct Signer {
    keys: Keys,
}

impl Signer {
    /// Derives its keys from the secrets that sign tokens.
    pub(super) fn new(secrets: &[String]) -> Self {
        Self { keys: Keys::derived(secrets, PURPOSE) }
    }

    /// Signs a challenge for a visitor of a show.
    pub(super) fn sign(&self, show: Uuid, owner: &str, parameters: Parameters) -> String {
        let Parameters { bits, until, salt } = parameters;
        let signature = self.keys.sign(&signed_bytes(show, owner, parameters));
        format!("{bits}-{}-{salt:016x}-{signature}", until.0)
    }

    /// The parameters of a challenge, if its signature is valid for this visitor and show.
    pub(super) fn read(&self, show: Uuid, owner: &str, challenge: &str) -> Option<Parameters> {
        let mut parts = challenge.splitn(4, '-');
        let (bits, until, salt) = (parse_number(parts.next()?)?, parse_number(parts.next()?)?, parts.next()?);
        let signature = parts.next()?;
        let parameters = Parameters {
            bits: u8::try_from(bits).ok().filter(|bits| *bits <= MAX_BITS)?,
            until: Timestamp(i64::try_from(until).ok()?),
            salt: u64::from_str_radix(salt, 16).ok().filter(|_| salt.len() == SALT_DIGITS)?,
        };
        self.keys.is_genuine(&signed_bytes(show, owner, parameters), signature).then_some(parameters)
    }
}

/// The signed bytes: every part has a fixed length or is the last.
fn signed_bytes(show: Uuid, owner: &str, parameters: Parameters) -> Vec<u8> {
    let mut message = Vec::with_capacity(80);
    message.extend_from_slice(show.as_bytes());
    message.push(parameters.bits);
    message.extend_from_slice(&parameters.until.0.to_be_bytes());
    message.extend_from_slice(&parameters.salt.to_be_bytes());
    message.extend_from_slice(owner.as_bytes());
    message
}

#[cfg(test)]
mod tests {
    use domain::puzzle::MIN_BITS;

    use super::*;

    const SHOW: Uuid = Uuid::from_u128(7);
    const ASKED: Parameters = Parameters { bits: MIN_BITS, until: Timestamp(1_795_000_000_000), salt: 0xAB };

    fn signer(secrets: &[&str]) -> Signer {
        Signer::new(&secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_challenge_is_valid_only_for_its_visitor_and_show() {
        let signer = signer(&["one"]);
        let challenge = signer.sign(SHOW, "ann", ASKED);
        assert_eq!(signer.read(SHOW, "ann", &challenge), Some(ASKED));
        assert_eq!(signer.read(SHOW, "bob", &challenge), None);
        assert_eq!(signer.read(Uuid::from_u128(8), "ann", &challenge), None);
    }

    #[test]
    fn a_challenge_with_changed_bits_expiry_or_salt_is_rejected() {
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
    fn the_longest_solution_fits_into_the_length_limit() {
        let longest = Parameters { bits: MAX_BITS, until: Timestamp(99_999_999_999_999), salt: u64::MAX };
        let challenge = signer(&["one"]).sign(SHOW, "ann", longest);
        assert!(challenge.len() + 1 + domain::puzzle::MAX_DIGITS <= super::super::MAX_BYTES, "{challenge}");
    }

    #[test]
    fn challenges_of_the_previous_secret_are_valid_during_rotation() {
        let challenge = signer(&["old"]).sign(SHOW, "ann", ASKED);
        assert_eq!(signer(&["new", "old"]).read(SHOW, "ann", &challenge), Some(ASKED));
        assert_eq!(signer(&["new"]).read(SHOW, "ann", &challenge), None);
    }
}

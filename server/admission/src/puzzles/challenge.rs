//! Challenges: what is asked of whom, until when, signed. Nobody need look anything up to believe one.
//!
//! `BITS-UNTIL-SALT-SIGNATURE`: how many zero bits, when it runs out (milliseconds), what makes it another one than the
//! next, and a signature of all that with the show and the visitor. So an easy puzzle does for nobody else, nor for
//! longer, and fewer bits than asked for are another challenge.

use domain::puzzle::MOST_BITS;
use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use platform::signed_words::{Keys, plain};

/// How long a puzzle may be solved, milliseconds: a slow phone with the hardest, and what became of its request.
pub(super) const LIFE_MS: i64 = 2 * MINUTE_MS;
/// What the key for these is derived with from the secret that signs tokens, so that neither is ever the other.
const PURPOSE: &[u8] = b"rowlock puzzles 1";
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
    keys: Keys,
}

impl Signer {
    /// From the secrets that sign tokens.
    pub(super) fn new(secrets: &[String]) -> Self {
        Self { keys: Keys::derived(secrets, PURPOSE) }
    }

    /// The challenge for a visitor of a show.
    pub(super) fn sign(&self, show: Uuid, owner: &str, asked: Asked) -> String {
        let Asked { bits, until, salt } = asked;
        let signature = self.keys.sign(&said(show, owner, asked));
        format!("{bits}-{}-{salt:016x}-{signature}", until.0)
    }

    /// What a genuine challenge for this visitor of this show asks.
    pub(super) fn read(&self, show: Uuid, owner: &str, challenge: &str) -> Option<Asked> {
        let mut parts = challenge.splitn(4, '-');
        let (bits, until, salt) = (plain(parts.next()?)?, plain(parts.next()?)?, parts.next()?);
        let signature = parts.next()?;
        let asked = Asked {
            bits: u8::try_from(bits).ok().filter(|bits| *bits <= MOST_BITS)?,
            until: Timestamp(i64::try_from(until).ok()?),
            salt: u64::from_str_radix(salt, 16).ok().filter(|_| salt.len() == SALT_DIGITS)?,
        };
        self.keys.is_genuine(&said(show, owner, asked), signature).then_some(asked)
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

//! Tickets and passes: signed numbers and expiry times, which are verified without a store.
//!
//! A ticket is a number in this room; its bearer has that place. A pass allows a visitor to take seats
//! until its expiry. Both are bound to the room, and a room that is switched on again is another one.

use domain::time::Timestamp;
use uuid::Uuid;

use platform::signed_token::{Keys, parse_number};

/// Derivation label of the key, which differs from the keys of other tokens with the same secrets.
const PURPOSE: &[u8] = b"rowlock waiting room 1";
/// Maximum length of a ticket or pass, bytes.
const MAX_BYTES: usize = 128;

/// Signs and verifies tickets and passes.
pub(super) struct Signer {
    keys: Keys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) number: u64,
    pub(super) until: Timestamp,
}

impl Signer {
    /// Derives its keys from the secrets that sign tokens.
    pub(super) fn new(secrets: &[String]) -> Self {
        Self { keys: Keys::derived(secrets, PURPOSE) }
    }

    pub(super) fn ticket(&self, room: Uuid, number: u64) -> String {
        format!("{number}-{}", self.keys.sign(&signed_bytes("ticket", room, number, 0, "")))
    }

    /// The number of a ticket, if its signature is valid for this room.
    pub(super) fn read_ticket(&self, room: Uuid, text: &str) -> Option<u64> {
        let (number, signature) = within_limit(text)?.split_once('-')?;
        let number = parse_number(number)?;
        self.keys.is_genuine(&signed_bytes("ticket", room, number, 0, ""), signature).then_some(number)
    }

    pub(super) fn pass(&self, room: Uuid, owner: &str, pass: Pass) -> String {
        let Pass { number, until } = pass;
        format!("{number}-{}-{}", until.0, self.keys.sign(&signed_bytes("pass", room, number, until.0, owner)))
    }

    /// The content of a pass, if its signature is valid for this room and visitor.
    pub(super) fn read_pass(&self, room: Uuid, owner: &str, text: &str) -> Option<Pass> {
        let mut parts = within_limit(text)?.splitn(3, '-');
        let (number, until, signature) = (parse_number(parts.next()?)?, parse_number(parts.next()?)?, parts.next()?);
        let until = i64::try_from(until).ok()?;
        let genuine = self.keys.is_genuine(&signed_bytes("pass", room, number, until, owner), signature);
        genuine.then_some(Pass { number, until: Timestamp(until) })
    }
}

/// The signed bytes: every part has a fixed length or is the last.
fn signed_bytes(kind: &str, room: Uuid, number: u64, until: i64, owner: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(MAX_BYTES);
    message.extend_from_slice(kind.as_bytes());
    message.push(0);
    message.extend_from_slice(room.as_bytes());
    message.extend_from_slice(&number.to_be_bytes());
    message.extend_from_slice(&until.to_be_bytes());
    message.extend_from_slice(owner.as_bytes());
    message
}

fn within_limit(text: &str) -> Option<&str> {
    (text.len() <= MAX_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Uuid = Uuid::from_u128(7);
    const PASS: Pass = Pass { number: 4_711, until: Timestamp(1_795_000_000_000) };

    fn signer(secrets: &[&str]) -> Signer {
        Signer::new(&secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_ticket_is_valid_only_with_its_number_and_room() {
        let signer = signer(&["one"]);
        let ticket = signer.ticket(ROOM, 4_711);
        assert_eq!(signer.read_ticket(ROOM, &ticket), Some(4_711));
        assert_eq!(signer.read_ticket(Uuid::from_u128(8), &ticket), None);
        let (_, signature) = ticket.split_once('-').expect("two parts");
        for text in [
            format!("1-{signature}"),
            format!("04711-{signature}"),
            format!("+4711-{signature}"),
            format!("4711-{}", &signature[..8]),
            format!("4711-{signature}00"),
            "4711-".to_owned(),
            "4711".to_owned(),
            String::new(),
            "9".repeat(500),
        ] {
            assert_eq!(signer.read_ticket(ROOM, &text), None, "{text}");
        }
    }

    #[test]
    fn a_pass_is_valid_only_for_its_visitor_and_is_no_ticket() {
        let signer = signer(&["one"]);
        let pass = signer.pass(ROOM, "ann", PASS);
        assert_eq!(signer.read_pass(ROOM, "ann", &pass), Some(PASS));
        assert_eq!(signer.read_pass(ROOM, "bob", &pass), None);
        assert_eq!(signer.read_pass(Uuid::from_u128(8), "ann", &pass), None);
        let later = pass.replace("1795000000000", "1795000000001");
        assert_eq!(signer.read_pass(ROOM, "ann", &later), None);
        assert_eq!(signer.read_ticket(ROOM, &pass), None);
        assert_eq!(signer.read_pass(ROOM, "", &signer.ticket(ROOM, 4_711)), None);
    }

    #[test]
    fn tickets_of_the_previous_secret_are_valid_during_rotation() {
        let ticket = signer(&["old"]).ticket(ROOM, 5);
        assert_eq!(signer(&["new", "old"]).read_ticket(ROOM, &ticket), Some(5));
        assert_eq!(signer(&["new"]).read_ticket(ROOM, &ticket), None);
    }
}

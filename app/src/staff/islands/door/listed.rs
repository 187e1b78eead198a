//! What a device knows without a network: the list it was given, and what it did since.

use std::collections::{HashMap, HashSet};

use domain::api::door::{DoorList, ListSeal};
use domain::door::{Code, digest};
use domain::time::Timestamp;
use uuid::Uuid;

/// What the list says of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Nobody used it yet.
    Open,
    /// Somebody was let in with it at another device, or before the list was made.
    Used {
        /// When, on the clocks there.
        at: String,
        /// Where.
        device: String,
    },
    /// Somebody was let in with it by this device since.
    UsedHere,
    /// It is none any more.
    NotValid,
    /// It is not on the list: sold since, or no ticket of this show.
    Missing,
}

/// The list of a show, by digest.
#[derive(Clone, Debug)]
pub struct List {
    show: Uuid,
    seal: ListSeal,
    made_at: String,
    open: HashSet<String>,
    used: HashMap<String, (String, String)>,
    not_valid: HashSet<String>,
    here: HashSet<String>,
}

impl List {
    /// The list as it was given, with the digests of what this device let in since.
    #[must_use]
    pub fn new(show: Uuid, list: DoorList, here: Vec<String>) -> Self {
        let DoorList { seal, made_at, open, used, not_valid } = list;
        Self {
            show,
            seal,
            made_at,
            open: open.into_iter().collect(),
            used: used.into_iter().map(|ticket| (ticket.digest, (ticket.at, ticket.device))).collect(),
            not_valid: not_valid.into_iter().collect(),
            here: here.into_iter().collect(),
        }
    }

    /// Its seal.
    #[must_use]
    pub const fn seal(&self) -> &ListSeal {
        &self.seal
    }

    /// When it was made, on the clocks there.
    #[must_use]
    pub fn made_at(&self) -> &str {
        &self.made_at
    }

    /// When it was made.
    #[must_use]
    pub const fn made(&self) -> Timestamp {
        Timestamp(self.seal.made_at_ms)
    }

    /// Whether anybody may be let in by it.
    #[must_use]
    pub const fn is_good(&self, now: Timestamp) -> bool {
        now.0 < self.seal.expires_at_ms
    }

    /// What it says of a ticket.
    #[must_use]
    pub fn look(&self, code: &Code) -> Listed {
        let digest = digest(self.show, code.as_str());
        if self.here.contains(&digest) {
            return Listed::UsedHere;
        }
        if let Some((at, device)) = self.used.get(&digest) {
            return Listed::Used { at: at.clone(), device: device.clone() };
        }
        if self.open.contains(&digest) {
            Listed::Open
        } else if self.not_valid.contains(&digest) {
            Listed::NotValid
        } else {
            Listed::Missing
        }
    }

    /// Somebody was let in with this ticket by this device.
    pub fn note(&mut self, code: &Code) {
        self.here.insert(digest(self.show, code.as_str()));
    }

    /// Digests of what this device let in since the list was made.
    #[must_use]
    pub fn here(&self) -> Vec<&str> {
        self.here.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::door::UsedTicket;

    const CODES: [&str; 4] = [
        "0000000000000000000000000A",
        "0000000000000000000000000B",
        "0000000000000000000000000C",
        "0000000000000000000000000D",
    ];

    fn code(number: usize) -> Code {
        Code::parse(CODES[number]).expect("a code")
    }

    fn list(here: Vec<String>) -> List {
        let show = Uuid::from_u128(1);
        let of = |number: usize| digest(show, CODES[number]);
        let seal = ListSeal {
            device: Uuid::nil(),
            made_at_ms: 0,
            expires_at_ms: 1_000,
            content: String::new(),
            signature: String::new(),
        };
        let used = UsedTicket { digest: of(1), at: "2026-11-21T20:15:07".to_owned(), device: "Left".to_owned() };
        let made_at = "2026-11-21T18:00:00".to_owned();
        List::new(show, DoorList { seal, made_at, open: vec![of(0)], used: vec![used], not_valid: vec![of(2)] }, here)
    }

    #[test]
    fn a_list_knows_each_ticket_and_what_was_done_here_since() {
        let mut list = list(vec![]);
        let left = Listed::Used { at: "2026-11-21T20:15:07".to_owned(), device: "Left".to_owned() };
        let said: Vec<Listed> = (0..4).map(|number| list.look(&code(number))).collect();
        assert_eq!(said, [Listed::Open, left, Listed::NotValid, Listed::Missing]);
        list.note(&code(0));
        assert_eq!(list.look(&code(0)), Listed::UsedHere);
        assert_eq!(list.here(), [digest(Uuid::from_u128(1), CODES[0])]);
    }

    #[test]
    fn what_was_done_here_survives_a_reload_and_a_list_ends() {
        let list = list(vec![digest(Uuid::from_u128(1), CODES[0])]);
        assert_eq!(list.look(&code(0)), Listed::UsedHere);
        assert!(list.is_good(Timestamp(999)) && !list.is_good(Timestamp(1_000)));
    }
}

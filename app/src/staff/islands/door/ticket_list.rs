//! The ticket list of a device for use without a network, with the device's admissions since.

use std::collections::{HashMap, HashSet};

use domain::api::door::{DoorList, ListSeal};
use domain::door::{Code, digest};
use domain::time::Timestamp;
use uuid::Uuid;

/// The status of a ticket by the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketStatus {
    Open,
    /// Used at another device, or before the list was made.
    Used {
        at: String,
        device: String,
    },
    /// Used at this device since the list was made.
    UsedHere,
    NotValid,
    /// Not on the list: sold since, or not a ticket of this show.
    Missing,
}

/// The ticket list of a show, by digest.
#[derive(Clone, Debug)]
pub struct TicketList {
    show: Uuid,
    seal: ListSeal,
    made_at: String,
    open: HashSet<String>,
    used: HashMap<String, (String, String)>,
    not_valid: HashSet<String>,
    here: HashSet<String>,
}

impl TicketList {
    /// The list from the server, with the digests of this device's admissions since.
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

    pub const fn seal(&self) -> &ListSeal {
        &self.seal
    }

    /// Local time at which it was made.
    pub fn made_at(&self) -> &str {
        &self.made_at
    }

    pub const fn made(&self) -> Timestamp {
        Timestamp(self.seal.made_at_ms)
    }

    pub const fn is_valid(&self, now: Timestamp) -> bool {
        now.0 < self.seal.expires_at_ms
    }

    pub fn status(&self, code: &Code) -> TicketStatus {
        let digest = digest(self.show, code.as_str());
        if self.here.contains(&digest) {
            return TicketStatus::UsedHere;
        }
        if let Some((at, device)) = self.used.get(&digest) {
            return TicketStatus::Used { at: at.clone(), device: device.clone() };
        }
        if self.open.contains(&digest) {
            TicketStatus::Open
        } else if self.not_valid.contains(&digest) {
            TicketStatus::NotValid
        } else {
            TicketStatus::Missing
        }
    }

    /// Records an admission at this device.
    pub fn record_admitted(&mut self, code: &Code) {
        self.here.insert(digest(self.show, code.as_str()));
    }

    /// Digests of this device's admissions since the list was made.
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

    fn list(here: Vec<String>) -> TicketList {
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
        TicketList::new(
            show,
            DoorList { seal, made_at, open: vec![of(0)], used: vec![used], not_valid: vec![of(2)] },
            here,
        )
    }

    #[test]
    fn a_list_has_the_status_of_each_ticket_and_admissions_since() {
        let mut list = list(vec![]);
        let left = TicketStatus::Used { at: "2026-11-21T20:15:07".to_owned(), device: "Left".to_owned() };
        let statuses: Vec<TicketStatus> = (0..4).map(|number| list.status(&code(number))).collect();
        assert_eq!(statuses, [TicketStatus::Open, left, TicketStatus::NotValid, TicketStatus::Missing]);
        list.record_admitted(&code(0));
        assert_eq!(list.status(&code(0)), TicketStatus::UsedHere);
        assert_eq!(list.here(), [digest(Uuid::from_u128(1), CODES[0])]);
    }

    #[test]
    fn admissions_survive_a_reload_and_a_list_expires() {
        let list = list(vec![digest(Uuid::from_u128(1), CODES[0])]);
        assert_eq!(list.status(&code(0)), TicketStatus::UsedHere);
        assert!(list.is_valid(Timestamp(999)) && !list.is_valid(Timestamp(1_000)));
    }
}

//! The data a door needs without a network, stored on the device over reloads: the device's name, the ticket list with the
//! admissions since, and the queue of admissions until the server has them.
//!
//! The device stores only digests and device names, except the codes of queued scans, which are used tickets.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use domain::api::door::{DoorDevice, DoorList, ListSeal, QueuedScan};
use domain::door::{Code, MAX_QUEUED_SCANS, MAX_SETTLED_SCANS, digest};
use domain::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::browser::storage;

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

/// A scan, with the theatre of its show and the seal of the list that allowed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct QueuedEntry {
    /// Empty in queues stored by earlier versions.
    #[serde(default)]
    theatre: String,
    seal: ListSeal,
    scan: QueuedScan,
    /// Refused finally by the server. After a reload it is sent once more.
    #[serde(skip)]
    is_aside: bool,
}

/// Scans in the order in which they were made, as many as fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScanQueue(VecDeque<QueuedEntry>);

impl ScanQueue {
    /// Adds a scan. `false` if the queue is full: then no one may be admitted.
    #[must_use]
    pub fn push(&mut self, theatre: &str, seal: &ListSeal, scan: QueuedScan) -> bool {
        if self.is_full() {
            return false;
        }
        self.0.push_back(QueuedEntry { theatre: theatre.to_owned(), seal: seal.clone(), scan, is_aside: false });
        true
    }

    /// The theatre of the show; `None` if it is unknown.
    pub fn theatre(&self) -> Option<&str> {
        self.0.front().map(|entry| &*entry.theatre).filter(|theatre| !theatre.is_empty())
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_QUEUED_SCANS
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a queued scan admitted this ticket.
    pub fn has(&self, code: &str) -> bool {
        self.0.iter().any(|entry| entry.scan.codes.iter().any(|other| other == code))
    }

    pub fn tickets(&self) -> usize {
        self.0.iter().map(|entry| entry.scan.codes.len()).sum()
    }

    /// The next batch: scans of one list, in order, as many as a call takes.
    pub fn batch(&self) -> Option<(ListSeal, Vec<QueuedScan>)> {
        let open = || self.0.iter().filter(|entry| !entry.is_aside);
        let seal = &open().next()?.seal;
        let of_list = open().take_while(|entry| entry.seal == *seal);
        Some((seal.clone(), of_list.take(MAX_SETTLED_SCANS).map(|entry| entry.scan.clone()).collect()))
    }

    /// Puts finally refused scans aside: they stay, and the scans behind them are sent.
    pub fn put_aside(&mut self, scans: &[Uuid]) {
        let refused = self.0.iter_mut().filter(|entry| scans.contains(&entry.scan.scan));
        refused.for_each(|entry| entry.is_aside = true);
    }

    /// Codes of the tickets of scans put aside.
    pub fn aside(&self) -> Vec<&str> {
        let aside = self.0.iter().filter(|entry| entry.is_aside);
        aside.flat_map(|entry| entry.scan.codes.iter().map(String::as_str)).collect()
    }

    pub fn remove_settled(&mut self, scans: &[Uuid]) {
        self.0.retain(|entry| !scans.contains(&entry.scan.scan));
    }
}

const DEVICE: &str = "rowlock-door-device";

/// Name of a stored value of a show. `frontend/static/sign-out.js` recognises queues by it.
fn of_show(what: &str, show: Uuid) -> String {
    format!("rowlock-door-{what}-{show}")
}

/// The show of a stored value of this kind.
fn show_of(what: &str, name: &str) -> Option<Uuid> {
    let show = name.strip_prefix("rowlock-door-")?.strip_prefix(what)?.strip_prefix('-')?;
    Uuid::parse_str(show).ok()
}

/// The show of a stored list, or of the admissions since.
fn listed_show(name: &str) -> Option<Uuid> {
    show_of("list", name).or_else(|| show_of("here", name))
}

fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_str(&storage::DEVICE.read(name)?).ok()
}

/// Stores a value. `false` without space: it then lasts as long as the page.
fn write(name: &str, what: &impl Serialize) -> bool {
    serde_json::to_string(what).is_ok_and(|text| storage::DEVICE.write(name, &text))
}

/// Stores a value of a show. Without space evicts the lists of other shows and tries once more.
fn write_or_evict(what: &str, show: Uuid, value: &impl Serialize) -> bool {
    let name = of_show(what, show);
    write(&name, value) || {
        listed_shows().into_iter().filter(|other| *other != show).for_each(remove_list);
        write(&name, value)
    }
}

pub fn device() -> Option<DoorDevice> {
    read(DEVICE)
}

pub fn save_device(device: &DoorDevice) {
    write(DEVICE, device);
}

/// The ticket list of a show, with admissions since.
pub fn list(show: Uuid) -> Option<TicketList> {
    let here: Vec<String> = read(&of_show("here", show)).unwrap_or_default();
    Some(TicketList::new(show, read::<DoorList>(&of_show("list", show))?, here))
}

/// Stores a list. Without space the previous one is removed too, because it would show later admissions as open.
pub fn save_list(show: Uuid, list: &DoorList) {
    if !write_or_evict("list", show, list) {
        remove_list(show);
    }
}

/// Stores admissions since the list. Without space the list is removed.
pub fn save_admitted(show: Uuid, here: &[&str]) {
    if !write_or_evict("here", show, &here) {
        remove_list(show);
    }
}

/// Removes the list and the admissions.
pub fn remove_list(show: Uuid) {
    storage::DEVICE.remove(&of_show("list", show));
    storage::DEVICE.remove(&of_show("here", show));
}

/// Removes the expired lists of all shows, with the admissions since. Queues stay.
pub fn remove_expired_lists(now: Timestamp) {
    let expired = listed_shows().into_iter().filter(|show| list(*show).is_none_or(|list| !list.is_valid(now)));
    expired.for_each(remove_list);
}

fn listed_shows() -> BTreeSet<Uuid> {
    storage::DEVICE.names().iter().filter_map(|name| listed_show(name)).collect()
}

pub fn queue(show: Uuid) -> ScanQueue {
    read(&of_show("queue", show)).unwrap_or_default()
}

/// The other shows with a queue on this device.
pub fn other_queued_shows(show: Uuid) -> Vec<Uuid> {
    let names = storage::DEVICE.names();
    names.iter().filter_map(|name| show_of("queue", name)).filter(|other| *other != show).collect()
}

/// Number of queued scans of other shows on this device.
pub fn count_queued_elsewhere(show: Uuid) -> usize {
    other_queued_shows(show).into_iter().map(|other| queue(other).len()).sum()
}

/// Stores the queue. `false` if it could not be stored.
pub fn save_queue(show: Uuid, queue: &ScanQueue) -> bool {
    if queue.is_empty() {
        storage::DEVICE.remove(&of_show("queue", show));
        return true;
    }
    write_or_evict("queue", show, queue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::door::UsedTicket;

    fn seal(made_at_ms: i64) -> ListSeal {
        ListSeal { device: Uuid::nil(), made_at_ms, expires_at_ms: 0, content: String::new(), signature: String::new() }
    }

    fn scan(number: usize) -> QueuedScan {
        QueuedScan { scan: Uuid::from_u128(number as u128), codes: vec![String::new(); 2], at_ms: 0 }
    }

    #[test]
    fn scans_are_batched_in_order_by_list_without_loss() {
        let mut queue = ScanQueue::default();
        for number in 0..MAX_SETTLED_SCANS + 3 {
            assert!(queue.push("aurora", &seal(i64::from(number > MAX_SETTLED_SCANS)), scan(number)));
        }
        assert!(queue.has("") && !queue.has("another"));
        assert_eq!(queue.tickets(), 2 * (MAX_SETTLED_SCANS + 3));
        let restored: ScanQueue = serde_json::from_str(&serde_json::to_string(&queue).expect("JSON")).expect("JSON");
        assert_eq!(restored, queue);
        let mut sizes = Vec::new();
        while let Some((_, batch)) = queue.batch() {
            sizes.push(batch.len());
            assert_eq!(queue.batch().map(|(_, again)| again), Some(batch.clone()), "until it is settled");
            queue.remove_settled(&batch.iter().map(|scan| scan.scan).collect::<Vec<_>>());
        }
        assert!(!queue.has(""));
        assert_eq!(sizes, [MAX_SETTLED_SCANS, 1, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn refused_scans_stay_and_do_not_block_others() {
        let mut queue = ScanQueue::default();
        for number in 0..3 {
            assert!(queue.push("aurora", &seal(i64::from(number > 0)), scan(number)));
        }
        queue.put_aside(&[Uuid::from_u128(0)]);
        let (of_list, scans) = queue.batch().expect("those behind");
        assert_eq!((of_list, scans.len()), (seal(1), 2));
        assert_eq!(queue.aside(), ["", ""]);
        queue.remove_settled(&[Uuid::from_u128(1), Uuid::from_u128(2)]);
        assert!(queue.batch().is_none() && !queue.is_empty() && queue.has(""));
        let kept: ScanQueue = serde_json::from_str(&serde_json::to_string(&queue).expect("JSON")).expect("JSON");
        assert!(kept.batch().is_some(), "sent once more after a reload");
    }

    #[test]
    fn a_full_queue_rejects_scans() {
        let mut queue = ScanQueue::default();
        for number in 0..MAX_QUEUED_SCANS {
            assert!(queue.push("aurora", &seal(0), scan(number)));
        }
        assert!(queue.is_full() && !queue.push("aurora", &seal(0), scan(0)));
        assert_eq!(queue.len(), MAX_QUEUED_SCANS);
    }

    const CODES: [&str; 4] = [
        "0000000000000000000000000A",
        "0000000000000000000000000B",
        "0000000000000000000000000C",
        "0000000000000000000000000D",
    ];

    fn code(number: usize) -> Code {
        Code::parse(CODES[number]).expect("a code")
    }

    fn list_with(here: Vec<String>) -> TicketList {
        let show = Uuid::from_u128(1);
        let of = |number: usize| digest(show, CODES[number]);
        let seal = ListSeal { expires_at_ms: 1_000, ..seal(0) };
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
        let mut list = list_with(vec![]);
        let left = TicketStatus::Used { at: "2026-11-21T20:15:07".to_owned(), device: "Left".to_owned() };
        let statuses: Vec<TicketStatus> = (0..4).map(|number| list.status(&code(number))).collect();
        assert_eq!(statuses, [TicketStatus::Open, left, TicketStatus::NotValid, TicketStatus::Missing]);
        list.record_admitted(&code(0));
        assert_eq!(list.status(&code(0)), TicketStatus::UsedHere);
        assert_eq!(list.here(), [digest(Uuid::from_u128(1), CODES[0])]);
    }

    #[test]
    fn admissions_survive_a_reload_and_a_list_expires() {
        let list = list_with(vec![digest(Uuid::from_u128(1), CODES[0])]);
        assert_eq!(list.status(&code(0)), TicketStatus::UsedHere);
        assert!(list.is_valid(Timestamp(999)) && !list.is_valid(Timestamp(1_000)));
    }

    #[test]
    fn stored_names_identify_the_show_of_a_list_or_queue() {
        let show = Uuid::from_u128(1);
        for (name, listed, queued) in [
            (of_show("list", show), Some(show), None),
            (of_show("here", show), Some(show), None),
            (of_show("queue", show), None, Some(show)),
            (DEVICE.to_owned(), None, None),
            ("rowlock-door-queue-1".to_owned(), None, None),
            ("rowlock-language".to_owned(), None, None),
        ] {
            assert_eq!((listed_show(&name), show_of("queue", &name)), (listed, queued), "{name}");
        }
    }

    #[test]
    fn a_queue_has_its_theatre_and_one_of_an_earlier_version_has_none() {
        let mut queue = ScanQueue::default();
        assert!(queue.push("aurora", &seal(0), scan(0)));
        assert_eq!(queue.theatre(), Some("aurora"));
        let stored = serde_json::to_string(&queue).expect("JSON");
        let earlier = stored.replace(r#""theatre":"aurora","#, "");
        assert_ne!(earlier, stored);
        let earlier: ScanQueue = serde_json::from_str(&earlier).expect("JSON");
        assert_eq!((earlier.len(), earlier.theatre()), (1, None));
        assert_eq!(ScanQueue::default().theatre(), None);
    }
}

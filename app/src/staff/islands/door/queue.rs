//! Who was let in without a network, until the server has heard of it. Bounded, and kept past a reload.

use std::collections::VecDeque;

use domain::api::door::{ListSeal, QueuedScan};
use domain::door::{MAX_QUEUED_SCANS, MAX_SETTLED_SCANS};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A scan, with the seal of the list it was made by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Waiting {
    seal: ListSeal,
    scan: QueuedScan,
    /// The server said no to it for good. After a reload it is told once more.
    #[serde(skip)]
    is_aside: bool,
}

/// The scans in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue(VecDeque<Waiting>);

impl Queue {
    /// Adds a scan; `false` when there is no room: then nobody may be let in.
    #[must_use]
    pub fn push(&mut self, seal: &ListSeal, scan: QueuedScan) -> bool {
        if self.is_full() {
            return false;
        }
        self.0.push_back(Waiting { seal: seal.clone(), scan, is_aside: false });
        true
    }

    /// Whether there is no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_QUEUED_SCANS
    }

    /// How many scans wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody was let in with this ticket, and the server has not heard of it.
    #[must_use]
    pub fn has(&self, code: &str) -> bool {
        self.0.iter().any(|waiting| waiting.scan.codes.iter().any(|other| other == code))
    }

    /// How many tickets they are.
    #[must_use]
    pub fn tickets(&self) -> usize {
        self.0.iter().map(|waiting| waiting.scan.codes.len()).sum()
    }

    /// What is settled next: scans that were made by one list, in their order, as many as a call takes.
    #[must_use]
    pub fn batch(&self) -> Option<(ListSeal, Vec<QueuedScan>)> {
        let open = || self.0.iter().filter(|waiting| !waiting.is_aside);
        let seal = &open().next()?.seal;
        let of_list = open().take_while(|waiting| waiting.seal == *seal);
        Some((seal.clone(), of_list.take(MAX_SETTLED_SCANS).map(|waiting| waiting.scan.clone()).collect()))
    }

    /// Puts scans aside to which the server said no for good: they stay, and those behind them go on.
    pub fn put_aside(&mut self, scans: &[Uuid]) {
        let refused = self.0.iter_mut().filter(|waiting| scans.contains(&waiting.scan.scan));
        refused.for_each(|waiting| waiting.is_aside = true);
    }

    /// Codes of the tickets of scans that were put aside.
    #[must_use]
    pub fn aside(&self) -> Vec<&str> {
        let aside = self.0.iter().filter(|waiting| waiting.is_aside);
        aside.flat_map(|waiting| waiting.scan.codes.iter().map(String::as_str)).collect()
    }

    /// Takes out scans that are settled.
    pub fn settled(&mut self, scans: &[Uuid]) {
        self.0.retain(|waiting| !scans.contains(&waiting.scan.scan));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(made_at_ms: i64) -> ListSeal {
        ListSeal { device: Uuid::nil(), made_at_ms, expires_at_ms: 0, content: String::new(), signature: String::new() }
    }

    fn scan(number: usize) -> QueuedScan {
        QueuedScan { scan: Uuid::from_u128(number as u128), codes: vec![String::new(); 2], at_ms: 0 }
    }

    #[test]
    fn scans_are_settled_in_order_a_list_at_a_time_and_none_is_lost() {
        let mut queue = Queue::default();
        for number in 0..MAX_SETTLED_SCANS + 3 {
            assert!(queue.push(&seal(i64::from(number > MAX_SETTLED_SCANS)), scan(number)));
        }
        assert!(queue.has("") && !queue.has("another"));
        assert_eq!(queue.tickets(), 2 * (MAX_SETTLED_SCANS + 3));
        let kept: Queue = serde_json::from_str(&serde_json::to_string(&queue).expect("JSON")).expect("JSON");
        assert_eq!(kept, queue);
        let mut sizes = Vec::new();
        while let Some((_, batch)) = queue.batch() {
            sizes.push(batch.len());
            assert_eq!(queue.batch().map(|(_, again)| again), Some(batch.clone()), "until it is settled");
            queue.settled(&batch.iter().map(|scan| scan.scan).collect::<Vec<_>>());
        }
        assert!(!queue.has(""));
        assert_eq!(sizes, [MAX_SETTLED_SCANS, 1, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn scans_that_are_refused_stay_and_hold_up_nobody() {
        let mut queue = Queue::default();
        for number in 0..3 {
            assert!(queue.push(&seal(i64::from(number > 0)), scan(number)));
        }
        queue.put_aside(&[Uuid::from_u128(0)]);
        let (of_list, scans) = queue.batch().expect("those behind");
        assert_eq!((of_list, scans.len()), (seal(1), 2));
        assert_eq!(queue.aside(), ["", ""]);
        queue.settled(&[Uuid::from_u128(1), Uuid::from_u128(2)]);
        assert!(queue.batch().is_none() && !queue.is_empty() && queue.has(""));
        let kept: Queue = serde_json::from_str(&serde_json::to_string(&queue).expect("JSON")).expect("JSON");
        assert!(kept.batch().is_some(), "told once more after a reload");
    }

    #[test]
    fn a_full_queue_takes_nobody() {
        let mut queue = Queue::default();
        for number in 0..MAX_QUEUED_SCANS {
            assert!(queue.push(&seal(0), scan(number)));
        }
        assert!(queue.is_full() && !queue.push(&seal(0), scan(0)));
        assert_eq!(queue.len(), MAX_QUEUED_SCANS);
    }
}

//! The queue of admissions made without a network, until the server has them. Bounded, and stored over reloads.

use std::collections::VecDeque;

use domain::api::door::{ListSeal, QueuedScan};
use domain::door::{MAX_QUEUED_SCANS, MAX_SETTLED_SCANS};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A scan, with the seal of the list that allowed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct QueuedEntry {
    seal: ListSeal,
    scan: QueuedScan,
    /// Refused finally by the server. After a reload it is sent once more.
    #[serde(skip)]
    is_aside: bool,
}

/// Scans in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScanQueue(VecDeque<QueuedEntry>);

impl ScanQueue {
    /// Adds a scan. `false` if the queue is full: then no one may be admitted.
    #[must_use]
    pub fn push(&mut self, seal: &ListSeal, scan: QueuedScan) -> bool {
        if self.is_full() {
            return false;
        }
        self.0.push_back(QueuedEntry { seal: seal.clone(), scan, is_aside: false });
        true
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
    fn scans_are_batched_in_order_by_list_without_loss() {
        let mut queue = ScanQueue::default();
        for number in 0..MAX_SETTLED_SCANS + 3 {
            assert!(queue.push(&seal(i64::from(number > MAX_SETTLED_SCANS)), scan(number)));
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
            assert!(queue.push(&seal(i64::from(number > 0)), scan(number)));
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
            assert!(queue.push(&seal(0), scan(number)));
        }
        assert!(queue.is_full() && !queue.push(&seal(0), scan(0)));
        assert_eq!(queue.len(), MAX_QUEUED_SCANS);
    }
}

//! Announcements between two ticks: those that continue the map, and those that leave a gap.
//!
//! Pure. Announcements after a gap are kept until a snapshot was read, because more arrive meanwhile: a
//! busy show that dropped them would never catch up.

use super::feed::{Changes, MapChange};
use super::map::MapVersion;

/// Announcements kept until the next tick or snapshot. Beyond this number a snapshot replaces them.
const MAX_WAITING: usize = 65_536;

#[derive(Default)]
pub(super) struct Inbox {
    /// Consecutive steps, the last one leading to `received`.
    next: Vec<(u64, Changes)>,
    received: MapVersion,
    /// Steps after a gap; they need a snapshot first.
    early: Vec<MapChange>,
    stale: bool,
}

impl Inbox {
    /// The last version received without a gap.
    pub(super) fn received(&self) -> MapVersion {
        self.received
    }

    /// True if the map has a gap that only a snapshot closes.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    pub(super) fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Takes one step; `fits` says if its seats exist in the room.
    pub(super) fn take(&mut self, step: MapChange, fits: impl Fn(&Changes) -> bool) {
        let is_ours = step.epoch == self.received.epoch;
        if is_ours && step.version <= self.received.version {
            return;
        }
        let is_next = is_ours && step.version == self.received.version + 1 && self.next.len() < MAX_WAITING;
        match step.changes {
            Some(changes) if is_next && fits(&changes) => {
                self.received.version = step.version;
                self.next.push((step.version, changes));
            }
            changes => {
                if self.early.len() == MAX_WAITING {
                    // The gap stays open; the next snapshot detects it again.
                    self.early.clear();
                }
                self.early.push(MapChange { changes, ..step });
                self.stale = true;
            }
        }
    }

    /// Takes the steps since the last call, in order.
    pub(super) fn next(&mut self) -> Vec<(u64, Changes)> {
        std::mem::take(&mut self.next)
    }

    /// Continues from a snapshot at `at`, with the kept steps after it.
    pub(super) fn start_at(&mut self, at: MapVersion, fits: impl Fn(&Changes) -> bool) {
        self.next.clear();
        self.received = at;
        self.take_early(fits);
    }

    /// Retries the kept steps after a snapshot without newer changes: they may fit by now.
    pub(super) fn take_early(&mut self, fits: impl Fn(&Changes) -> bool) {
        self.stale = false;
        for step in std::mem::take(&mut self.early) {
            // A step of an earlier epoch is part of the rebuilt map, or void.
            if step.epoch >= self.received.epoch {
                self.take(step, &fits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(epoch: u64, version: u64) -> MapChange {
        MapChange { epoch, version, changes: Some(Changes::default()) }
    }

    fn versions(inbox: &mut Inbox) -> Vec<u64> {
        inbox.next().into_iter().map(|(version, _)| version).collect()
    }

    fn inbox() -> Inbox {
        let mut inbox = Inbox::default();
        inbox.start_at(MapVersion { epoch: 1, version: 10 }, |_| true);
        inbox
    }

    #[test]
    fn consecutive_steps_are_taken_and_old_ones_are_ignored() {
        let mut inbox = inbox();
        for version in [11, 11, 9, 12] {
            inbox.take(step(1, version), |_| true);
        }
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![11, 12], false));
    }

    #[test]
    fn steps_after_a_gap_wait_for_a_snapshot_and_continue_from_it() {
        let mut inbox = inbox();
        for version in [12, 13, 14] {
            inbox.take(step(1, version), |_| true);
        }
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![], true));
        inbox.start_at(MapVersion { epoch: 1, version: 13 }, |_| true);
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![14], false));
    }

    #[test]
    fn a_snapshot_older_than_the_gap_leaves_it_open() {
        let mut inbox = inbox();
        inbox.take(step(1, 15), |_| true);
        inbox.start_at(MapVersion { epoch: 1, version: 12 }, |_| true);
        assert!(inbox.is_stale(), "13 and 14 are still missing");
        inbox.start_at(MapVersion { epoch: 1, version: 14 }, |_| true);
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![15], false));
    }

    #[test]
    fn steps_of_an_epoch_before_a_rebuild_are_dropped() {
        let mut inbox = inbox();
        inbox.take(step(1, 95), |_| true);
        inbox.start_at(MapVersion { epoch: 2, version: 1 }, |_| true);
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![], false));
    }

    #[test]
    fn a_rebuild_another_epoch_and_an_unknown_seat_need_a_snapshot() {
        for odd in [MapChange { epoch: 2, version: 1, changes: None }, step(2, 1), step(0, 11)] {
            let mut inbox = inbox();
            inbox.take(odd, |_| true);
            assert!(inbox.is_stale());
        }
        let mut inbox = inbox();
        inbox.take(step(1, 11), |_| false);
        assert!(inbox.is_stale());
    }
}

//! Announcements between two ticks: those that continue the map, and those that came too early.
//!
//! Pure. What does not fit is kept until a snapshot was read, because announcements go on meanwhile: a
//! busy show that threw them away would never catch up with itself.

use super::announcement::{Changes, Step};
use super::map::At;

/// Announcements kept until the next tick, or until a snapshot was read. Beyond, a snapshot tells them.
const MAX_WAITING: usize = 65_536;

#[derive(Default)]
pub(super) struct Inbox {
    /// Steps that follow each other, the last one leading to `heard`.
    next: Vec<(u64, Changes)>,
    heard: At,
    /// Steps that need a snapshot first.
    early: Vec<Step>,
    stale: bool,
}

impl Inbox {
    /// The version heard of so far.
    pub(super) fn heard(&self) -> At {
        self.heard
    }

    /// Whether only a snapshot helps.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Notes that announcements may have been missed.
    pub(super) fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Takes one step; `fits` says whether its seats are the room's.
    pub(super) fn take(&mut self, step: Step, fits: impl Fn(&Changes) -> bool) {
        let is_ours = step.epoch == self.heard.epoch;
        if is_ours && step.version <= self.heard.version {
            return;
        }
        let is_next = is_ours && step.version == self.heard.version + 1 && self.next.len() < MAX_WAITING;
        match step.changes {
            Some(changes) if is_next && fits(&changes) => {
                self.heard.version = step.version;
                self.next.push((step.version, changes));
            }
            changes => {
                if self.early.len() == MAX_WAITING {
                    // The gap stays open, and is found again by the snapshot that closes a part of it.
                    self.early.clear();
                }
                self.early.push(Step { changes, ..step });
                self.stale = true;
            }
        }
    }

    /// The steps since the last call, in order.
    pub(super) fn next(&mut self) -> Vec<(u64, Changes)> {
        std::mem::take(&mut self.next)
    }

    /// A snapshot was read and led to `at`. What is later continues from there.
    pub(super) fn start_at(&mut self, at: At, fits: impl Fn(&Changes) -> bool) {
        self.next.clear();
        self.heard = at;
        self.take_early(fits);
    }

    /// A snapshot was read and told nothing new. What came too early may fit by now.
    pub(super) fn take_early(&mut self, fits: impl Fn(&Changes) -> bool) {
        self.stale = false;
        for step in std::mem::take(&mut self.early) {
            // What was said before the map was built anew is in it, or is void.
            if step.epoch >= self.heard.epoch {
                self.take(step, &fits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(epoch: u64, version: u64) -> Step {
        Step { epoch, version, changes: Some(Changes::default()) }
    }

    fn versions(inbox: &mut Inbox) -> Vec<u64> {
        inbox.next().into_iter().map(|(version, _)| version).collect()
    }

    fn inbox() -> Inbox {
        let mut inbox = Inbox::default();
        inbox.start_at(At { epoch: 1, version: 10 }, |_| true);
        inbox
    }

    #[test]
    fn steps_in_order_go_on_and_old_ones_are_ignored() {
        let mut inbox = inbox();
        for version in [11, 11, 9, 12] {
            inbox.take(step(1, version), |_| true);
        }
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![11, 12], false));
    }

    #[test]
    fn what_comes_too_early_waits_for_a_snapshot_and_goes_on_from_there() {
        let mut inbox = inbox();
        for version in [12, 13, 14] {
            inbox.take(step(1, version), |_| true);
        }
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![], true));
        inbox.start_at(At { epoch: 1, version: 13 }, |_| true);
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![14], false));
    }

    #[test]
    fn a_snapshot_older_than_the_gap_leaves_it_open() {
        let mut inbox = inbox();
        inbox.take(step(1, 15), |_| true);
        inbox.start_at(At { epoch: 1, version: 12 }, |_| true);
        assert!(inbox.is_stale(), "13 and 14 are still missing");
        inbox.start_at(At { epoch: 1, version: 14 }, |_| true);
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![15], false));
    }

    #[test]
    fn what_was_said_before_a_rebuild_is_forgotten_with_it() {
        let mut inbox = inbox();
        inbox.take(step(1, 95), |_| true);
        inbox.start_at(At { epoch: 2, version: 1 }, |_| true);
        assert_eq!((versions(&mut inbox), inbox.is_stale()), (vec![], false));
    }

    #[test]
    fn a_rebuilt_map_another_epoch_and_a_seat_outside_need_a_snapshot() {
        for odd in [Step { epoch: 2, version: 1, changes: None }, step(2, 1), step(0, 11)] {
            let mut inbox = inbox();
            inbox.take(odd, |_| true);
            assert!(inbox.is_stale());
        }
        let mut inbox = inbox();
        inbox.take(step(1, 11), |_| false);
        assert!(inbox.is_stale());
    }
}

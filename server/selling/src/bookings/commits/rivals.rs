//! Detects contention: other writers that move the bookings of our batches, or write the same rows. Without
//! contention, a batch takes its bookings from this replica's cache and assumes that its keys are new. Every move
//! carries the version it was planned for, and every new row has a unique key; on a conflict the batch is planned
//! again, after a read or with locks. Two replicas that process the same payments (one its answer, the other its
//! webhook), or a client that repeats requests, would cause a conflict in every batch. After one conflict, batches
//! therefore read or lock first for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::load::Locks;

/// Period in which bookings are locked before they are read, after a version conflict, or in which all is read, after a
/// duplicate: wasted batches are then a hundredth of the work at most.
const WARY_FOR: Duration = Duration::from_secs(2);

/// The times of the last conflicts.
#[derive(Default)]
pub(super) struct Rivals(Mutex<Met>);

#[derive(Default)]
struct Met {
    moving: Option<Instant>,
    writing: Option<Instant>,
}

impl Rivals {
    /// Returns the lock mode for a batch that starts now.
    pub(super) fn locks(&self, now: Instant) -> Locks {
        let lately = |met: Option<Instant>| met.is_some_and(|met| now.saturating_duration_since(met) < WARY_FOR);
        let met = self.lock();
        match (lately(met.moving), lately(met.writing)) {
            (true, _) => Locks::Await,
            (false, true) => Locks::Without,
            (false, false) => Locks::Unread,
        }
    }

    /// Records a version conflict: a booking moved between its read and its write.
    pub(super) fn moved_on(&self, now: Instant) {
        self.lock().moving = Some(now);
    }

    /// Records a duplicate: a row that was assumed new existed.
    pub(super) fn wrote_before(&self, now: Instant) {
        self.lock().writing = Some(now);
    }

    // Held for one access, never across an await.
    fn lock(&self) -> MutexGuard<'_, Met> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookings_are_locked_for_a_while_after_one_had_moved_on_and_read_after_something_was_not_new() {
        let rivals = Rivals::default();
        let now = Instant::now();
        assert_eq!(rivals.locks(now), Locks::Unread);
        rivals.wrote_before(now);
        assert_eq!(rivals.locks(now + WARY_FOR / 2), Locks::Without);
        rivals.moved_on(now);
        assert_eq!(rivals.locks(now + WARY_FOR / 2), Locks::Await);
        assert_eq!(rivals.locks(now + WARY_FOR), Locks::Unread);
    }
}

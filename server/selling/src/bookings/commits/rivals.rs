//! Whether somebody else moves the bookings of our batches, or writes what they write. Where nobody does, a batch takes
//! its bookings as this replica wrote them last, and its keys to be new: every move repeats the version it was planned
//! for, every new row is the only one of its name, and where that is not so the batch is planned again: read first, or
//! locked. Where two replicas hear of the same payments (one its answer, the other its webhook), or somebody sends the
//! same again and again, that would be every batch; so after one such meeting all is read, or locked, first for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::load::Locks;

/// How long bookings are locked before they are read, once one had moved on, or all is read, once something was not new:
/// a batch in vain each time is then a hundredth of the work at most.
const WARY_FOR: Duration = Duration::from_secs(2);

/// When rivals were met last.
#[derive(Default)]
pub(super) struct Rivals(Mutex<Met>);

#[derive(Default)]
struct Met {
    moving: Option<Instant>,
    writing: Option<Instant>,
}

impl Rivals {
    /// How a batch of now is to read its bookings.
    pub(super) fn locks(&self, now: Instant) -> Locks {
        let lately = |met: Option<Instant>| met.is_some_and(|met| now.saturating_duration_since(met) < WARY_FOR);
        let met = self.lock();
        match (lately(met.moving), lately(met.writing)) {
            (true, _) => Locks::Await,
            (false, true) => Locks::Without,
            (false, false) => Locks::Unread,
        }
    }

    /// A booking had moved on between its reading and its writing.
    pub(super) fn moved_on(&self, now: Instant) {
        self.lock().moving = Some(now);
    }

    /// What was taken to be new was not.
    pub(super) fn wrote_before(&self, now: Instant) {
        self.lock().writing = Some(now);
    }

    // Held for a look only, never across an await.
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

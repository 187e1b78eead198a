//! Whether somebody else moves the bookings of our batches. Where nobody does, a batch reads them as they stand, without
//! locks: every move repeats the version it was planned for, and one that has moved on has the batch planned again, with
//! locks. Where two replicas hear of the same payments (one its answer, the other its webhook), that would be every
//! batch; so after one such meeting bookings are locked first for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::load::Locks;

/// How long bookings are locked before they are read, once one had moved on: a batch in vain each time is then a
/// hundredth of the work at most.
const WARY_FOR: Duration = Duration::from_secs(2);

/// When a rival was met last.
#[derive(Default)]
pub(super) struct Rivals(Mutex<Option<Instant>>);

impl Rivals {
    /// How a batch of now is to read its bookings.
    pub(super) fn locks(&self, now: Instant) -> Locks {
        let is_wary = self.lock().is_some_and(|met| now.saturating_duration_since(met) < WARY_FOR);
        if is_wary { Locks::Await } else { Locks::Without }
    }

    /// A booking had moved on between its reading and its writing.
    pub(super) fn met(&self, now: Instant) {
        *self.lock() = Some(now);
    }

    // Held for a look only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookings_are_locked_for_a_while_after_one_had_moved_on() {
        let rivals = Rivals::default();
        let now = Instant::now();
        assert_eq!(rivals.locks(now), Locks::Without);
        rivals.met(now);
        assert_eq!(rivals.locks(now + WARY_FOR / 2), Locks::Await);
        assert_eq!(rivals.locks(now + WARY_FOR), Locks::Without);
    }
}

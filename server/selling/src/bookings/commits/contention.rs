//! Detects contention: other writers that move the bookings of our batches, or write the same rows. Without
//! contention, a batch takes its bookings from this replica's cache and assumes that its keys are new. Every move
//! carries the version it was planned for, and every new row has a unique key; on a conflict the batch is planned
//! again, after a read or with locks. Two replicas that process the same payments (one its answer, the other its
//! webhook), or a client that repeats requests, would cause a conflict in every batch. After one conflict, batches
//! therefore read or lock first for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::load::LockMode;

/// Period in which bookings are locked before they are read, after a version conflict, or in which all is read, after a
/// duplicate: wasted batches are then a hundredth of the work at most.
const CAUTION_PERIOD: Duration = Duration::from_secs(2);

/// The times of the last conflicts.
#[derive(Default)]
pub(super) struct Contention(Mutex<LastConflicts>);

#[derive(Default)]
struct LastConflicts {
    moving: Option<Instant>,
    writing: Option<Instant>,
}

impl Contention {
    /// Returns the lock mode for a batch that starts now.
    pub(super) fn lock_mode(&self, now: Instant) -> LockMode {
        let lately = |met: Option<Instant>| met.is_some_and(|met| now.saturating_duration_since(met) < CAUTION_PERIOD);
        let met = self.lock();
        match (lately(met.moving), lately(met.writing)) {
            (true, _) => LockMode::ForUpdate,
            (false, true) => LockMode::Unlocked,
            (false, false) => LockMode::Cached,
        }
    }

    /// Records a version conflict: a booking moved between its read and its write.
    pub(super) fn record_version_conflict(&self, now: Instant) {
        self.lock().moving = Some(now);
    }

    /// Records a duplicate: a row that was assumed new existed.
    pub(super) fn record_duplicate(&self, now: Instant) {
        self.lock().writing = Some(now);
    }

    // Held for one access, never across an await.
    fn lock(&self) -> MutexGuard<'_, LastConflicts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_conflict_enables_locks_and_a_duplicate_enables_reads_for_a_while() {
        let contention = Contention::default();
        let now = Instant::now();
        assert_eq!(contention.lock_mode(now), LockMode::Cached);
        contention.record_duplicate(now);
        assert_eq!(contention.lock_mode(now + CAUTION_PERIOD / 2), LockMode::Unlocked);
        contention.record_version_conflict(now);
        assert_eq!(contention.lock_mode(now + CAUTION_PERIOD / 2), LockMode::ForUpdate);
        assert_eq!(contention.lock_mode(now + CAUTION_PERIOD), LockMode::Cached);
    }
}

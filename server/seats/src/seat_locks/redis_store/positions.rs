//! The latest version that this replica has seen of each show. A store that fell back behind it is detected: after a
//! failover that lost the last writes, or a restart from an old file.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// Shows remembered at most. Beyond, all are forgotten. A loss at that moment is detected by another replica, or not at
/// all; then the claims in Postgres still prevent selling a seat twice.
const MAX_SHOWS: usize = 10_000;

/// Latest epoch and version seen of each show.
#[derive(Default)]
pub(super) struct Positions(Mutex<HashMap<Uuid, (u64, u64)>>);

impl Positions {
    /// The latest version seen; (0, 0) for a show not seen yet.
    pub(super) fn of(&self, show: Uuid) -> (u64, u64) {
        self.lock().get(&show).copied().unwrap_or_default()
    }

    /// Records epoch and version of an answer. Answers may arrive out of order; an older one changes nothing.
    pub(super) fn note(&self, show: Uuid, epoch: u64, version: u64) {
        let mut seen = self.lock();
        if seen.len() >= MAX_SHOWS && !seen.contains_key(&show) {
            seen.clear();
        }
        let last = seen.entry(show).or_default();
        *last = (*last).max((epoch, version));
    }

    pub(super) fn forget(&self, show: Uuid) {
        self.lock().remove(&show);
    }

    // Held for a map operation only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, (u64, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_version_changes_nothing_and_a_new_epoch_is_later_than_any_version() {
        let (positions, show) = (Positions::default(), Uuid::from_u128(1));
        for seen in [(5, 9), (5, 7), (6, 1), (5, 20)] {
            positions.note(show, seen.0, seen.1);
        }
        assert_eq!(positions.of(show), (6, 1));
        positions.forget(show);
        assert_eq!(positions.of(show), (0, 0));
    }
}

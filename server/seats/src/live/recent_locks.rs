//! Seats of a show that were locked in the last seconds, so that a refused visitor sees by how much they were late.
//!
//! Informational only: bounded, local to this replica, and no decision depends on it.

use std::collections::VecDeque;

use domain::seats::SeatIndex;
use domain::time::Timestamp;

/// Seats kept at most; the oldest are dropped first.
const MAX_SEATS: usize = 256;
/// Age from which on a lock is not recent any more, milliseconds.
const RECENT_MS: i64 = 10_000;

/// Locked seats in the order of their locks.
#[derive(Default)]
pub(super) struct RecentLocks(VecDeque<(SeatIndex, Timestamp)>);

impl RecentLocks {
    pub(super) fn note(&mut self, seats: impl Iterator<Item = SeatIndex>, now: Timestamp) {
        self.0.extend(seats.map(|seat| (seat, now)));
        let surplus = self.0.len().saturating_sub(MAX_SEATS);
        self.0.drain(..surplus);
    }

    /// The time from a seat's last lock to `now`, milliseconds; zero if the announcement overtook the request.
    pub(super) fn time_since(&self, seat: SeatIndex, now: Timestamp) -> Option<u32> {
        let (_, at) = self.0.iter().rev().find(|(known, _)| *known == seat)?;
        let ago = now.since(*at).max(0);
        (ago <= RECENT_MS).then(|| u32::try_from(ago).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lock_of_a_seat_counts_and_expires() {
        let mut recent_locks = RecentLocks::default();
        recent_locks.note([3, 4].into_iter(), Timestamp(1_000));
        recent_locks.note([3].into_iter(), Timestamp(1_500));
        assert_eq!(recent_locks.time_since(3, Timestamp(1_900)), Some(400));
        assert_eq!(recent_locks.time_since(4, Timestamp(1_900)), Some(900));
        assert_eq!(recent_locks.time_since(5, Timestamp(1_900)), None);
        assert_eq!(recent_locks.time_since(4, Timestamp(900)), Some(0), "the announcement overtook the request");
        assert_eq!(recent_locks.time_since(4, Timestamp(1_001 + RECENT_MS)), None);
    }

    #[test]
    fn many_locks_do_not_exceed_the_limit() {
        let mut recent_locks = RecentLocks::default();
        recent_locks.note(0..10_000, Timestamp(1));
        assert_eq!(recent_locks.0.len(), MAX_SEATS);
        assert_eq!(recent_locks.time_since(9_999, Timestamp(2)), Some(1));
    }
}

//! Which seats of a show were taken in the last seconds, so that whoever was slower can be told by how much.
//!
//! A courtesy, not a record: it is short, this replica's own, and nothing is decided by it.

use std::collections::VecDeque;

use domain::seats::SeatIndex;
use domain::time::Timestamp;

/// Seats remembered at most: in a rush, those of the last moment.
const MOST_SEATS: usize = 256;
/// After this long nobody was faster "just now", milliseconds.
const JUST_NOW_MS: i64 = 10_000;

/// The seats, in the order they were taken.
#[derive(Default)]
pub(super) struct Lately(VecDeque<(SeatIndex, Timestamp)>);

impl Lately {
    /// Somebody has taken these seats.
    pub(super) fn note(&mut self, seats: impl Iterator<Item = SeatIndex>, now: Timestamp) {
        self.0.extend(seats.map(|seat| (seat, now)));
        let surplus = self.0.len().saturating_sub(MOST_SEATS);
        self.0.drain(..surplus);
    }

    /// How long before `now` a seat was taken for the last time, milliseconds; zero when we hear of both at once.
    pub(super) fn ago(&self, seat: SeatIndex, now: Timestamp) -> Option<u32> {
        let (_, at) = self.0.iter().rev().find(|(known, _)| *known == seat)?;
        let ago = now.since(*at).max(0);
        (ago <= JUST_NOW_MS).then(|| u32::try_from(ago).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_counts_and_only_for_a_while() {
        let mut lately = Lately::default();
        lately.note([3, 4].into_iter(), Timestamp(1_000));
        lately.note([3].into_iter(), Timestamp(1_500));
        assert_eq!(lately.ago(3, Timestamp(1_900)), Some(400));
        assert_eq!(lately.ago(4, Timestamp(1_900)), Some(900));
        assert_eq!(lately.ago(5, Timestamp(1_900)), None);
        assert_eq!(lately.ago(4, Timestamp(900)), Some(0), "their news overtook our request");
        assert_eq!(lately.ago(4, Timestamp(1_001 + JUST_NOW_MS)), None);
    }

    #[test]
    fn a_rush_does_not_make_it_grow() {
        let mut lately = Lately::default();
        lately.note(0..10_000, Timestamp(1));
        assert_eq!(lately.0.len(), MOST_SEATS);
        assert_eq!(lately.ago(9_999, Timestamp(2)), Some(1));
    }
}

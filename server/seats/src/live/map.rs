//! The map of one show as a hub keeps it: seats, areas, free seats by section, and a short history.
//!
//! Pure: no clock, no sockets. The history is bounded: a reader with an older version gets a snapshot, which
//! is shorter than the delta by then.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use domain::seats::{AreaIndex, SeatIndex, SeatState};
use domain::wire::SeatChange;

use super::feed::Changes;
use crate::seat_locks::MapSnapshot;

/// Minimum number of changes a history keeps.
const SHORTEST_HISTORY: usize = 256;
/// Maximum number of changes a history keeps. Between the limits it keeps a quarter of the seats: a delta of more
/// changes is longer than the whole map at two bits a seat.
const LONGEST_HISTORY: usize = 16_384;

/// Bytes reserved for the fields of a snapshot besides the seats.
const SNAPSHOT_HEADER_BYTES: usize = 64;

/// A version of a map; versions of different epochs do not compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MapVersion {
    pub(super) epoch: u64,
    pub(super) version: u64,
}

/// The seats of each section, one after the other.
pub(super) type Sections = Arc<[Range<SeatIndex>]>;

pub(super) struct LiveMap {
    at: MapVersion,
    seats: Vec<SeatState>,
    areas: BTreeMap<AreaIndex, u32>,
    sections: Sections,
    /// Free seats of each section.
    free: Vec<u32>,
    /// Version and seat of every change since `oldest`, in order.
    history: VecDeque<(u64, SeatIndex)>,
    /// Deltas can start here or later.
    oldest: u64,
}

impl LiveMap {
    pub(super) fn of(snapshot: &MapSnapshot, sections: Sections) -> Self {
        // A seat with an invalid byte is not for sale.
        let seats: Vec<_> =
            snapshot.map.iter().map(|byte| SeatState::from_byte(*byte).unwrap_or(SeatState::Blocked)).collect();
        let count = |range: &Range<SeatIndex>| {
            let seats = seats.get(range.start as usize..range.end as usize).unwrap_or_default();
            seats.iter().filter(|state| **state == SeatState::Available).count() as u32
        };
        Self {
            at: MapVersion { epoch: snapshot.epoch, version: snapshot.version },
            free: sections.iter().map(count).collect(),
            areas: snapshot.areas.iter().copied().collect(),
            history: VecDeque::new(),
            oldest: snapshot.version,
            sections,
            seats,
        }
    }

    pub(super) fn at(&self) -> MapVersion {
        self.at
    }

    pub(super) fn seats(&self) -> &[SeatState] {
        &self.seats
    }

    /// Upper bound of a snapshot's length, bytes: two bits a seat, and its header.
    pub(super) fn longest_snapshot(&self) -> usize {
        self.seats.len() / 4 + SNAPSHOT_HEADER_BYTES
    }

    /// Number of each area and its places left, sorted by number.
    pub(super) fn areas(&self) -> Vec<(AreaIndex, u32)> {
        self.areas.iter().map(|(area, left)| (*area, *left)).collect()
    }

    pub(super) fn free(&self) -> &[u32] {
        &self.free
    }

    /// True if all of these seats exist in the room.
    pub(super) fn has(&self, changes: &Changes) -> bool {
        changes.seats.iter().all(|(seat, _)| (*seat as usize) < self.seats.len())
    }

    /// Applies changes that lead to `version`. Every seat exists in the room.
    pub(super) fn apply(&mut self, version: u64, changes: &Changes) {
        for (seat, state) in &changes.seats {
            self.set(version, *seat, *state);
        }
        self.areas.extend(changes.areas.iter().copied());
        self.at.version = version;
        self.trim_history();
    }

    /// Updates to a later snapshot of the same epoch and room: only seats that differ become changes.
    pub(super) fn move_to(&mut self, later: &Self) {
        for (seat, state) in (0..).zip(&later.seats) {
            if self.seats[seat as usize] != *state {
                self.set(later.at.version, seat, *state);
            }
        }
        self.areas.clone_from(&later.areas);
        self.at.version = later.at.version;
        self.trim_history();
    }

    fn set(&mut self, version: u64, seat: SeatIndex, state: SeatState) {
        let before = std::mem::replace(&mut self.seats[seat as usize], state);
        let section = self.sections.partition_point(|range| range.end <= seat);
        if let Some(free) = self.free.get_mut(section) {
            // Adding first keeps it from underflow: a seat that was free is counted. The exception is a show that has
            // just moved to another room; its hub is about to close.
            *free += u32::from(state == SeatState::Available);
            *free = free.saturating_sub(u32::from(before == SeatState::Available));
        }
        self.history.push_back((version, seat));
    }

    fn trim_history(&mut self) {
        let longest = (self.seats.len() / 4).clamp(SHORTEST_HISTORY, LONGEST_HISTORY);
        let surplus = self.history.len().saturating_sub(longest);
        if let Some((version, _)) = self.history.drain(..surplus).next_back() {
            self.oldest = version;
        }
    }

    /// True if the history covers all changes since `from`.
    pub(super) fn reaches_back_to(&self, from: MapVersion) -> bool {
        from.epoch == self.at.epoch && (self.oldest..=self.at.version).contains(&from.version)
    }

    /// The changes since version `from`, sorted by seat; in these ranges only, if given.
    pub(super) fn changes_since(&self, from: u64, within: Option<&[Range<SeatIndex>]>) -> Vec<SeatChange> {
        let first = self.history.partition_point(|(version, _)| *version <= from);
        let mut seats: Vec<SeatIndex> = self.history.range(first..).map(|(_, seat)| *seat).collect();
        if let Some(ranges) = within {
            seats.retain(|seat| ranges.iter().any(|range| range.contains(seat)));
        }
        seats.sort_unstable();
        seats.dedup();
        seats.into_iter().map(|seat| self.change(seat)).collect()
    }

    /// The present state of every seat of these ranges, sorted by seat.
    pub(super) fn states_of(&self, ranges: &[Range<SeatIndex>]) -> Vec<SeatChange> {
        let all = 0..self.seats.len() as SeatIndex;
        ranges.iter().flat_map(Clone::clone).filter(|seat| all.contains(seat)).map(|seat| self.change(seat)).collect()
    }

    fn change(&self, seat: SeatIndex) -> SeatChange {
        SeatChange { seat, state: self.seats[seat as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    const ROOM: u32 = 40;

    fn map() -> LiveMap {
        let map = Bytes::from(vec![0_u8; ROOM as usize]);
        let snapshot = MapSnapshot { epoch: 1, version: 10, map, areas: vec![(0, 8)] };
        LiveMap::of(&snapshot, [0..10, 10..30, 30..40].into())
    }

    fn seats(seats: &[(SeatIndex, SeatState)]) -> Changes {
        Changes { seats: seats.to_vec(), areas: vec![] }
    }

    fn step() -> impl Strategy<Value = Vec<(SeatIndex, SeatState)>> {
        let state = (0..4_u8).prop_map(|byte| SeatState::from_byte(byte).expect("below four"));
        proptest::collection::vec((0..ROOM, state), 1..4)
    }

    proptest! {
        #[test]
        fn a_delta_from_any_version_leads_to_the_map_and_the_free_seats_are_counted(
            steps in proptest::collection::vec(step(), 1..60), from in 0..60_usize
        ) {
            let mut map = map();
            let mut reader = map.seats().to_vec();
            let from = from.min(steps.len());
            for (number, step) in steps.iter().enumerate() {
                if number == from {
                    reader = map.seats().to_vec();
                }
                map.apply(11 + number as u64, &seats(step));
            }
            if from == steps.len() {
                reader = map.seats().to_vec();
            }
            let changes = map.changes_since(10 + from as u64, None);
            prop_assert!(changes.is_sorted_by(|a, b| a.seat < b.seat));
            for change in changes {
                reader[change.seat as usize] = change.state;
            }
            prop_assert_eq!(&reader[..], map.seats());
            let free = |range: Range<usize>| reader[range].iter().filter(|s| **s == SeatState::Available).count() as u32;
            prop_assert_eq!(map.free(), &[free(0..10), free(10..30), free(30..40)][..]);
        }
    }

    #[test]
    fn a_delta_of_some_sections_leaves_the_others_out() {
        let mut map = map();
        map.apply(11, &seats(&[(3, SeatState::Locked), (12, SeatState::Booked), (35, SeatState::Locked)]));
        let some = map.changes_since(10, Some(&[0..10, 30..40]));
        assert_eq!(some.iter().map(|change| change.seat).collect::<Vec<_>>(), [3, 35]);
    }

    #[test]
    fn the_history_is_bounded_and_reports_the_oldest_version_it_covers() {
        let mut map = map();
        let last = 10 + 2 * SHORTEST_HISTORY as u64;
        for version in 11..=last {
            map.apply(version, &seats(&[(version as u32 % ROOM, SeatState::Locked)]));
        }
        assert_eq!(map.history.len(), SHORTEST_HISTORY);
        let reaches = |version| map.reaches_back_to(MapVersion { epoch: 1, version });
        assert!(reaches(last - SHORTEST_HISTORY as u64) && !reaches(last - SHORTEST_HISTORY as u64 - 1));
        assert!(reaches(last) && !reaches(last + 1));
        assert!(!map.reaches_back_to(MapVersion { epoch: 2, version: last }));
    }

    #[test]
    fn areas_return_the_latest_places_left() {
        let mut map = map();
        map.apply(11, &Changes { seats: vec![], areas: vec![(3, 57)] });
        map.apply(12, &Changes { seats: vec![], areas: vec![(3, 56)] });
        assert_eq!(map.areas(), [(0, 8), (3, 56)]);
    }
}

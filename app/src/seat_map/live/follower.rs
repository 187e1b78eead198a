//! Follows the versions of the live map: decides which frame fits and when a new snapshot is needed.
//!
//! Pure: frames in, updates out. The connection is elsewhere.

use domain::seats::{AreaIndex, SeatState};
use domain::time::Timestamp;
use domain::wire::{Frame, OwnHold, SeatChange};

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapUpdate {
    /// A snapshot of the whole map.
    Snapshot {
        /// Every seat.
        map: Vec<SeatState>,
        /// The lock store's clock.
        now: Timestamp,
    },
    /// Changes of some seats.
    Changes(Vec<SeatChange>),
    /// The visitor's own hold.
    OwnHold {
        /// The hold, if there is one.
        mine: Option<OwnHold>,
        /// The lock store's clock.
        now: Timestamp,
    },
    /// Places left in every area.
    Areas(Vec<(AreaIndex, u32)>),
    /// Free seats of every section, to readers of some sections only.
    FreeSeats(Vec<u32>),
    /// The state of the waiting room, of no use to a visitor who sees the map.
    Queue,
    /// The server is about to stop. Reconnect after a pause.
    Drain {
        /// Milliseconds, before jitter.
        retry_ms: u64,
    },
    /// The frame is invalid or does not follow our version. Reconnect and request a snapshot.
    Desynced,
}

/// Our position in the history of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follower {
    at: Option<(u64, u64)>,
}

impl Follower {
    /// The epoch and version reached, to resume from. `None` requests a snapshot.
    #[must_use]
    pub fn resume_from(&self) -> Option<(u64, u64)> {
        self.at
    }

    /// Forgets the position: the next connection requests a snapshot.
    pub fn forget(&mut self) {
        self.at = None;
    }

    /// Decodes a frame for a room of `seats` seats.
    pub fn read_frame(&mut self, bytes: &[u8], seats: u32) -> MapUpdate {
        match Frame::decode(bytes, seats) {
            Ok(Frame::Snapshot { epoch, version, now, map }) => {
                self.at = Some((epoch, version));
                MapUpdate::Snapshot { map, now }
            }
            Ok(Frame::Delta { from, to, changes }) => match self.at {
                Some((epoch, version)) if version == from => {
                    self.at = Some((epoch, to));
                    MapUpdate::Changes(changes)
                }
                _ => self.desync(),
            },
            Ok(Frame::OwnHold { now, mine }) => MapUpdate::OwnHold { mine, now },
            Ok(Frame::Areas { left }) => MapUpdate::Areas(left),
            Ok(Frame::Overview { free }) => MapUpdate::FreeSeats(free),
            Ok(Frame::Queue(_)) => MapUpdate::Queue,
            Ok(Frame::Drain { retry_ms }) => MapUpdate::Drain { retry_ms },
            Err(_) => self.desync(),
        }
    }

    fn desync(&mut self) -> MapUpdate {
        self.forget();
        MapUpdate::Desynced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: u64) -> Vec<u8> {
        Frame::Snapshot { epoch: 1, version, now: Timestamp(5), map: vec![SeatState::Available; 4] }.encode()
    }

    fn delta(from: u64, to: u64) -> Vec<u8> {
        Frame::Delta { from, to, changes: vec![SeatChange { seat: 2, state: SeatState::Locked }] }.encode()
    }

    #[test]
    fn deltas_advance_the_version_after_a_snapshot() {
        let mut follower = Follower::default();
        assert!(matches!(follower.read_frame(&snapshot(10), 4), MapUpdate::Snapshot { .. }));
        assert!(matches!(follower.read_frame(&delta(10, 13), 4), MapUpdate::Changes(changes) if changes.len() == 1));
        assert_eq!(follower.resume_from(), Some((1, 13)));
    }

    #[test]
    fn an_empty_delta_changes_nothing() {
        let mut follower = Follower::default();
        follower.read_frame(&snapshot(10), 4);
        let nothing_new = Frame::Delta { from: 10, to: 10, changes: vec![] }.encode();
        assert_eq!(follower.read_frame(&nothing_new, 4), MapUpdate::Changes(vec![]));
        assert_eq!(follower.resume_from(), Some((1, 10)));
    }

    #[test]
    fn a_version_gap_requests_a_snapshot() {
        let mut follower = Follower::default();
        follower.read_frame(&snapshot(10), 4);
        assert_eq!(follower.read_frame(&delta(11, 12), 4), MapUpdate::Desynced);
        assert_eq!(follower.resume_from(), None);
    }

    #[test]
    fn a_delta_without_snapshot_and_garbage_request_a_snapshot() {
        assert_eq!(Follower::default().read_frame(&delta(0, 1), 4), MapUpdate::Desynced);
        assert_eq!(Follower::default().read_frame(&[99, 1, 2], 4), MapUpdate::Desynced);
        assert_eq!(Follower::default().read_frame(&[], 4), MapUpdate::Desynced);
    }
}

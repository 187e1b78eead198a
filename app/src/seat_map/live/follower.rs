//! Follows the live map of a show: which frame fits, and when to ask for the whole map again.
//!
//! Pure: frames in, news out. The connection is elsewhere.

use domain::seats::{AreaIndex, SeatState};
use domain::time::Timestamp;
use domain::wire::{Change, Frame, Mine};

/// What a frame meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The whole map.
    Map {
        /// Every seat.
        map: Vec<SeatState>,
        /// The lock store's clock.
        now: Timestamp,
    },
    /// Some seats.
    Changes(Vec<Change>),
    /// The visitor's own hold.
    Mine {
        /// The hold, if there is one.
        mine: Option<Mine>,
        /// The lock store's clock.
        now: Timestamp,
    },
    /// Places left in every area.
    Areas(Vec<(AreaIndex, u32)>),
    /// Free seats of every section, to readers of some sections only.
    Free(Vec<u32>),
    /// How the waiting room stands, which whoever sees the map has behind them.
    Queue,
    /// The server is about to stop: come back in so many milliseconds.
    Leave {
        /// Milliseconds, before jitter.
        retry_ms: u64,
    },
    /// The frame does not fit what we have, or is none: connect again and ask for everything.
    Lost,
}

/// Where we are in the history of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follower {
    at: Option<(u64, u64)>,
}

impl Follower {
    /// Epoch and version reached, to resume from; `None` asks for the whole map.
    #[must_use]
    pub fn resume_from(&self) -> Option<(u64, u64)> {
        self.at
    }

    /// Forgets where we are: the next connection asks for the whole map.
    pub fn forget(&mut self) {
        self.at = None;
    }

    /// Reads a frame of a room of `seats`.
    pub fn hear(&mut self, bytes: &[u8], seats: u32) -> News {
        match Frame::decode(bytes, seats) {
            Ok(Frame::Snapshot { epoch, version, now, map }) => {
                self.at = Some((epoch, version));
                News::Map { map, now }
            }
            Ok(Frame::Delta { from, to, changes }) => match self.at {
                Some((epoch, version)) if version == from => {
                    self.at = Some((epoch, to));
                    News::Changes(changes)
                }
                _ => self.lose(),
            },
            Ok(Frame::Mine { now, mine }) => News::Mine { mine, now },
            Ok(Frame::Areas { left }) => News::Areas(left),
            Ok(Frame::Overview { free }) => News::Free(free),
            Ok(Frame::Queue(_)) => News::Queue,
            Ok(Frame::Drain { retry_ms }) => News::Leave { retry_ms },
            Err(_) => self.lose(),
        }
    }

    fn lose(&mut self) -> News {
        self.forget();
        News::Lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: u64) -> Vec<u8> {
        Frame::Snapshot { epoch: 1, version, now: Timestamp(5), map: vec![SeatState::Available; 4] }.encode()
    }

    fn delta(from: u64, to: u64) -> Vec<u8> {
        Frame::Delta { from, to, changes: vec![Change { seat: 2, state: SeatState::Locked }] }.encode()
    }

    #[test]
    fn deltas_follow_a_snapshot_step_by_step() {
        let mut follower = Follower::default();
        assert!(matches!(follower.hear(&snapshot(10), 4), News::Map { .. }));
        assert!(matches!(follower.hear(&delta(10, 13), 4), News::Changes(changes) if changes.len() == 1));
        assert_eq!(follower.resume_from(), Some((1, 13)));
    }

    #[test]
    fn a_sign_of_life_changes_nothing() {
        let mut follower = Follower::default();
        follower.hear(&snapshot(10), 4);
        let nothing_new = Frame::Delta { from: 10, to: 10, changes: vec![] }.encode();
        assert_eq!(follower.hear(&nothing_new, 4), News::Changes(vec![]));
        assert_eq!(follower.resume_from(), Some((1, 10)));
    }

    #[test]
    fn a_gap_asks_for_everything() {
        let mut follower = Follower::default();
        follower.hear(&snapshot(10), 4);
        assert_eq!(follower.hear(&delta(11, 12), 4), News::Lost);
        assert_eq!(follower.resume_from(), None);
    }

    #[test]
    fn a_delta_before_any_snapshot_and_garbage_ask_for_everything() {
        assert_eq!(Follower::default().hear(&delta(0, 1), 4), News::Lost);
        assert_eq!(Follower::default().hear(&[99, 1, 2], 4), News::Lost);
        assert_eq!(Follower::default().hear(&[], 4), News::Lost);
    }
}

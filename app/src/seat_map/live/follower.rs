//! Follows the versions of the live map: decides which frame fits and when a new snapshot is needed.
//!
//! Pure. The connection is elsewhere.

use domain::wire::Frame;

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

    /// Decodes a frame for a room of `seats` seats. `None` if it is invalid or does not follow our version: the position
    /// is forgotten, and the next connection requests a snapshot.
    pub fn read_frame(&mut self, bytes: &[u8], seats: u32) -> Option<Frame> {
        let frame = Frame::decode(bytes, seats).ok();
        match (&frame, self.at) {
            (Some(Frame::Snapshot { epoch, version, .. }), _) => self.at = Some((*epoch, *version)),
            (Some(Frame::Delta { from, to, .. }), Some((epoch, version))) if version == *from => {
                self.at = Some((epoch, *to));
            }
            (Some(Frame::Delta { .. }) | None, _) => {
                self.at = None;
                return None;
            }
            _ => {}
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use domain::seats::SeatState;
    use domain::time::Timestamp;
    use domain::wire::SeatChange;

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
        assert!(matches!(follower.read_frame(&snapshot(10), 4), Some(Frame::Snapshot { .. })));
        assert!(
            matches!(follower.read_frame(&delta(10, 13), 4), Some(Frame::Delta { changes, .. }) if changes.len() == 1)
        );
        assert_eq!(follower.resume_from(), Some((1, 13)));
    }

    #[test]
    fn an_empty_delta_changes_nothing() {
        let mut follower = Follower::default();
        follower.read_frame(&snapshot(10), 4);
        let nothing_new = Frame::Delta { from: 10, to: 10, changes: vec![] };
        assert_eq!(follower.read_frame(&nothing_new.encode(), 4), Some(nothing_new));
        assert_eq!(follower.resume_from(), Some((1, 10)));
    }

    #[test]
    fn a_version_gap_requests_a_snapshot() {
        let mut follower = Follower::default();
        follower.read_frame(&snapshot(10), 4);
        assert_eq!(follower.read_frame(&delta(11, 12), 4), None);
        assert_eq!(follower.resume_from(), None);
    }

    #[test]
    fn a_delta_without_snapshot_and_garbage_request_a_snapshot() {
        assert_eq!(Follower::default().read_frame(&delta(0, 1), 4), None);
        assert_eq!(Follower::default().read_frame(&[99, 1, 2], 4), None);
        assert_eq!(Follower::default().read_frame(&[], 4), None);
    }
}

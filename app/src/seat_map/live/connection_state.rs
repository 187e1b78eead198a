//! The state of a live connection, without the connection's behaviour: what is open, and the position in the versions of
//! the map, which decides which frame fits and when a new snapshot is needed.

use domain::wire::Frame;

use crate::browser::socket::Socket;
use crate::seat_map::notice::Notice;
use crate::seat_map::signals::SendWrapper;

/// Failed attempts in a row after which the page shows that it is offline.
pub(super) const TRIES_UNTIL_OFFLINE: u32 = 2;
/// A connection silent for longer than this, milliseconds, is dead: the server sends two heartbeats in that time
/// (`HEARTBEAT_PERIOD` in `server/seats/src/live/socket.rs`).
const LONGEST_SILENCE_MS: f64 = 60_000.0;

#[derive(Default)]
pub struct ConnectionState {
    pub(super) socket: Option<SendWrapper<Socket>>,
    pub(super) follower: Follower,
    /// Failed attempts in a row.
    pub(super) failures: u32,
    /// Number of the current connection, so that an overtaken pause does nothing.
    pub(super) generation: u64,
    /// The subscribed sections. An empty list means all.
    pub(super) subscribed: Vec<u16>,
    /// True if sections were added on this connection. The server may not have read that before the connection ended.
    pub(super) has_added_sections: bool,
    /// True if the map may lack changes of the subscribed sections, until a snapshot arrives.
    pub(super) needs_snapshot: bool,
    /// Frames that arrived before the room plan, with their arrival on the monotonic clock: frames carry the server's
    /// time.
    pub(super) buffered: Vec<(Vec<u8>, f64)>,
    /// True if changed seats on screen are to be painted with one of the next frames.
    pub(super) is_paint_scheduled: bool,
    /// Time at which the page was hidden, on the device's wall clock, milliseconds.
    pub(super) hidden_at: Option<f64>,
    /// Time of the last frame or connection attempt, on the wall clock, which runs while the device sleeps.
    pub(super) received_at: f64,
    /// Set when a failed request caused the reconnect. Its success then does not clear the notice of that failure.
    pub(super) is_reconnect_after_failure: bool,
    /// The notice that the map cannot be read. Removed once connected.
    pub(super) map_failure_notice: Option<Notice>,
}

impl ConnectionState {
    /// Returns true if a connection is open or opening and has been silent for too long.
    pub(super) fn is_silent(&self, now: f64) -> bool {
        self.socket.is_some() && has_elapsed(LONGEST_SILENCE_MS, self.received_at, now)
    }

    /// The epoch and version from which a new connection to these sections resumes. `None` requests a snapshot. Changes
    /// of other sections than the subscribed ones were never sent, whatever the version.
    pub(super) fn resume_from(&mut self, sections: &[u16]) -> Option<(u64, u64)> {
        self.needs_snapshot |= std::mem::take(&mut self.has_added_sections) || !covers(&self.subscribed, sections);
        self.follower.resume_from().filter(|_| !self.needs_snapshot)
    }

    /// Records that these sections were subscribed to on the current connection.
    pub(super) fn record_subscription(&mut self, sections: Vec<u16>) {
        self.has_added_sections |= !covers(&self.subscribed, &sections);
        self.subscribed = sections;
    }
}

/// Returns true if these sections include the others. An empty list means all.
fn covers(sections: &[u16], others: &[u16]) -> bool {
    sections.is_empty() || (!others.is_empty() && others.iter().all(|other| sections.contains(other)))
}

/// Returns true if more than `limit_ms` passed between two readings of the device's wall clock. True for a clock that
/// was set back, because nothing is known then.
pub(super) fn has_elapsed(limit_ms: f64, since: f64, now: f64) -> bool {
    !(0.0..limit_ms).contains(&(now - since))
}

/// Our position in the history of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follower {
    at: Option<(u64, u64)>,
}

impl Follower {
    /// The epoch and version reached, to resume from. `None` requests a snapshot.
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

    #[test]
    fn a_connection_is_silent_after_a_minute_or_when_the_clock_was_set_back() {
        let has_elapsed = |now| has_elapsed(LONGEST_SILENCE_MS, 1_000.0, now);
        assert!(!has_elapsed(1_000.0) && !has_elapsed(60_999.0));
        assert!(has_elapsed(61_000.0) && has_elapsed(999.0));
        assert!(!ConnectionState::default().is_silent(1e9), "no connection");
    }

    /// A connection to these sections with the map of epoch 1, version 10.
    fn connected(sections: &[u16]) -> ConnectionState {
        let follower = Follower { at: Some((1, 10)) };
        ConnectionState { follower, subscribed: sections.to_vec(), ..ConnectionState::default() }
    }

    #[test]
    fn a_connection_to_sections_that_were_not_subscribed_requests_a_snapshot() {
        let resumed = |before: &[u16], after: &[u16]| connected(before).resume_from(after).is_some();
        assert!(resumed(&[2], &[2]) && resumed(&[2, 5], &[5]) && resumed(&[], &[2]) && resumed(&[], &[]));
        assert!(!resumed(&[2], &[3]) && !resumed(&[2], &[2, 3]) && !resumed(&[2], &[]));
    }

    #[test]
    fn a_subscription_that_the_server_may_not_have_read_requests_a_snapshot() {
        let mut connection = connected(&[2]);
        connection.record_subscription(vec![3]);
        assert_eq!(connection.resume_from(&[3]), None);
        assert_eq!(connection.resume_from(&[3]), None, "the snapshot has not arrived");
        connection.needs_snapshot = false;
        assert_eq!(connection.resume_from(&[3]), Some((1, 10)));
        connection.subscribed.clear();
        connection.record_subscription(vec![3]);
        assert_eq!(connection.resume_from(&[3]), Some((1, 10)), "the whole room was subscribed");
    }

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

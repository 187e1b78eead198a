//! The state of a live connection, without the connection's behaviour.

use super::follower::Follower;
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
    /// Frames that arrived before the room plan, with their arrival on the monotonic clock: frames carry the server's
    /// time.
    pub(super) buffered: Vec<(Vec<u8>, f64)>,
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
}

/// Returns true if more than `limit_ms` passed between two readings of the device's wall clock. True for a clock that
/// was set back, because nothing is known then.
pub(super) fn has_elapsed(limit_ms: f64, since: f64, now: f64) -> bool {
    !(0.0..limit_ms).contains(&(now - since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_silent_after_a_minute_or_when_the_clock_was_set_back() {
        let has_elapsed = |now| has_elapsed(LONGEST_SILENCE_MS, 1_000.0, now);
        assert!(!has_elapsed(1_000.0) && !has_elapsed(60_999.0));
        assert!(has_elapsed(61_000.0) && has_elapsed(999.0));
        assert!(!ConnectionState::default().is_silent(1e9), "no connection");
    }
}

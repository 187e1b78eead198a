//! The state of a live connection, without the connection's behaviour.

use super::follower::Follower;
use crate::browser::socket::Socket;
use crate::seat_map::telling::notices::Notice;

/// Failed tries in a row after which people are told.
pub(super) const TRIES_UNTIL_OFFLINE: u32 = 2;
/// A line on which nothing came for longer than this, milliseconds, is dead: the server says something twice in that time
/// (`BEAT` in `server/seats/src/live/socket.rs`).
const LONGEST_SILENCE_MS: f64 = 60_000.0;

/// The connection of a session.
#[derive(Default)]
pub struct Connection {
    pub(super) socket: Option<Socket>,
    pub(super) follower: Follower,
    /// Tries in a row that failed.
    pub(super) failures: u32,
    /// Counts the connections, so that a pause that was overtaken does nothing.
    pub(super) number: u64,
    /// The sections the server tells us the changes of; none stands for all.
    pub(super) followed: Vec<u16>,
    /// Frames that came before the room, and when, on the monotonic clock: they tell the time.
    pub(super) waiting: Vec<(Vec<u8>, f64)>,
    /// When the page was hidden, on the device's wall clock, milliseconds.
    pub(super) hidden_at: Option<f64>,
    /// When something was heard last, or the connection asked for, on the same clock: it goes on while the device sleeps.
    pub(super) heard_at: f64,
    /// Whether it is made anew because a request found nobody: that it stands takes nothing back of what was said of that.
    pub(super) is_doubted: bool,
    /// The notice shown about a map that cannot be read; removed once the connection is there.
    pub(super) said: Option<Notice>,
}

impl Connection {
    /// Whether the connection is there, or coming, and nothing was heard of it for too long.
    pub(super) fn is_silent(&self, now: f64) -> bool {
        self.socket.is_some() && is_over(LONGEST_SILENCE_MS, self.heard_at, now)
    }
}

/// Whether more than `limit_ms` passed between two instants of the device's wall clock. One that was set back says nothing:
/// rather once too often.
pub(super) fn is_over(limit_ms: f64, since: f64, now: f64) -> bool {
    !(0.0..limit_ms).contains(&(now - since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_too_long_after_a_minute_and_when_the_clock_was_set_back() {
        let is_over = |now| is_over(LONGEST_SILENCE_MS, 1_000.0, now);
        assert!(!is_over(1_000.0) && !is_over(60_999.0));
        assert!(is_over(61_000.0) && is_over(999.0));
        assert!(!Connection::default().is_silent(1e9), "where there is no connection nobody is silent");
    }
}

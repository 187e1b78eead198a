//! How many want something just now: a count over the last seconds.

use crate::time::{SECOND_MS, Timestamp};

/// The stretch of time that is counted over, milliseconds: long enough that one who taps fast is no crowd, short enough
/// that the first second of a sale is one.
pub const WINDOW_MS: i64 = 5 * SECOND_MS;

/// Attempts at something, counted in windows side by side. Two numbers, however many come: what the window before this
/// one had is believed to have come evenly, and counts as far as it reaches into the last [`WINDOW_MS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    window: i64,
    now: u32,
    before: u32,
}

impl Load {
    /// Counts an attempt.
    pub fn note(&mut self, at: Timestamp) {
        self.turn(at);
        self.now = self.now.saturating_add(1);
    }

    /// Attempts a second over the last [`WINDOW_MS`], rounded down.
    #[must_use]
    pub fn per_second(mut self, at: Timestamp) -> u32 {
        self.turn(at);
        let rest_ms = WINDOW_MS - at.0.rem_euclid(WINDOW_MS);
        let counted = i64::from(self.now) + i64::from(self.before) * rest_ms / WINDOW_MS;
        u32::try_from(counted * SECOND_MS / WINDOW_MS).unwrap_or(u32::MAX)
    }

    /// Whether nothing that was counted counts any more.
    #[must_use]
    pub fn is_over(mut self, at: Timestamp) -> bool {
        self.turn(at);
        self.now == 0 && self.before == 0
    }

    /// Goes on to the window of this instant. A clock that goes back stays in the window it was in.
    fn turn(&mut self, at: Timestamp) {
        let window = at.0.div_euclid(WINDOW_MS);
        if window > self.window {
            self.before = if window == self.window.saturating_add(1) { self.now } else { 0 };
            self.now = 0;
            self.window = window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a window begins.
    const BEGIN: Timestamp = Timestamp(1_000 * WINDOW_MS);

    fn after(attempts: u32) -> Load {
        let mut load = Load::default();
        (0..attempts).for_each(|_| load.note(BEGIN));
        load
    }

    #[test]
    fn a_crowd_is_seen_at_once_and_forgotten_bit_by_bit() {
        let load = after(500);
        assert_eq!(load.per_second(BEGIN), 100);
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS - 1)), 100, "in the same window");
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS)), 100);
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS + WINDOW_MS / 2)), 50);
        assert_eq!(load.per_second(BEGIN.plus_ms(2 * WINDOW_MS)), 0);
    }

    #[test]
    fn what_is_over_can_be_forgotten() {
        let load = after(1);
        assert!(!load.is_over(BEGIN.plus_ms(2 * WINDOW_MS - 1)));
        assert!(load.is_over(BEGIN.plus_ms(2 * WINDOW_MS)));
        assert!(Load::default().is_over(BEGIN));
    }

    #[test]
    fn a_clock_that_goes_back_loses_no_count_and_many_are_no_overflow() {
        let mut load = after(500);
        load.note(BEGIN.plus_ms(-3 * WINDOW_MS));
        assert_eq!(load.per_second(BEGIN), 100);
        let full = Load { window: BEGIN.0.div_euclid(WINDOW_MS), now: u32::MAX, before: u32::MAX };
        let mut fuller = full;
        fuller.note(BEGIN);
        assert_eq!(fuller, full);
        assert!(fuller.per_second(BEGIN) > 1_000_000_000);
    }
}

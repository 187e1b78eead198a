//! Measures the current rate of attempts over the last seconds.

use crate::time::{SECOND_MS, Timestamp};

/// Length of a window, milliseconds: long enough that one fast visitor does not count as a crowd, short enough to
/// detect the crowd in the first second of a sale.
pub const WINDOW_MS: i64 = 5 * SECOND_MS;

/// Sliding-window counter of attempts. It keeps two numbers. The previous window's attempts are assumed to be evenly
/// distributed and count in proportion to its overlap with the last [`WINDOW_MS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    window: i64,
    current: u32,
    previous: u32,
}

impl Load {
    /// Counts an attempt.
    pub fn record(&mut self, at: Timestamp) {
        self.advance(at);
        self.current = self.current.saturating_add(1);
    }

    /// Returns the attempts per second over the last [`WINDOW_MS`], rounded down.
    #[must_use]
    pub fn per_second(mut self, at: Timestamp) -> u32 {
        self.advance(at);
        let rest_ms = WINDOW_MS - at.0.rem_euclid(WINDOW_MS);
        let counted = i64::from(self.current) + i64::from(self.previous) * rest_ms / WINDOW_MS;
        u32::try_from(counted * SECOND_MS / WINDOW_MS).unwrap_or(u32::MAX)
    }

    /// True if no counted attempt is recent enough to count.
    #[must_use]
    pub fn is_over(mut self, at: Timestamp) -> bool {
        self.advance(at);
        self.current == 0 && self.previous == 0
    }

    /// Advances to the window of `at`. A clock that goes back stays in its window.
    fn advance(&mut self, at: Timestamp) {
        let window = at.0.div_euclid(WINDOW_MS);
        if window > self.window {
            self.previous = if window == self.window.saturating_add(1) { self.current } else { 0 };
            self.current = 0;
            self.window = window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start of a window.
    const BEGIN: Timestamp = Timestamp(1_000 * WINDOW_MS);

    fn load_after(attempts: u32) -> Load {
        let mut load = Load::default();
        (0..attempts).for_each(|_| load.record(BEGIN));
        load
    }

    #[test]
    fn rate_rises_at_once_and_decays_gradually() {
        let load = load_after(500);
        assert_eq!(load.per_second(BEGIN), 100);
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS - 1)), 100, "in the same window");
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS)), 100);
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS + WINDOW_MS / 2)), 50);
        assert_eq!(load.per_second(BEGIN.plus_ms(2 * WINDOW_MS)), 0);
    }

    #[test]
    fn old_attempts_expire() {
        let load = load_after(1);
        assert!(!load.is_over(BEGIN.plus_ms(2 * WINDOW_MS - 1)));
        assert!(load.is_over(BEGIN.plus_ms(2 * WINDOW_MS)));
        assert!(Load::default().is_over(BEGIN));
    }

    #[test]
    fn backward_clock_keeps_counts_and_counters_saturate() {
        let mut load = load_after(500);
        load.record(BEGIN.plus_ms(-3 * WINDOW_MS));
        assert_eq!(load.per_second(BEGIN), 100);
        let full = Load { window: BEGIN.0.div_euclid(WINDOW_MS), current: u32::MAX, previous: u32::MAX };
        let mut fuller = full;
        fuller.record(BEGIN);
        assert_eq!(fuller, full);
        assert!(fuller.per_second(BEGIN) > 1_000_000_000);
    }
}

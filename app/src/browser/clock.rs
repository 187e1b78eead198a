//! The server's clock, as far as the browser can know it.
//!
//! The wall clock of the device is never asked for the time: words of the server set the offset to the
//! browser's monotonic clock, and from then on that one counts. A word may have lain about before it is
//! read (a slow network, a page busy with its first paint), so it bounds the offset instead of being it.

use std::cell::Cell;

use domain::time::Timestamp;

thread_local! {
    /// One page has one clock.
    static OFFSET: Cell<Option<Offset>> = const { Cell::new(None) };
}

/// Milliseconds on the monotonic clock.
#[must_use]
pub fn monotonic_ms() -> f64 {
    super::window().performance().map_or(0.0, |clock| clock.now())
}

/// The server said `now` in an answer to what was asked at `asked_at` (monotonic), and that is read
/// at this moment.
pub fn observe(now: Timestamp, asked_at: f64) {
    note(Offset::of_answer(now, asked_at, monotonic_ms()));
}

/// The server said `now` in a frame that came at `heard_at` (monotonic), perhaps some time ago.
pub fn hear(now: Timestamp, heard_at: f64) {
    note(Offset::of_frame(now, heard_at));
}

fn note(word: Offset) {
    OFFSET.set(Some(OFFSET.get().map_or(word, |known| known.narrowed_by(word))));
}

/// The server's clock; `None` before its first word.
#[must_use]
pub fn server_now() -> Option<Timestamp> {
    OFFSET.get().map(|offset| Timestamp((monotonic_ms() + offset.value()) as i64))
}

/// The device's wall clock, milliseconds: right or wrong, but it goes on while the device sleeps. Only
/// for how long that was.
#[must_use]
pub fn device_ms() -> f64 {
    js_sys::Date::now()
}

/// What is known of server time minus monotonic time, milliseconds. The idea of keeping the narrowest
/// bounds is the clock filter of NTP (RFC 5905, section 10).
///
/// Milliseconds since 1970 fit in the 53 bits of a float for 285,000 years.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offset {
    /// A word is said before it is read.
    at_least: f64,
    /// An answer is said after its question; of a frame nobody knows how long it was under way.
    at_most: Option<f64>,
}

impl Offset {
    fn of_answer(now: Timestamp, asked_at: f64, read_at: f64) -> Self {
        let now = now.0 as f64;
        Self { at_least: now - read_at, at_most: Some(now - asked_at) }
    }

    fn of_frame(now: Timestamp, heard_at: f64) -> Self {
        Self { at_least: now.0 as f64 - heard_at, at_most: None }
    }

    /// What both say. Where they contradict each other the word counts: the monotonic clock may stand
    /// still while the device sleeps, and the server's may be set.
    fn narrowed_by(self, word: Self) -> Self {
        let at_least = self.at_least.max(word.at_least);
        let at_most = match (self.at_most, word.at_most) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if at_most.is_some_and(|at_most| at_most < at_least) { word } else { Self { at_least, at_most } }
    }

    /// The latest the server's clock can stand at: nobody is promised more time than is left.
    fn value(self) -> f64 {
        self.at_most.unwrap_or(self.at_least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's clock is ahead of ours by exactly this.
    const TRUTH: f64 = 1_000_000.0;

    fn answer(asked_at: f64, said_at: f64, read_at: f64) -> Offset {
        Offset::of_answer(Timestamp((TRUTH + said_at) as i64), asked_at, read_at)
    }

    fn frame(said_at: f64, heard_at: f64) -> Offset {
        Offset::of_frame(Timestamp((TRUTH + said_at) as i64), heard_at)
    }

    #[test]
    fn a_word_that_lay_about_moves_nothing() {
        let known = answer(0.0, 10.0, 20.0);
        assert_eq!(known.value(), TRUTH + 10.0);
        assert_eq!(known.narrowed_by(frame(100.0, 2_400.0)), known);
        assert_eq!(known.narrowed_by(answer(100.0, 150.0, 4_000.0)), known);
    }

    #[test]
    fn every_quicker_word_narrows_and_none_promises_more_time_than_is_left() {
        let words = [answer(0.0, 900.0, 2_000.0), frame(2_100.0, 2_500.0), answer(2_600.0, 2_640.0, 2_660.0)];
        let mut known = words[0];
        for word in words {
            known = known.narrowed_by(word);
            assert!(known.value() >= TRUTH, "{known:?}");
        }
        assert_eq!(known.value(), TRUTH + 40.0);
    }

    #[test]
    fn after_a_sleep_the_word_counts() {
        let known = answer(0.0, 10.0, 20.0);
        // A minute passed for the server and none for us.
        let woken = frame(60_030.0, 40.0);
        assert_eq!(known.narrowed_by(woken), woken);
        let slower = answer(50.0, -5_000.0, 60.0);
        assert_eq!(known.narrowed_by(slower), slower);
    }

    #[test]
    fn frames_alone_bound_it_from_below() {
        let known = frame(0.0, 300.0).narrowed_by(frame(1_000.0, 1_005.0)).narrowed_by(frame(2_000.0, 2_200.0));
        assert_eq!(known.value(), TRUTH - 5.0);
    }
}

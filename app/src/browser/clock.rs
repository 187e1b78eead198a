//! The server's clock, as far as the browser can know it.
//!
//! The device's wall clock is never used for the time: server timestamps set an offset to the browser's monotonic
//! clock, which counts from then on. A timestamp may be read late (slow network, page busy with its first paint), so it
//! bounds the offset and does not set it.

use std::cell::Cell;

use domain::time::Timestamp;

thread_local! {
    /// One page has one clock.
    static OFFSET: Cell<Option<Offset>> = const { Cell::new(None) };
}

/// Milliseconds on the monotonic clock.
pub fn monotonic_ms() -> f64 {
    super::window().performance().map_or(0.0, |clock| clock.now())
}

/// Records the server time `now` of an answer whose request was sent at `sent_at` (monotonic), and which is read now.
pub fn observe_answer(now: Timestamp, sent_at: f64) {
    record(Offset::of_answer(now, sent_at, monotonic_ms()));
}

/// Records the server time `now` of a frame received at `received_at` (monotonic), perhaps some time after it was sent.
pub fn observe_frame(now: Timestamp, received_at: f64) {
    record(Offset::of_frame(now, received_at));
}

fn record(newer: Offset) {
    OFFSET.set(Some(OFFSET.get().map_or(newer, |known| known.narrowed_by(newer))));
}

/// The server's clock; `None` before its first timestamp.
pub fn server_now() -> Option<Timestamp> {
    OFFSET.get().map(|offset| Timestamp((monotonic_ms() + offset.value()) as i64))
}

/// The device's wall clock, milliseconds. It may be wrong, but it runs while the device sleeps. Only for measuring
/// durations.
pub fn device_ms() -> f64 {
    js_sys::Date::now()
}

/// Bounds of server time minus monotonic time, milliseconds. Keeping the narrowest bounds is the clock filter of NTP
/// (RFC 5905, section 10).
///
/// Milliseconds since 1970 fit in the 53 bits of a float for 285,000 years.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offset {
    /// A timestamp is written before it is read.
    at_least: f64,
    /// An answer is written after its request is sent. The transit time of a frame is unknown.
    at_most: Option<f64>,
}

impl Offset {
    fn of_answer(now: Timestamp, sent_at: f64, read_at: f64) -> Self {
        let now = now.0 as f64;
        Self { at_least: now - read_at, at_most: Some(now - sent_at) }
    }

    fn of_frame(now: Timestamp, received_at: f64) -> Self {
        Self { at_least: now.0 as f64 - received_at, at_most: None }
    }

    /// Combines two bounds. If they contradict, the newer one counts: the monotonic clock may stop while the device
    /// sleeps, and the server's clock may be set.
    fn narrowed_by(self, newer: Self) -> Self {
        let at_least = self.at_least.max(newer.at_least);
        let at_most = match (self.at_most, newer.at_most) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if at_most.is_some_and(|at_most| at_most < at_least) { newer } else { Self { at_least, at_most } }
    }

    /// The latest possible server time, so that no more time is promised than is left.
    fn value(self) -> f64 {
        self.at_most.unwrap_or(self.at_least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's clock is ahead of ours by exactly this.
    const TRUTH: f64 = 1_000_000.0;

    fn answer(sent_at: f64, written_at: f64, read_at: f64) -> Offset {
        Offset::of_answer(Timestamp((TRUTH + written_at) as i64), sent_at, read_at)
    }

    fn frame(written_at: f64, received_at: f64) -> Offset {
        Offset::of_frame(Timestamp((TRUTH + written_at) as i64), received_at)
    }

    #[test]
    fn a_timestamp_read_late_changes_nothing() {
        let known = answer(0.0, 10.0, 20.0);
        assert_eq!(known.value(), TRUTH + 10.0);
        assert_eq!(known.narrowed_by(frame(100.0, 2_400.0)), known);
        assert_eq!(known.narrowed_by(answer(100.0, 150.0, 4_000.0)), known);
    }

    #[test]
    fn faster_samples_narrow_the_offset_and_never_promise_too_much_time() {
        let samples = [answer(0.0, 900.0, 2_000.0), frame(2_100.0, 2_500.0), answer(2_600.0, 2_640.0, 2_660.0)];
        let mut known = samples[0];
        for newer in samples {
            known = known.narrowed_by(newer);
            assert!(known.value() >= TRUTH, "{known:?}");
        }
        assert_eq!(known.value(), TRUTH + 40.0);
    }

    #[test]
    fn a_contradicting_sample_replaces_the_bounds_after_sleep() {
        let known = answer(0.0, 10.0, 20.0);
        // A minute passed for the server and none for us.
        let woken = frame(60_030.0, 40.0);
        assert_eq!(known.narrowed_by(woken), woken);
        let slower = answer(50.0, -5_000.0, 60.0);
        assert_eq!(known.narrowed_by(slower), slower);
    }

    #[test]
    fn frames_alone_set_the_lower_bound() {
        let known = frame(0.0, 300.0).narrowed_by(frame(1_000.0, 1_005.0)).narrowed_by(frame(2_000.0, 2_200.0));
        assert_eq!(known.value(), TRUTH - 5.0);
    }
}

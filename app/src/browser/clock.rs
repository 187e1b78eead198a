//! The server's clock, as far as the browser can know it.
//!
//! The wall clock of the device is never asked: an answer of the server sets the offset to the
//! browser's monotonic clock, and from then on that one counts.

use std::cell::Cell;

use domain::time::Timestamp;

thread_local! {
    /// Server time minus monotonic time, milliseconds. One page has one clock.
    static OFFSET_MS: Cell<Option<f64>> = const { Cell::new(None) };
}

/// Milliseconds on the monotonic clock.
#[must_use]
pub fn monotonic_ms() -> f64 {
    super::window().performance().map_or(0.0, |clock| clock.now())
}

/// The server said `now` in an answer that took from `asked_at` (monotonic) until this moment: it
/// was said half-way in between. The latest answer counts: the monotonic clock may stand still while
/// the device sleeps.
pub fn observe(now: Timestamp, asked_at: f64) {
    let received = monotonic_ms();
    // Milliseconds since 1970 fit in the 53 bits of a float for 285,000 years.
    OFFSET_MS.set(Some(now.0 as f64 + (received - asked_at) / 2.0 - received));
}

/// The server's clock; `None` before its first answer.
#[must_use]
pub fn server_now() -> Option<Timestamp> {
    OFFSET_MS.get().map(|offset| Timestamp((monotonic_ms() + offset) as i64))
}

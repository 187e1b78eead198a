//! The server's clock, as far as the browser can know it.
//!
//! The wall clock of the device is never asked for the time: an answer of the server sets the offset to
//! the browser's monotonic clock, and from then on that one counts.

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
    set(now, asked_at + (monotonic_ms() - asked_at) / 2.0);
}

/// The server said `now` in a frame that came at `heard_at` (monotonic), perhaps some time ago.
pub fn hear(now: Timestamp, heard_at: f64) {
    set(now, heard_at);
}

fn set(now: Timestamp, at: f64) {
    // Milliseconds since 1970 fit in the 53 bits of a float for 285,000 years.
    OFFSET_MS.set(Some(now.0 as f64 - at));
}

/// The server's clock; `None` before its first answer.
#[must_use]
pub fn server_now() -> Option<Timestamp> {
    OFFSET_MS.get().map(|offset| Timestamp((monotonic_ms() + offset) as i64))
}

/// The device's wall clock, milliseconds: right or wrong, but it goes on while the device sleeps. Only
/// for how long that was.
#[must_use]
pub fn device_ms() -> f64 {
    js_sys::Date::now()
}

//! The one place that reads the wall clock.
//!
//! It stamps rows, judges webhook ages and show starts. Holds live on Redis' time: [`StoreClock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use domain::time::Timestamp;

/// This server's wall clock, now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where time comes in")]
pub fn now() -> Timestamp {
    Timestamp(Utc::now().timestamp_millis())
}

/// Redis' clock, as this server's wall clock and what Redis was ahead of it when it was last read. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StoreClock(Arc<AtomicI64>);

impl StoreClock {
    /// Redis' time, now. Until Redis was read once, the wall clock's.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        now().plus_ms(self.0.load(Ordering::Relaxed))
    }

    /// Takes over the time that Redis has just answered with.
    pub fn set(&self, store_time: Timestamp) {
        self.0.store(store_time.since(now()), Ordering::Relaxed);
    }
}

/// For Postgres, which speaks `timestamptz`. Instants out of chrono's 260,000 years become its ends.
#[must_use]
pub fn to_utc(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.0).unwrap_or(if at.0 < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    })
}

/// From Postgres; sub-millisecond digits are cut off.
#[must_use]
pub fn from_utc(at: DateTime<Utc>) -> Timestamp {
    Timestamp(at.timestamp_millis())
}

/// RFC 3339 in UTC with milliseconds, as the API prints instants.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    to_utc(at).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use domain::time::MINUTE_MS;

    use super::*;

    #[test]
    fn clones_of_the_store_clock_follow_the_time_of_the_store() {
        let (clock, store_time) = (StoreClock::default(), now().plus_ms(60 * MINUTE_MS));
        let clone = clock.clone();
        clock.set(store_time);
        assert!((0..MINUTE_MS).contains(&clone.now().since(store_time)), "an hour ahead of the wall clock");
    }
}

//! The one place that reads the wall clock.
//!
//! Holds never ask it: they live on Redis' clock. It stamps rows, judges webhook ages and show starts.

use chrono::{DateTime, Utc};
use domain::time::Timestamp;

/// This server's wall clock, now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where time comes in")]
pub fn now() -> Timestamp {
    Timestamp(Utc::now().timestamp_millis())
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

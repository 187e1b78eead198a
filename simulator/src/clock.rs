//! Clock and randomness: the only module of this crate that uses them.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::Rng;
use uuid::Uuid;

/// Returns the current time, milliseconds since 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where time comes in")]
pub fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

/// Creates an unguessable id.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where ids are made")]
pub fn new_uuid() -> Uuid {
    Uuid::new_v4()
}

/// Creates an unguessable id with a type prefix: `pay_…`, `evt_…`.
#[must_use]
pub fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", new_uuid().simple())
}

/// Draws a uniform number from `0..=limit`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge where randomness comes in")]
pub fn jitter(limit: u64) -> u64 {
    rand::rng().random_range(0..=limit)
}

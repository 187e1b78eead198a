//! Deletes expired codes, and the addresses with them.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::SellingState;
use platform::housekeeping;

/// Interval of purges.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// Retention after expiry, milliseconds: longer than an entered code stays valid.
const KEPT_MS: i64 = 24 * 60 * MINUTE_MS;
/// Maximum rows deleted in one statement, so that it holds locks only briefly.
const MAX_AT_ONCE: i64 = 5_000;

/// Runs until the server stops.
pub async fn purge_forever(state: SellingState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "codes before checkout", MAX_AT_ONCE, delete).await;
}

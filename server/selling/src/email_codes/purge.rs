//! Codes whose time is long over, and the addresses with them, are of no use to anyone.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::SellingState;
use platform::housekeeping;

/// How often old ones are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// They are kept this long after their time, milliseconds: longer than entering one counts.
const KEPT_MS: i64 = 24 * 60 * MINUTE_MS;
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_AT_ONCE: i64 = 5_000;

/// Runs until the server stops.
pub async fn purge_forever(state: SellingState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "codes before checkout", MAX_AT_ONCE, delete).await;
}

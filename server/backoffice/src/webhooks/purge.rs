//! Messages of a month ago are nobody's news; they are deleted a few at a time.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::BackofficeState;
use platform::housekeeping;

/// How often old ones are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(600);
/// They are kept this long, for replays and for endpoints that are out of order, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_AT_ONCE: i64 = 2_000;

/// Runs until the server stops.
pub async fn purge_forever(state: BackofficeState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "messages of webhooks", MAX_AT_ONCE, delete).await;
}

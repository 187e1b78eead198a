//! Deletes messages older than a month, in small batches.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::BackofficeState;
use platform::housekeeping;

/// Interval of purges.
const PURGE_EVERY: Duration = Duration::from_secs(600);
/// Retention of messages, for replays and for endpoints with failures, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum number of messages per statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 2_000;

/// Purges until the server stops.
pub async fn purge_forever(state: BackofficeState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "messages of webhooks", MAX_AT_ONCE, delete).await;
}

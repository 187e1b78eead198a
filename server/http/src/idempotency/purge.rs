//! Deletes expired keys, in batches, a day after they were claimed.

use std::time::Duration;

use super::sql;
use crate::HttpState;
use platform::housekeeping;

/// Interval of the deletes.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Rows per statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 10_000;

/// Runs until the server stops.
pub async fn purge_forever(state: HttpState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now(), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "idempotency keys", MAX_AT_ONCE, delete).await;
}

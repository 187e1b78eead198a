//! Deletes old sessions and links, in small batches.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::IdentityState;
use platform::housekeeping;

/// Interval of purges.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// Retention for investigations, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum number of rows per statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 5_000;

/// Purges until the server stops.
pub async fn purge_forever(state: IdentityState) {
    let delete = |limit| sql::sessions::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "sessions and links of mails", MAX_AT_ONCE, delete).await;
}

//! Sessions and links that are long over are of no use to anyone; they are deleted a few at a time.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::IdentityState;
use platform::housekeeping;

/// How often old ones are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// They are kept this long for whoever looks into what happened, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Of each deleted in one statement at most, so that it never holds anyone up.
const MAX_AT_ONCE: i64 = 5_000;

/// Runs until the server stops.
pub async fn purge_forever(state: IdentityState) {
    let delete = |limit| sql::sessions::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "sessions and links of mails", MAX_AT_ONCE, delete).await;
}

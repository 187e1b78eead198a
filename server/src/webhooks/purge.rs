//! Messages of a month ago are nobody's news; they are deleted a few at a time.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::AppState;

/// How often old ones are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(600);
/// They are kept this long, for replays and for endpoints that are out of order, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_PER_ROUND: i64 = 2_000;

/// Runs until the server stops.
pub async fn purge_forever(state: AppState) {
    let mut round = tokio::time::interval(PURGE_EVERY);
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = round.tick() => {}
        }
        let before = state.locks.now().plus_ms(-KEPT_MS);
        if let Err(cause) = sql::purge(&state.pg, before, MAX_PER_ROUND).await {
            tracing::warn!(%cause, "old messages of webhooks could not be deleted");
        }
    }
}

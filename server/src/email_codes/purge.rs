//! Codes whose time is long over, and the addresses with them, are of no use to anyone.

use std::time::Duration;

use domain::time::MINUTE_MS;

use super::sql;
use crate::AppState;

/// How often old ones are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// They are kept this long after their time, milliseconds: longer than entering one counts.
const KEPT_MS: i64 = 24 * 60 * MINUTE_MS;
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_PER_ROUND: i64 = 5_000;

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
            tracing::warn!(%cause, "old codes could not be deleted");
        }
    }
}

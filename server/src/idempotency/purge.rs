//! Keys that have run out are of no use to anyone; they are deleted a few at a time.

use std::time::Duration;

use super::sql;
use crate::AppState;

/// How often old keys are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_PER_ROUND: i64 = 10_000;

/// Runs until the server stops.
pub async fn purge_forever(state: AppState) {
    let mut round = tokio::time::interval(PURGE_EVERY);
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = round.tick() => {}
        }
        if let Err(cause) = sql::purge(&state.pg, state.locks.now(), MAX_PER_ROUND).await {
            tracing::warn!(%cause, "old idempotency keys could not be deleted");
        }
    }
}

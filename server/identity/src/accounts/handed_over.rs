//! Polls visitors that were recently handed over to accounts, on any replica, so that the replay cache of this process
//! returns none of their answers to a guest.

use std::time::Duration;

use domain::time::{SECOND_MS, Timestamp};
use sqlx::PgPool;

use crate::IdentityState;
use platform::background::PeriodicLoop;
use platform::clock::to_utc;

/// Polling interval.
const READ_EVERY: Duration = Duration::from_secs(2);
/// Maximum age of a sign-in that may commit only now, milliseconds.
const OVERLAP_MS: i64 = 60 * SECOND_MS;
/// Maximum number of visitors per poll, the latest first.
const MAX_VISITORS: i64 = 20_000;

/// Polls until the server stops.
pub async fn poll_handed_over_visitors(state: IdentityState) {
    let mut rounds = PeriodicLoop::every(&state.stop, READ_EVERY);
    while rounds.wait_next().await {
        let now = state.clock.now();
        match since(&state.pg, now.plus_ms(-OVERLAP_MS)).await {
            Ok(owners) => state.idempotency.hand_over(owners, now),
            // Without Postgres there is no sign-in either; the next round reads again.
            Err(cause) => tracing::debug!(%cause, "reading the visitors handed over lately failed"),
        }
    }
}

async fn since(pg: &PgPool, since: Timestamp) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT owner FROM account_visitors WHERE joined_at > $1 ORDER BY joined_at DESC LIMIT $2")
        .bind(to_utc(since))
        .bind(MAX_VISITORS)
        .fetch_all(pg)
        .await
}

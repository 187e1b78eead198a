//! The rounds in which every replica serves waiting lists, once a second. They wait for no mail server: mails are sent
//! concurrently ([`mails`](super::mails)).

use std::time::Duration;

use domain::time::Timestamp;

use super::{offers, sql};
use crate::SellingState;
use platform::background::PeriodicLoop;

/// Interval of rounds.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Period in which a show that any replica has processed is skipped, milliseconds.
const LOOKED_AT_MS: i64 = 900;
/// Shows processed in one round, least recent first.
const MAX_SHOWS_PER_ROUND: i64 = 200;
/// Maximum shows with a waiting list in a replica's cache.
const MAX_OPEN_LISTS: i64 = 100_000;

/// Runs until the server stops.
pub async fn serve_forever(state: SellingState) {
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    while rounds.wait_next().await {
        if let Err(cause) = serve_all_lists(&state).await {
            tracing::warn!(%cause, "serving waiting lists failed");
        }
    }
}

/// One round over all shows with a waiting list.
///
/// # Errors
/// When the database fails. Failures of single shows are logged, and the next round retries.
pub async fn serve_all_lists(state: &SellingState) -> sqlx::Result<()> {
    let now = state.clock.now();
    state.waiting.replace(sql::open_shows(&state.pg, MAX_OPEN_LISTS).await?);
    settle(state, now).await?;
    let looked_at = now.plus_ms(-LOOKED_AT_MS);
    for show in sql::due_shows(&state.pg, now, looked_at, MAX_SHOWS_PER_ROUND).await? {
        if let Err(problem) = offers::serve(state, show).await {
            tracing::warn!(?problem, %show, "serving the waiting list of {show} failed");
        }
    }
    Ok(())
}

/// Marks bought offers as taken, and expired ones as lapsed unless they are being paid for.
/// The lock store expires their holds.
async fn settle(state: &SellingState, now: Timestamp) -> sqlx::Result<()> {
    let (taken, lapsed) = (sql::note_taken(&state.pg, now).await?, sql::note_lapsed(&state.pg, now).await?);
    if taken + lapsed > 0 {
        tracing::info!(taken, lapsed, "waiting list offers ended");
    }
    Ok(())
}

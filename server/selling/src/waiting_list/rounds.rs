//! What every replica does for those who wait, once a second. It waits for no mail server: mails go out beside it
//! ([`mails`](super::mails)).

use std::time::Duration;

use domain::time::Timestamp;

use super::{offers, sql};
use crate::SellingState;
use platform::background::Rounds;

/// How often a replica looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A show that some replica has just looked at is left alone this long, milliseconds.
const LOOKED_AT_MS: i64 = 900;
/// Shows looked at in one round; those looked at longest ago come first.
const MAX_SHOWS_PER_ROUND: i64 = 200;
/// Shows with people in line that a replica knows at most.
const MAX_OPEN_LISTS: i64 = 100_000;

/// Runs until the server stops.
pub async fn serve_forever(state: SellingState) {
    let mut rounds = Rounds::every(&state.stop, LOOK_EVERY);
    while rounds.go_on().await {
        if let Err(cause) = round(&state).await {
            tracing::warn!(%cause, "waiting lists could not be looked at");
        }
    }
}

/// One round over all shows with a waiting list.
///
/// # Errors
/// When the database fails. Failures of single shows are logged, and the next round retries.
pub async fn round(state: &SellingState) -> Result<(), sqlx::Error> {
    let now = state.clock.now();
    state.waiting.replace(sql::open_shows(&state.pg, MAX_OPEN_LISTS).await?);
    settle(state, now).await?;
    let looked_at = now.plus_ms(-LOOKED_AT_MS);
    for show in sql::due_shows(&state.pg, now, looked_at, MAX_SHOWS_PER_ROUND).await? {
        if let Err(problem) = offers::serve(state, show).await {
            tracing::warn!(?problem, %show, "those who wait for {show} could not be served");
        }
    }
    Ok(())
}

/// Offers that were bought are taken; those whose time is over have lapsed, unless they are being paid for.
/// The lock store lets their holds go by itself.
async fn settle(state: &SellingState, now: Timestamp) -> Result<(), sqlx::Error> {
    let (taken, lapsed) = (sql::note_taken(&state.pg, now).await?, sql::note_lapsed(&state.pg, now).await?);
    if taken + lapsed > 0 {
        tracing::info!(taken, lapsed, "offers to those who waited came to their end");
    }
    Ok(())
}

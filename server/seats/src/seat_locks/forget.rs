//! Deletes shows that are over from the lock store: their keys have no time to live.

use std::time::Duration;

use uuid::Uuid;

use crate::SeatsState;
use platform::background::PeriodicLoop;

/// Period between two searches for shows that are over.
const SEARCH_EVERY: Duration = Duration::from_secs(3_600);
/// Shows deleted per search, the latest first.
const MAX_PER_SEARCH: i64 = 1_000;

/// Shows that ended a day ago, so that late payments still find them, and at most a month ago, so that some replica ran
/// since.
const PAST_SHOWS: &str = "
    SELECT id FROM shows
    WHERE starts_at BETWEEN now() - interval '30 days' AND now() - interval '1 day'
    ORDER BY starts_at DESC LIMIT $1";

/// Runs until the server stops.
pub async fn forget_forever(state: SeatsState) {
    let mut rounds = PeriodicLoop::every(&state.stop, SEARCH_EVERY);
    while rounds.wait_next().await {
        let over = sqlx::query_scalar::<_, Uuid>(PAST_SHOWS).bind(MAX_PER_SEARCH).fetch_all(&state.pg).await;
        match over {
            Ok(shows) => {
                for show in shows {
                    // At every search again: a visitor who opens such a show loads its map again.
                    if let Err(cause) = state.locks.forget(show).await {
                        tracing::warn!(%cause, "delete a past show from the lock store failed, retrying next round");
                        break;
                    }
                }
            }
            Err(cause) => tracing::warn!(%cause, "read past shows failed"),
        }
    }
}

//! Shows that are over leave the lock store: their keys have no time to live of their own.

use std::time::Duration;

use uuid::Uuid;

use crate::SeatsState;
use platform::background::Rounds;

/// How often we look for shows that are over.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);
/// Shows forgotten in one look, the latest first.
const MAX_PER_LOOK: i64 = 1_000;

/// Over for a day, for the late payments; and for no longer than a month, in which some replica ran.
const OVER: &str = "
    SELECT id FROM shows
    WHERE starts_at BETWEEN now() - interval '30 days' AND now() - interval '1 day'
    ORDER BY starts_at DESC LIMIT $1";

/// Runs until the server stops.
pub async fn forget_forever(state: SeatsState) {
    let mut rounds = Rounds::every(&state.stop, LOOK_EVERY);
    while rounds.go_on().await {
        let over = sqlx::query_scalar::<_, Uuid>(OVER).bind(MAX_PER_LOOK).fetch_all(&state.pg).await;
        match over {
            Ok(shows) => {
                for show in shows {
                    // Again at every look: a visitor who opened a show that is over brought its map back.
                    if let Err(cause) = state.locks.forget(show).await {
                        tracing::warn!(%cause, "shows that are over stay in the lock store until the next look");
                        break;
                    }
                }
            }
            Err(cause) => tracing::warn!(%cause, "could not look for shows that are over"),
        }
    }
}

//! Every replica learns within a second how a show is sold now: it forgets what it has read of it.

use std::collections::HashMap;
use std::time::Duration;

use domain::time::{SECOND_MS, Timestamp};
use uuid::Uuid;

use super::sql;
use crate::BackofficeState;
use http::Problem;
use platform::background::Rounds;
use platform::clock::from_utc;

/// How often replicas look for changes, and so how long one may not know.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How far back they look, milliseconds: longer than the catalogue believes what it has read.
const LOOKED_BACK_MS: i64 = 900 * SECOND_MS;
/// A show is forgotten again for so long after its change, milliseconds: it may have been read just before, and
/// kept just after.
const UNSETTLED_MS: i64 = 5 * SECOND_MS;
/// Changes looked at in one round.
const MAX_CHANGES: i64 = 2_000;

/// Runs until the server stops.
pub async fn follow_forever(state: BackofficeState) {
    let mut known = HashMap::new();
    let mut rounds = Rounds::every(&state.stop, LOOK_EVERY);
    while rounds.go_on().await {
        if let Err(problem) = one_round(&state, &mut known).await {
            tracing::warn!(?problem, "changes of how shows are sold could not be looked for");
        }
    }
}

async fn one_round(state: &BackofficeState, known: &mut HashMap<Uuid, i32>) -> Result<(), Problem> {
    let now: Timestamp = state.clock.now();
    let since = now.plus_ms(-LOOKED_BACK_MS);
    let changes = sql::shows::changed_since(&mut *state.pg.acquire().await?, since, MAX_CHANGES).await?;
    let mut seen = HashMap::with_capacity(changes.len());
    for (show, version, at) in changes {
        let is_new = known.get(&show) != Some(&version);
        if is_new || now.since(from_utc(at)) < UNSETTLED_MS {
            state.catalogue.forget(show).await;
        }
        seen.insert(show, version);
    }
    *known = seen;
    Ok(())
}

//! Applies changed terms of sale on every replica within a second: evicts the changed shows from the catalogue's cache.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::time::{SECOND_MS, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::BackofficeState;
use http::ApiResult;
use platform::background::PeriodicLoop;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Polling interval, and so the maximum delay of a change.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Period of changes that a poll reads, milliseconds: longer than the catalogue's cache lifetime.
const LOOK_BACK_MS: i64 = 900 * SECOND_MS;
/// Period after a change in which every poll evicts the show again, milliseconds: a read before the change may be
/// cached after the first eviction.
const UNSETTLED_MS: i64 = 5 * SECOND_MS;
/// Maximum number of changes per poll.
const MAX_CHANGES: i64 = 2_000;

/// Polls until the server stops.
pub async fn poll_changed_terms_forever(state: BackofficeState) {
    let mut known = HashMap::new();
    let mut rounds = PeriodicLoop::every(&state.stop, POLL_INTERVAL);
    while rounds.wait_next().await {
        if let Err(problem) = poll(&state, &mut known).await {
            tracing::warn!(?problem, "polling for changed terms of sale failed");
        }
    }
}

async fn poll(state: &BackofficeState, known: &mut HashMap<Uuid, i32>) -> ApiResult<()> {
    let now: Timestamp = state.clock.now();
    let since = now.plus_ms(-LOOK_BACK_MS);
    let changes = changed_since(&mut *state.pg.acquire().await?, since).await?;
    let mut seen = HashMap::with_capacity(changes.len());
    for (show, version, at) in changes {
        let is_new = known.get(&show) != Some(&version);
        if is_new || now.since(from_utc(at)) < UNSETTLED_MS {
            state.catalogue.evict(show).await;
        }
        seen.insert(show, version);
    }
    *known = seen;
    Ok(())
}

/// Returns shows whose terms changed since then, the newest first, with version and time.
async fn changed_since(
    connection: &mut PgConnection,
    since: Timestamp,
) -> sqlx::Result<Vec<(Uuid, i32, DateTime<Utc>)>> {
    let sql = "SELECT id, terms_version, terms_at FROM shows WHERE terms_at > $1 ORDER BY terms_at DESC LIMIT $2";
    sqlx::query_as(sql).bind_all((to_utc(since), MAX_CHANGES)).fetch_all(connection).await
}

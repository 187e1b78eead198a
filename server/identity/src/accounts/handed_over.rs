//! Visitors that were handed over to accounts: a guest's cookie no longer gives access to them.
//!
//! Those handed over recently, on any replica, are polled, so that the replay cache of this process returns none of their
//! answers to a guest.

use std::time::Duration;

use domain::time::{SECOND_MS, Timestamp};
use sqlx::PgPool;

use crate::{IdentityState, Visitor};
use http::{ApiResult, Problem};
use platform::background::PeriodicLoop;
use platform::clock::to_utc;
use platform::database::BindAll;

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
            Ok(owners) => state.idempotency.forget_fingerprints(owners, now),
            // Without Postgres there is no sign-in either; the next round reads again.
            Err(cause) => tracing::debug!(%cause, "read the visitors handed over lately failed"),
        }
    }
}

async fn since(pg: &PgPool, since: Timestamp) -> sqlx::Result<Vec<String>> {
    let sql = "SELECT owner FROM account_visitors WHERE joined_at > $1 ORDER BY joined_at DESC LIMIT $2";
    sqlx::query_scalar(sql).bind_all((to_utc(since), MAX_VISITORS)).fetch_all(pg).await
}

/// Returns `true` when the cookie gives access to its visitor; always with a session.
///
/// A visitor that was handed over to an account is accessible only by a session of that account: another person may
/// have set the guest cookie in this browser and kept a copy.
pub async fn is_own_visitor(state: &IdentityState, visitor: &Visitor) -> ApiResult<bool> {
    if visitor.account.is_some() {
        return Ok(true);
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM account_visitors WHERE owner = $1)";
    let is_handed_over: bool = sqlx::query_scalar(sql).bind(&visitor.owner).fetch_one(&state.pg).await?;
    Ok(!is_handed_over)
}

/// Refuses a caller without access to the visitor of their cookie ([`is_own_visitor`]).
///
/// # Errors
/// 404, as for other visitors' bookings; or when the database fails.
pub async fn refuse_handed_over(state: &IdentityState, visitor: &Visitor) -> ApiResult<()> {
    if is_own_visitor(state, visitor).await? { Ok(()) } else { Err(Problem::not_found("booking")) }
}

//! Payments that a gateway did not know when they were voided.
//!
//! The booking is final by then, and the webhook of a charge that arrives late may be lost. So the payment is voided
//! again, with growing pauses: a charge in transit is stopped, and money that was charged is treated as late money.
//! The schedule is in Postgres; a check is leased in the statement that picks it, so that only one replica performs
//! it.

use chrono::{DateTime, Utc};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use futures::StreamExt;
use uuid::Uuid;

use super::{gateway_calls, payment_rows};
use crate::bookings::effects::{self, EffectError};
use crate::bookings::sql;
use crate::{SellingState, outbox};
use payments::{PaymentStatus, VoidAnswer};
use platform::clock::{from_utc, to_utc};
use platform::database::{BindAll, begin_with_lock_timeout};
use platform::telemetry;

/// Times after the answer "unknown" at which the payment is voided again, milliseconds: a minute, ten minutes, an
/// hour, a day.
const CHECK_AFTER_MS: [i64; 4] = [MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS, 24 * 60 * MINUTE_MS];
/// Lease of a check, milliseconds: longer than a gateway may take to answer. A check without an
/// answer is repeated after it.
const LEASE_MS: i64 = 60 * SECOND_MS;
/// Checks of one round; the next round starts within a second.
const MAX_PER_ROUND: i64 = 100;
/// Concurrent checks.
const MAX_CONCURRENT: usize = 4;

#[derive(Clone, Debug, platform::FromRow)]
struct Due {
    booking_id: Uuid,
    gateway: String,
    since: DateTime<Utc>,
    checks: i16,
}

/// Schedules the checks of a payment that the gateway does not know. A repeat changes nothing.
pub(crate) async fn schedule(state: &SellingState, booking: Uuid, gateway: &str) -> sqlx::Result<()> {
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    sqlx::query(
        "INSERT INTO unknown_voids (booking_id, gateway, since, check_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (booking_id, gateway) DO NOTHING",
    )
    .bind_all((booking, gateway, to_utc(now), to_utc(now.plus_ms(CHECK_AFTER_MS[0]))))
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

/// Performs the checks that are due. True if there may be more.
pub(crate) async fn check_due(state: &SellingState) -> sqlx::Result<bool> {
    let due = take(state, state.clock.now()).await?;
    let is_full = due.len() as i64 == MAX_PER_ROUND;
    futures::stream::iter(due)
        .for_each_concurrent(MAX_CONCURRENT, async |due| {
            if let Err(cause) = check(state, &due).await {
                let Due { booking_id, gateway, .. } = &due;
                tracing::warn!(booking = %booking_id, gateway, %cause, "check an unknown payment of {booking_id} failed; it is retried");
            }
        })
        .await;
    Ok(is_full)
}

async fn take(state: &SellingState, now: Timestamp) -> sqlx::Result<Vec<Due>> {
    let sql = "UPDATE unknown_voids waiting SET check_at = $2
               FROM (SELECT booking_id, gateway FROM unknown_voids WHERE check_at <= $1
                     ORDER BY check_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
               WHERE waiting.booking_id = due.booking_id AND waiting.gateway = due.gateway
               RETURNING waiting.booking_id, waiting.gateway, waiting.since, waiting.checks";
    sqlx::query_as(sql).bind_all((to_utc(now), to_utc(now.plus_ms(LEASE_MS)), MAX_PER_ROUND)).fetch_all(&state.pg).await
}

async fn check(state: &SellingState, due: &Due) -> Result<(), EffectError> {
    let booking = due.booking_id;
    let (answer, is_current) = gateway_calls::void_at(state, booking, &due.gateway).await?;
    match answer {
        VoidAnswer::Unknown => return Ok(plan_next(state, due).await?),
        VoidAnswer::Voided => {}
        VoidAnswer::AlreadyCharged(amount) => {
            tracing::warn!(%booking, gateway = due.gateway, %amount, "a payment of {booking} that the gateway had not known was charged");
            if is_current {
                let status = PaymentStatus::Succeeded { amount };
                if effects::record_status(state, booking, &status, None, "reconciler").await? {
                    telemetry::rescued();
                }
            } else {
                send_back(state, booking, &due.gateway).await?;
            }
        }
    }
    forget(state, due).await?;
    Ok(())
}

/// Schedules a refund at a gateway that the booking left and that has its money.
async fn send_back(state: &SellingState, booking: Uuid, gateway: &str) -> Result<(), EffectError> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    payment_rows::reopen_left(&mut tx, booking, gateway, state.clock.now()).await?;
    tx.commit().await?;
    outbox::wake(state);
    Ok(())
}

/// Schedules the next check. After the last one only the daily ledger comparison finds a charge.
async fn plan_next(state: &SellingState, due: &Due) -> sqlx::Result<()> {
    let Some(check_at) = next_check(from_utc(due.since), due.checks, state.clock.now()) else {
        return forget(state, due).await;
    };
    let sql = "UPDATE unknown_voids SET checks = checks + 1, check_at = $4
               WHERE booking_id = $1 AND gateway = $2 AND checks = $3";
    sqlx::query(sql).bind_all((due.booking_id, &due.gateway, due.checks, to_utc(check_at))).execute(&state.pg).await?;
    Ok(())
}

/// Returns the time of the next check after `checks` and the one just made. Checks delayed by an outage stay a minute
/// apart.
fn next_check(since: Timestamp, checks: i16, now: Timestamp) -> Option<Timestamp> {
    let after_ms = CHECK_AFTER_MS.get(usize::try_from(checks).ok()? + 1)?;
    Some(since.plus_ms(*after_ms).max(now.plus_ms(CHECK_AFTER_MS[0])))
}

async fn forget(state: &SellingState, due: &Due) -> sqlx::Result<()> {
    let sql = "DELETE FROM unknown_voids WHERE booking_id = $1 AND gateway = $2 AND checks = $3";
    sqlx::query(sql).bind_all((due.booking_id, &due.gateway, due.checks)).execute(&state.pg).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_payment_is_voided_again_after_ten_minutes_an_hour_and_a_day() {
        let since = Timestamp(1_000);
        let at = |checks, after_ms| next_check(since, checks, since.plus_ms(after_ms)).map(|at| at.since(since));
        assert_eq!(at(0, MINUTE_MS), Some(10 * MINUTE_MS));
        assert_eq!(at(1, 10 * MINUTE_MS), Some(60 * MINUTE_MS));
        assert_eq!(at(2, 60 * MINUTE_MS), Some(24 * 60 * MINUTE_MS));
        assert_eq!(at(3, 24 * 60 * MINUTE_MS), None);
        assert_eq!(at(0, 600 * MINUTE_MS), Some(601 * MINUTE_MS), "a minute later at the earliest");
    }
}

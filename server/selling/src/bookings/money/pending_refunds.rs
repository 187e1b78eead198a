//! Refunds that a gateway has accepted, until they reach the payer or fail (docs/decisions/0059).
//!
//! This may take days. Meanwhile the outbox has no effect for the refund, which would block other effects of its
//! booking: the gateway's webhook settles the refund, and a check every few hours covers a lost webhook. A failed
//! refund, also one that was settled before, is parked for a person, once.

use chrono::{DateTime, Utc};
use domain::booking::Effect;
use domain::money::Money;
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{payment_rows, refunds};
use crate::bookings::effects::EffectError;
use crate::bookings::moves::{self, Cause, MoveError, causes};
use crate::bookings::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use payments::PaymentEventOutcome;
use platform::clock::{from_utc, to_utc};
use platform::database::{BindAll, begin_with_lock_timeout};

/// Interval of checks of a pending refund, milliseconds.
const LOOK_EVERY_MS: i64 = 6 * 60 * MINUTE_MS;
/// A refund that is pending for longer is parked for a person, milliseconds: thirty days. Banks take ten.
const LONGEST_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum failed refunds of one key: each was resent by a person.
const MAX_FAILED_ATTEMPTS: i64 = 100;
/// Refunds checked in one round; the next round starts within a second.
const MAX_PER_ROUND: i64 = 100;

/// A refund that a gateway could not send.
pub(crate) struct FailedRefund<'a> {
    pub(crate) gateway: &'a str,
    /// The gateway's own id of the refund.
    pub(crate) refund: &'a str,
    /// The refund's number in its booking.
    pub(crate) number: u32,
    pub(crate) why: &'a str,
}

/// Records that the gateway has accepted a refund, and schedules the next check.
///
/// # Errors
/// [`EffectError::RefundOverdue`] when it is pending for too long; or the database fails.
pub(crate) async fn schedule_check(state: &SellingState, booking: Uuid, number: u32) -> Result<(), EffectError> {
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    let since: DateTime<Utc> = sqlx::query_scalar(
        "INSERT INTO refund_waits (booking_id, number, since, look_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (booking_id, number) DO UPDATE SET look_at = EXCLUDED.look_at RETURNING since",
    )
    .bind_all((booking, number.cast_signed(), to_utc(now), to_utc(now.plus_ms(LOOK_EVERY_MS))))
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    if from_utc(since).plus_ms(LONGEST_MS) < now {
        return Err(EffectError::RefundOverdue);
    }
    Ok(())
}

/// Ends the pending state of a refund. True if it was pending. A repeat changes nothing.
pub(crate) async fn end_wait(tx: &mut PgConnection, booking: Uuid, number: u32) -> sqlx::Result<bool> {
    let sql = "DELETE FROM refund_waits WHERE booking_id = $1 AND number = $2";
    let waited = sqlx::query(sql).bind_all((booking, number.cast_signed())).execute(tx).await?;
    Ok(waited.rows_affected() == 1)
}

/// Records that a refund reached the payer: it is neither pending nor parked any more. A failed refund stays
/// parked, unless it was sent again and has now arrived. True if it was parked.
pub(crate) async fn mark_received(tx: &mut PgConnection, booking: Uuid, number: u32) -> sqlx::Result<bool> {
    let was_on_its_way = end_wait(tx, booking, number).await?;
    if !was_on_its_way && has_failed(tx, booking, number).await? {
        return Ok(false);
    }
    let was_parked = outbox::unpark_refund(tx, booking, number).await?;
    if was_parked {
        tracing::info!(%booking, number, "a refund of {booking} that waited for a person reached the payer");
    }
    Ok(was_parked)
}

pub(crate) async fn has_failed(tx: &mut PgConnection, booking: Uuid, number: u32) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM refund_failures WHERE booking_id = $1 AND number = $2)";
    sqlx::query_scalar(sql).bind_all((booking, number.cast_signed())).fetch_one(tx).await
}

/// Returns the gateway's ids of this refund's failed attempts. Each was parked for a person.
pub(crate) async fn failed_attempts(
    tx: &mut PgConnection,
    gateway: &str,
    booking: Uuid,
    number: u32,
) -> sqlx::Result<Vec<String>> {
    let sql = "SELECT refund_ref FROM refund_failures WHERE booking_id = $1 AND number = $2 AND gateway = $3
               ORDER BY told_at LIMIT $4";
    sqlx::query_scalar(sql).bind_all((booking, number.cast_signed(), gateway, MAX_FAILED_ATTEMPTS)).fetch_all(tx).await
}

/// Applies a gateway's answer that a refund failed, like its webhook, which may come late or never.
pub(crate) async fn record_failure(
    state: &SellingState,
    booking: Uuid,
    lost: &FailedRefund<'_>,
) -> Result<(), EffectError> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    park_failed(&mut tx, &row, lost, state.clock.now()).await?;
    tx.commit().await?;
    Ok(())
}

/// Applies the answer of a gateway that the booking had left.
pub(crate) async fn record_failure_at_left(
    state: &SellingState,
    booking: Uuid,
    lost: &FailedRefund<'_>,
) -> Result<(), EffectError> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    park_failed_at_left(&mut tx, &row, lost, state.clock.now()).await?;
    tx.commit().await?;
    Ok(())
}

/// Enqueues an effect for each pending refund that is due, so that the relay checks it. A locked booking is skipped
/// until the next round.
pub(crate) async fn enqueue_due_checks(state: &SellingState) -> sqlx::Result<()> {
    let now = state.clock.now();
    let sql = "SELECT booking_id, number FROM refund_waits WHERE look_at <= $1 ORDER BY look_at LIMIT $2";
    let due: Vec<(Uuid, i32)> = sqlx::query_as(sql).bind_all((to_utc(now), MAX_PER_ROUND)).fetch_all(&state.pg).await?;
    for (booking, number) in &due {
        if let Err(cause) = enqueue_check(state, *booking, number.cast_unsigned(), now).await {
            tracing::warn!(%booking, number, %cause, "enqueue the check of a refund of {booking} failed; it is retried");
        }
    }
    if !due.is_empty() {
        outbox::wake(state);
    }
    Ok(())
}

async fn enqueue_check(state: &SellingState, booking: Uuid, number: u32, now: Timestamp) -> sqlx::Result<()> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let Some(row) = sql::lock(&mut tx, booking).await? else { return Ok(()) };
    let taken =
        sqlx::query("UPDATE refund_waits SET look_at = $3 WHERE booking_id = $1 AND number = $2 AND look_at <= $4")
            .bind_all((booking, number.cast_signed(), to_utc(now.plus_ms(LOOK_EVERY_MS)), to_utc(now)))
            .execute(&mut *tx)
            .await?;
    if taken.rows_affected() == 1
        && let Some(effect) = effect_of(&mut tx, &row, number).await?
        && !outbox::contains_effect(&mut tx, booking, effect).await?
    {
        outbox::enqueue(&mut tx, booking, &[effect], now).await?;
    }
    tx.commit().await
}

/// Returns the effect that sends a refund; `None` when there is no such refund.
async fn effect_of(tx: &mut PgConnection, row: &BookingRow, number: u32) -> sqlx::Result<Option<Effect>> {
    let known = refunds::of_booking(tx, row.id).await?;
    let refund = known.into_iter().find(|refund| refund.number.cast_unsigned() == number);
    Ok(refund.map(|refund| {
        let amount = Money::new(refund.amount_minor, row.machine.total.currency);
        if number == 0 { Effect::Refund { amount } } else { Effect::RefundPart { number, amount } }
    }))
}

/// Settles a refund of a locked booking that reached the payer.
pub(crate) async fn settle_arrived(
    tx: &mut PgConnection,
    row: &BookingRow,
    number: u32,
    now: Timestamp,
) -> Result<PaymentEventOutcome, MoveError> {
    let known = refunds::of_booking(tx, row.id).await?;
    let Some(refund) = known.into_iter().find(|refund| refund.number.cast_unsigned() == number) else {
        return Ok(PaymentEventOutcome::Ignored);
    };
    if refund.settled_at.is_some() {
        // A refund that failed after it was settled and was sent again may be parked: it is pending for too long.
        let was_parked = mark_received(tx, row.id, number).await?;
        return Ok(if was_parked { PaymentEventOutcome::Applied } else { PaymentEventOutcome::Ignored });
    }
    refunds::settle(tx, row, number, causes::WEBHOOK, now).await?;
    Ok(PaymentEventOutcome::Applied)
}

/// Parks a failed refund of a locked booking, settled or not, for a person: once, however often the failure is
/// reported.
pub(crate) async fn park_failed(
    tx: &mut PgConnection,
    row: &BookingRow,
    lost: &FailedRefund<'_>,
    now: Timestamp,
) -> Result<PaymentEventOutcome, MoveError> {
    let Some(effect) = effect_of(tx, row, lost.number).await? else {
        tracing::error!(booking = %row.id, gateway = lost.gateway, refund = lost.refund, why = lost.why, "an unknown refund of {} failed at the gateway", row.id);
        return Ok(PaymentEventOutcome::Ignored);
    };
    end_wait(tx, row.id, lost.number).await?;
    park_for_person(tx, row, lost, effect, now).await
}

/// Parks a failed refund at a gateway that the booking had left, and reopens the settlement there.
pub(crate) async fn park_failed_at_left(
    tx: &mut PgConnection,
    row: &BookingRow,
    lost: &FailedRefund<'_>,
    now: Timestamp,
) -> Result<PaymentEventOutcome, MoveError> {
    let outcome = park_for_person(tx, row, lost, Effect::VoidLeft, now).await?;
    if outcome == PaymentEventOutcome::Applied {
        payment_rows::reopen_settlement(tx, row.id, lost.gateway).await?;
    }
    Ok(outcome)
}

async fn park_for_person(
    tx: &mut PgConnection,
    row: &BookingRow,
    lost: &FailedRefund<'_>,
    effect: Effect,
    now: Timestamp,
) -> Result<PaymentEventOutcome, MoveError> {
    let FailedRefund { gateway, refund, number, why } = lost;
    let noted = sqlx::query(
        "INSERT INTO refund_failures (gateway, refund_ref, booking_id, number, why, told_at)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (gateway, refund_ref) DO NOTHING",
    )
    .bind_all((gateway, refund, row.id, number.cast_signed(), why, to_utc(now)))
    .execute(&mut *tx)
    .await?;
    if noted.rows_affected() == 0 {
        return Ok(PaymentEventOutcome::Ignored);
    }
    let words = format!("{gateway} could not send the refund to the payer ({why}), and has the money again.");
    outbox::park(tx, row.id, effect, &words, now).await?;
    moves::note(tx, row, "refund_failed", Cause { actor: "gateway", reason: &words }, now).await?;
    tracing::error!(booking = %row.id, gateway, refund, why, "a refund of {} did not reach the payer and waits for a person", row.id);
    Ok(PaymentEventOutcome::Applied)
}

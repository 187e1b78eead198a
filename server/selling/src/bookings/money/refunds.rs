//! Refunds: one row each, and the gateway call that sends it.
//!
//! A booking has one refund of the rest (number 0) and one of each part that was returned
//! before (from 1). Their sum never exceeds the charge: the state machine's arithmetic, a trigger on
//! `refunds`, and the gateway enforce this.

use chrono::{DateTime, Utc};
use domain::booking::BookingEvent;
use domain::money::Money;
use domain::seats::sort_for_display;
use domain::till::Means;
use domain::time::Timestamp;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::gateway_calls;
use super::pending_refunds::{self, FailedRefund};
use crate::bookings::effects::EffectError;
use crate::bookings::moves::{self, Cause, MoveError};
use crate::bookings::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use payments::RefundAnswer;
use platform::clock::to_utc;
use platform::database::{BindAll, begin_with_lock_timeout};

/// Maximum moves of money from booking to booking: bounds a recursive query, far above real use.
const MAX_MOVES: i32 = 1_000;

#[derive(Clone, Debug, platform::FromRow)]
pub(crate) struct RefundRow {
    pub(crate) number: i32,
    pub(crate) amount_minor: i64,
    pub(crate) fee_minor: i64,
    pub(crate) requested_at: DateTime<Utc>,
    pub(crate) settled_at: Option<DateTime<Utc>>,
    /// True if the gateway could not send it, and no person has decided about it yet.
    pub(crate) came_back: bool,
    /// Labels of its seats; empty for a refund of the rest.
    pub(crate) seats: Vec<String>,
}

/// Returns the number of the next part of a booking, which the caller has locked.
pub(crate) async fn next_number(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<u32> {
    let sql = "SELECT coalesce(max(number), 0) + 1 FROM refunds WHERE booking_id = $1";
    let next: i32 = sqlx::query_scalar(sql).bind(booking).fetch_one(tx).await?;
    Ok(next.cast_unsigned())
}

/// Writes a refund and the fee that is kept of the price. A repeat changes nothing.
pub(crate) async fn request(
    tx: &mut PgConnection,
    booking: Uuid,
    number: u32,
    (amount, fee): (Money, i64),
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "INSERT INTO refunds (booking_id, number, amount_minor, fee_minor, state, requested_at)
               VALUES ($1, $2, $3, $4, 'requested', $5) ON CONFLICT (booking_id, number) DO NOTHING";
    sqlx::query(sql).bind_all((booking, number.cast_signed(), amount.minor, fee, to_utc(now))).execute(tx).await?;
    Ok(())
}

pub(crate) async fn of_booking(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Vec<RefundRow>> {
    let sql = "SELECT refund.number, refund.amount_minor, refund.fee_minor, refund.requested_at, refund.settled_at,
                EXISTS (SELECT 1 FROM refund_failures failure
                        WHERE failure.booking_id = refund.booking_id AND failure.number = refund.number) AS came_back,
                ARRAY(SELECT label FROM returned_seats seat
                      WHERE seat.booking_id = refund.booking_id AND seat.number = refund.number
                      ORDER BY seat.seat_no) AS seats
         FROM refunds refund WHERE refund.booking_id = $1 ORDER BY refund.requested_at, refund.number";
    let mut refunds: Vec<RefundRow> = sqlx::query_as(sql).bind(booking).fetch_all(&mut *tx).await?;
    if refunds.iter().any(|refund| refund.came_back) {
        // A refund that a person resent, or paid in another way, counts as received by the payer.
        let parked = outbox::parked_refunds(tx, booking).await?;
        refunds.iter_mut().for_each(|refund| refund.came_back &= parked.contains(&refund.number));
    }
    refunds.iter_mut().for_each(|refund| sort_for_display(&mut refund.seats, String::as_str));
    Ok(refunds)
}

/// Checks for partial refunds of this booking. With them, a gateway's webhook about "the refund" may
/// mean any of them, and only the answer to our own call counts.
pub(crate) async fn has_parts(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM refunds WHERE booking_id = $1 AND number > 0)";
    sqlx::query_scalar(sql).bind(booking).fetch_one(tx).await
}

/// Returns the booking under whose key the gateway knows the money: another booking, where the payment was too late
/// for that one or its seats were exchanged, and its money pays for this one.
async fn first_charged_booking(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Uuid> {
    // Repeated exchanges move the money more than once: the gateway knows the first booking.
    sqlx::query_scalar(
        "WITH RECURSIVE owed (booking, steps) AS (
             SELECT $1::uuid, 0
             UNION ALL
             SELECT payment.booking_id, owed.steps + 1 FROM payments payment JOIN owed ON payment.moved_to = owed.booking
             WHERE owed.steps < $2)
         SELECT booking FROM owed ORDER BY steps DESC LIMIT 1",
    )
    .bind_all((booking, MAX_MOVES))
    .fetch_one(tx)
    .await
}

/// Returns the means of a payment at the counter; `None` for a gateway payment or no payment. Money that pays for
/// another booking keeps its means.
pub(crate) async fn paid_at_counter(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<Means>> {
    let sql = "SELECT gateway FROM payments WHERE booking_id = $1";
    let gateway: Option<String> = sqlx::query_scalar(sql).bind(booking).fetch_optional(tx).await?;
    Ok(gateway.and_then(|gateway| Means::parse_gateway_name(&gateway)))
}

/// Records that the gateway charged another amount than requested; all of it may be refunded.
pub(crate) async fn note_charged(tx: &mut PgConnection, booking: Uuid, amount: Money) -> sqlx::Result<()> {
    let sql = "UPDATE payments SET charged_minor = $2 WHERE booking_id = $1 AND amount_minor <> $2";
    sqlx::query(sql).bind_all((booking, amount.minor)).execute(tx).await.map(drop)
}

/// Sends a refund: an effect, performed at least once. A settled refund is not sent again.
pub(crate) async fn perform(
    state: &SellingState,
    row: &BookingRow,
    number: u32,
    amount: Money,
) -> Result<(), EffectError> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    // In the lock order of every other writer: the booking, then its payment.
    sql::lock(&mut tx, row.id).await?.ok_or(EffectError::NoBooking(row.id))?;
    if amount.minor > 0 && paid_at_counter(&mut tx, row.id).await?.is_some() {
        // It was paid out at the counter, or waits there for the customer: no gateway is involved. A refund of zero
        // is settled below, since no customer fetches it.
        return Ok(());
    }
    let known = of_booking(&mut tx, row.id).await?;
    let was_settled = known.iter().any(|refund| refund.number.cast_unsigned() == number && refund.settled_at.is_some());
    // A refund that failed after it was settled is resent when a person decides so.
    if was_settled && !pending_refunds::has_failed(&mut tx, row.id, number).await? {
        pending_refunds::end_wait(&mut tx, row.id, number).await?;
        tx.commit().await?;
        return Ok(());
    }
    // A settled refund has its row. Once the rest of the money pays for another booking, the trigger refuses to write
    // it again.
    if !was_settled {
        if number == 0 {
            sql::note_refund(&mut tx, row.id, "requested", Some(amount.minor), state.clock.now()).await?;
        }
        request(&mut tx, row.id, number, (amount, 0), state.clock.now()).await.map_err(above_charge)?;
    }
    let charged = first_charged_booking(&mut tx, row.id).await?;
    tx.commit().await?;
    if amount.minor > 0 {
        let (gateway, answer) = gateway_calls::refund(state, (row.id, number), charged, amount).await?;
        match answer {
            RefundAnswer::Settled => {}
            RefundAnswer::Pending => return pending_refunds::schedule_check(state, row.id, number).await,
            RefundAnswer::Failed { refund, why } => {
                let lost = FailedRefund { gateway: &gateway, refund: &refund, number, why: &why };
                return pending_refunds::record_failure(state, row.id, &lost).await;
            }
        }
    }
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, row.id).await?.ok_or(EffectError::NoBooking(row.id))?;
    let cause = if amount.minor > 0 {
        Cause { actor: "gateway", reason: "The gateway acknowledged the refund." }
    } else {
        Cause { actor: "system", reason: "There was nothing to pay back." }
    };
    settle(&mut tx, &row, number, cause, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Maps the check violation of the trigger on `refunds`, which limits the sum to the charge.
fn above_charge(cause: sqlx::Error) -> EffectError {
    if is_above_charge(&cause) { EffectError::AboveCharge } else { cause.into() }
}

fn is_above_charge(cause: &sqlx::Error) -> bool {
    matches!(cause, sqlx::Error::Database(refused) if refused.is_check_violation())
}

/// As [`request`], for a refund that a person paid: `false`, and nothing is written, where the refunds would exceed
/// the charge.
pub(crate) async fn request_within_charge(
    tx: &mut PgConnection,
    booking: Uuid,
    number: u32,
    amount: Money,
    now: Timestamp,
) -> sqlx::Result<bool> {
    // A savepoint, so that the caller's transaction continues after a violation.
    let mut attempt = tx.begin().await?;
    match request(&mut attempt, booking, number, (amount, 0), now).await {
        Ok(()) => attempt.commit().await.map(|()| true),
        Err(cause) if is_above_charge(&cause) => attempt.rollback().await.map(|()| false),
        Err(cause) => Err(cause),
    }
}

/// Records that a refund of a locked booking reached the payer. A repeat changes nothing.
pub(crate) async fn settle(
    tx: &mut PgConnection,
    row: &BookingRow,
    number: u32,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), MoveError> {
    let first = mark_settled(tx, row.id, number, now).await?;
    if number > 0 {
        if first {
            moves::note(tx, row, "part_refund_settled", cause, now).await?;
        }
        return Ok(());
    }
    settle_uncounted(tx, row, cause, now).await
}

/// Settles the refund of the rest of a booking that has no row of it.
pub(crate) async fn settle_uncounted(
    tx: &mut PgConnection,
    row: &BookingRow,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), MoveError> {
    match moves::apply(tx, row, BookingEvent::RefundSettled, cause, now).await {
        // The gateway's webhook was faster than its answer.
        Ok(_) | Err(MoveError::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Settles a refund in the payment tables only, and unparks it. True if it was not settled
/// before.
pub(crate) async fn mark_settled(
    tx: &mut PgConnection,
    booking: Uuid,
    number: u32,
    now: Timestamp,
) -> sqlx::Result<bool> {
    pending_refunds::mark_received(tx, booking, number).await?;
    if number == 0 {
        sql::note_refund(tx, booking, "settled", None, now).await?;
    }
    let sql = "UPDATE refunds SET state = 'settled', settled_at = $3
               WHERE booking_id = $1 AND number = $2 AND state = 'requested'";
    let settled = sqlx::query(sql).bind_all((booking, number.cast_signed(), to_utc(now))).execute(tx).await?;
    Ok(settled.rows_affected() == 1)
}

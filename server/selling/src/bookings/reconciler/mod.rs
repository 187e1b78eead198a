//! Finds unfinished bookings and finishes them: any replica, no leader.
//!
//! - held and not paid in time: expired, its seats freed;
//! - paid and neither sold nor refunded: settled, as the request would have done without a crash;
//! - refunded and not settled for hours: the relay asks for the state of the refund (`money::pending_refunds`);
//! - being paid without news for a while: the gateway is asked. While it does not answer, it is asked at
//!   growing intervals ([`backoff`]), and nothing is decided: the outcome is unknown;
//! - voided at a gateway that did not know the payment: voided again for a day (`money::unknown_voids`).
//!
//! No work is done twice: an unpaid booking is locked or skipped, and a call to a
//! gateway is recorded before it is made, in the statement that picks it.

mod backoff;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use domain::booking::{BookingEvent, BookingState};
use domain::time::{SECOND_MS, Timestamp};
use futures::StreamExt;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use self::backoff::Backoffs;
use super::effects::{self, EffectError};
use super::money::{gateway_calls, pending_refunds, unknown_voids};
use super::moves::{self, Cause};
use super::sql;
use crate::{SellingState, outbox};
use payments::PaymentStatus;
use platform::background::PeriodicLoop;
use platform::clock::{from_utc, to_utc};
use platform::database::{BindAll, begin_with_lock_timeout};
use platform::{ids, telemetry};

/// Interval of rounds for due bookings.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time without news after which the gateway of a pending payment is asked. The target is to settle it within a minute:
/// this leaves time to ask three times.
const ASK_AFTER_MS: i64 = 20 * SECOND_MS;
/// The same for an expired booking: longer than a gateway may take to answer, so that the call
/// of another replica is not repeated while it waits.
const ASK_OVERDUE_AFTER_MS: i64 = 12 * SECOND_MS;
/// Time after which a paid booking counts as left behind by a crash: normally it is settled in the step that records
/// the payment.
const LEFT_BEHIND_AFTER_MS: i64 = 5 * SECOND_MS;
/// Bookings that each watch processes concurrently; all watches together take fewer than the default connections.
const MAX_CONCURRENT: usize = 4;
/// Bookings processed in one round. The next follows at once while there are more.
const MAX_PER_ROUND: usize = 100;

/// The kinds of due work. Separate, because a gateway that hangs or a locked row must not keep seats from being freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// Bookings that are finished without a gateway.
    DueBookings,
    /// Payments without news, whose state only a gateway has.
    SilentPayments,
    /// Payments of final bookings that a gateway did not know.
    UnknownVoids,
    /// Refunds that a gateway accepted hours ago.
    PendingRefunds,
}

/// Makes a payment due for the reconciler when its buyer returns from the gateway's page: the next replica asks for
/// its state within a second, instead of waiting for a webhook that may be late. However often the page is loaded,
/// the gateway is asked once per round.
///
/// # Errors
/// When the database fails; then the payment is asked about in its turn.
pub async fn make_payment_due(state: &SellingState, booking: Uuid) -> sqlx::Result<()> {
    mark_due(&state.pg, booking, state.clock.now().plus_ms(-ASK_AFTER_MS)).await
}

/// Runs until the server stops.
pub async fn reconcile_forever(state: SellingState) {
    let backoffs = Mutex::default();
    tokio::join!(
        watch(&state, Watch::DueBookings, &backoffs),
        watch(&state, Watch::SilentPayments, &backoffs),
        watch(&state, Watch::UnknownVoids, &backoffs),
        watch(&state, Watch::PendingRefunds, &backoffs)
    );
}

async fn watch(state: &SellingState, what: Watch, backoffs: &Mutex<Backoffs>) {
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    let mut was_full = false;
    while !state.stop.is_cancelled() {
        if !was_full && !rounds.wait_next().await {
            return;
        }
        let is_full = match what {
            Watch::DueBookings => settle_due_bookings(state).await,
            Watch::SilentPayments => ask_gateways(state, backoffs).await,
            Watch::UnknownVoids => unknown_voids::check_due(state).await,
            Watch::PendingRefunds => pending_refunds::enqueue_due_checks(state).await.map(|()| false),
        };
        was_full = is_full.unwrap_or_else(|cause| {
            tracing::warn!(%cause, ?what, "read due bookings failed");
            false
        });
    }
}

/// Finishes due bookings without calling a gateway. True if there may be more.
async fn settle_due_bookings(state: &SellingState) -> sqlx::Result<bool> {
    let now = state.clock.now();
    let due = due_bookings(&state.pg, now, now.plus_ms(-LEFT_BEHIND_AFTER_MS), MAX_PER_ROUND).await?;
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let is_full = due.len() == MAX_PER_ROUND;
    futures::stream::iter(due)
        .for_each_concurrent(MAX_CONCURRENT, async |booking| {
            if let Err(cause) = settle(state, booking).await {
                failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tracing::warn!(%booking, %cause, "settle booking {booking} failed; it is retried");
            }
        })
        .await;
    // Failed bookings would be found again at once: the next round waits a second instead.
    Ok(is_full && failures.into_inner() == 0)
}

/// Moves a due booking, unless another transaction has it locked.
async fn settle(state: &SellingState, booking: Uuid) -> Result<(), EffectError> {
    effects::load_show_of(state, booking).await?;
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    if !try_lock_booking(&mut tx, booking).await? {
        return Ok(());
    }
    let row = sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    match row.machine.state {
        BookingState::Created | BookingState::SeatsLocked => {
            effects::move_by_gateway(state, &mut tx, &row, BookingEvent::TimedOut, TIMED_OUT, None, now).await?;
        }
        BookingState::PaymentSucceeded => {
            let show = state.catalogue.find_show(row.show_id).await?;
            moves::settle(&mut tx, &row, show.starts_at <= now, now).await?;
            tracing::warn!(%booking, "booking {booking} was paid and left behind; the reconciler settles it");
        }
        // Another transaction was faster.
        _ => return Ok(()),
    }
    tx.commit().await?;
    if row.machine.state == BookingState::PaymentSucceeded {
        telemetry::rescued();
    }
    outbox::wake(state);
    Ok(())
}

const TIMED_OUT: Cause<'static> = Cause { actor: "reconciler", reason: "Its time was over." };

/// Asks gateways about payments without news. True if there may be more.
async fn ask_gateways(state: &SellingState, backoffs: &Mutex<Backoffs>) -> sqlx::Result<bool> {
    let now = state.clock.now();
    let (failing, ready) = {
        let backoffs = backoffs.lock().unwrap_or_else(PoisonError::into_inner);
        (backoffs.failing(), backoffs.ready(Instant::now()))
    };
    let since = SilenceThresholds { pending: now.plus_ms(-ASK_AFTER_MS), overdue: now.plus_ms(-ASK_OVERDUE_AFTER_MS) };
    let mut due = take_silent_payments(&state.pg, now, since, GatewayFilter::AllBut(&failing), MAX_PER_ROUND).await?;
    let is_full = due.len() == MAX_PER_ROUND;
    for gateway in &ready {
        // One call probes if the gateway is back.
        due.extend(take_silent_payments(&state.pg, now, since, GatewayFilter::Only(gateway), 1).await?);
    }
    // Concurrently: one slow answer of a gateway must not delay the others.
    futures::stream::iter(due)
        .for_each_concurrent(MAX_CONCURRENT, async |payment| {
            if let Err(cause) = check_payment(state, &payment, backoffs).await {
                let booking = payment.booking;
                tracing::warn!(%booking, %cause, "settle booking {booking} failed; it is retried");
            }
        })
        .await;
    Ok(is_full)
}

/// Reads a payment at its gateway, and records its outcome.
async fn check_payment(
    state: &SellingState,
    payment: &SilentPayment,
    backoffs: &Mutex<Backoffs>,
) -> Result<(), EffectError> {
    if payment.amount_minor == 0 {
        // No gateway knows it, so it says nothing about its gateway.
        return time_out(state, payment.booking).await;
    }
    if state.gateways.find(&payment.gateway).is_none() {
        tracing::error!(booking = %payment.booking, gateway = payment.gateway, "a payment is pending at a gateway that is not configured");
        return Ok(());
    }
    let record_answer = |answered: bool| {
        let mut backoffs = backoffs.lock().unwrap_or_else(PoisonError::into_inner);
        if answered {
            backoffs.answered(&payment.gateway);
        } else {
            backoffs.failed(&payment.gateway, Instant::now(), ids::jitter);
        }
    };
    // Picked before the gateway's first failure in this round: it is skipped now and picked again later.
    if backoffs.lock().unwrap_or_else(PoisonError::into_inner).is_backing_off(&payment.gateway, Instant::now()) {
        return Ok(());
    }
    let answer = gateway_calls::status(state, payment.booking).await;
    record_answer(answer.is_ok());
    match answer? {
        Some(known) if !matches!(known.status, PaymentStatus::Pending { .. }) => {
            let (status, gateway_ref) = (&known.status, Some(known.gateway_ref.as_str()));
            let has_moved = effects::record_status(state, payment.booking, status, gateway_ref, "reconciler").await?;
            // A faster webhook may have moved it. The webhook of a payment that was made due early may still arrive.
            let is_silent = from_utc(payment.pending_since) <= state.clock.now().plus_ms(-ASK_AFTER_MS);
            if has_moved && is_silent && matches!(status, PaymentStatus::Succeeded { .. }) {
                telemetry::rescued();
            }
            Ok(())
        }
        _ => time_out(state, payment.booking).await,
    }
}

/// Expires a booking if it is overdue: the gateway reports that the payment is still undecided.
async fn time_out(state: &SellingState, booking: Uuid) -> Result<(), EffectError> {
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    if effects::move_by_gateway(state, &mut tx, &row, BookingEvent::TimedOut, TIMED_OUT, None, now).await? {
        tx.commit().await?;
        outbox::wake(state);
    }
    Ok(())
}

/// Returns the bookings that only wait for time to pass: held and not paid in time, or paid before `left_behind` and
/// neither sold nor refunded since.
async fn due_bookings(pg: &PgPool, now: Timestamp, left_behind: Timestamp, limit: usize) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT id FROM bookings
               WHERE is_open AND ((state IN ('CREATED', 'SEATS_LOCKED') AND expires_at <= $1)
                                  OR (state = 'PAYMENT_SUCCEEDED' AND updated_at <= $2))
               ORDER BY expires_at LIMIT $3";
    sqlx::query_scalar(sql).bind_all((to_utc(now), to_utc(left_behind), limit as i64)).fetch_all(pg).await
}

/// Tries to lock the booking; `false` when another transaction has it locked.
async fn try_lock_booking(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT id FROM bookings WHERE id = $1 FOR UPDATE SKIP LOCKED";
    let taken: Option<Uuid> = sqlx::query_scalar(sql).bind(id).fetch_optional(tx).await?;
    Ok(taken.is_some())
}

/// A payment whose gateway is to be asked.
#[derive(Clone, Debug, platform::FromRow)]
struct SilentPayment {
    booking: Uuid,
    gateway: String,
    amount_minor: i64,
    /// Time of the booking's last change, since which it has waited for the payment.
    pending_since: DateTime<Utc>,
}

/// Thresholds: payments without news since these times are picked.
#[derive(Clone, Copy, Debug)]
struct SilenceThresholds {
    /// For a booking that has not expired.
    pending: Timestamp,
    /// For an expired booking.
    overdue: Timestamp,
}

#[derive(Clone, Copy, Debug)]
enum GatewayFilter<'a> {
    /// All but these.
    AllBut(&'a [String]),
    /// Only this one.
    Only(&'a str),
}

/// Takes pending payments without recent news, and marks them as asked: no other replica
/// takes them until as much time has passed again. The longest silent come first.
async fn take_silent_payments(
    pg: &PgPool,
    now: Timestamp,
    since: SilenceThresholds,
    of: GatewayFilter<'_>,
    limit: usize,
) -> sqlx::Result<Vec<SilentPayment>> {
    let (but, only) = match of {
        GatewayFilter::AllBut(gateways) => (gateways, None),
        GatewayFilter::Only(gateway) => (&[][..], Some(gateway)),
    };
    sqlx::query_as(
        "UPDATE payments payment SET updated_at = $1
         FROM (SELECT unheard.booking_id, unheard.gateway, booking.updated_at AS pending_since
               FROM payments unheard JOIN bookings booking ON booking.id = unheard.booking_id
               WHERE booking.is_open AND booking.state = 'PAYMENT_PENDING'
                 AND (unheard.updated_at <= $2 OR (booking.expires_at <= $1 AND unheard.updated_at <= $3))
                 AND (unheard.gateway <> ALL($4) OR unheard.amount_minor = 0)
                 AND ($5::text IS NULL OR (unheard.gateway = $5 AND unheard.amount_minor > 0))
               ORDER BY unheard.updated_at LIMIT $6
               FOR UPDATE OF unheard SKIP LOCKED) taken
         WHERE payment.booking_id = taken.booking_id AND payment.gateway = taken.gateway
         RETURNING payment.booking_id AS booking, payment.gateway, payment.amount_minor, taken.pending_since",
    )
    .bind_all((to_utc(now), to_utc(since.pending), to_utc(since.overdue), but, only, limit as i64))
    .fetch_all(pg)
    .await
}

/// Marks a pending payment as having no news since `unheard_since`.
async fn mark_due(pg: &PgPool, booking: Uuid, unheard_since: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE payments SET updated_at = $2 WHERE booking_id = $1 AND updated_at > $2";
    sqlx::query(sql).bind_all((booking, to_utc(unheard_since))).execute(pg).await.map(drop)
}

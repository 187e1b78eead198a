//! Applies gateway webhooks, each once.

use std::time::Duration;

use domain::booking::BookingEvent;
use domain::money::Money;
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;

use super::payment_rows::{self, GatewayRole};
use super::pending_refunds::{self, FailedRefund};
use super::{declines, refunds};
use crate::bookings::checkout::create::move_problem;
use crate::bookings::checkout::instruments::InstrumentDigest;
use crate::bookings::commits::{Done, Work, retry_deadlocks};
use crate::bookings::effects::{self, EffectError};
use crate::bookings::moves::{Cause, causes};
use crate::bookings::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use http::{ApiResult, Problem};
use payments::{PaymentEvent, PaymentEventKind, PaymentEventOutcome};
use platform::housekeeping;

/// Applies a gateway's verified event. Its id and outcome are written in the transaction of its effect.
///
/// # Errors
/// When the database or the lock store fails; the gateway repeats the webhook.
pub async fn apply_webhook(state: &SellingState, news: PaymentEvent) -> ApiResult<PaymentEventOutcome> {
    // Most webhooks report a success and are batched; the others are rare.
    if !matches!(news.kind, PaymentEventKind::Succeeded { .. }) {
        // Boxed, so that batched webhooks need no room for a transaction of their own.
        return Box::pin(retry_deadlocks(|| apply_alone(state, &news, None))).await;
    }
    match state.commits.ask(state, Work::ApplyWebhook(news)).await? {
        Done::WebhookApplied(outcome) => Ok(outcome),
        other => Err(Problem::internal(&format!("a webhook returned {other:?}"))),
    }
}

/// Applies a webhook in its own transaction. `instrument`: the card of a payment that succeeded, where it is known only
/// now.
pub(crate) async fn apply_alone(
    state: &SellingState,
    news: &PaymentEvent,
    instrument: Option<&InstrumentDigest>,
) -> ApiResult<PaymentEventOutcome> {
    let now = state.clock.now();
    let mut connection = state.pg.acquire().await?;
    // The usual duplicate costs one query and waits for no lock.
    if payment_rows::is_noted(&mut connection, news.gateway, &news.event_id).await? {
        return Ok(PaymentEventOutcome::Duplicate);
    }
    drop(connection);
    effects::load_show_of(state, news.booking).await?;
    let mut tx = state.pg.begin().await?;
    let outcome = match sql::lock(&mut tx, news.booking).await? {
        // A booking of another region, which shares the account at the gateway and gets this event too.
        None if state.catalogue.has_regions() => {
            tracing::warn!(booking = %news.booking, gateway = news.gateway, event = news.event_id, "event of a booking that is not in this region");
            return Ok(PaymentEventOutcome::Ignored);
        }
        None => PaymentEventOutcome::Unknown,
        Some(row) => match payment_rows::gateway_role(&mut tx, news.booking, news.gateway).await? {
            GatewayRole::Unrelated => PaymentEventOutcome::Unknown,
            GatewayRole::Left => from_gateway_left(&mut tx, &row, news, now).await?,
            GatewayRole::Current => apply(state, &mut tx, &row, news, instrument, now).await?,
        },
    };
    if !payment_rows::note_event(&mut tx, news.gateway, &news.event_id, outcome, now).await? {
        // A concurrent duplicate was faster. The work of this one is rolled back.
        return Ok(PaymentEventOutcome::Duplicate);
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(outcome)
}

async fn apply(
    state: &SellingState,
    tx: &mut PgConnection,
    row: &BookingRow,
    news: &PaymentEvent,
    instrument: Option<&InstrumentDigest>,
    now: Timestamp,
) -> ApiResult<PaymentEventOutcome> {
    let default_reason = causes::WEBHOOK.reason.to_owned();
    let (event, noted, reason) = match &news.kind {
        PaymentEventKind::Succeeded { amount } if *amount != row.machine.total => {
            let reason = amount_mismatch_reason(row.machine.total, *amount);
            (BookingEvent::PaymentSucceeded { amount: *amount }, Some("succeeded"), reason)
        }
        PaymentEventKind::Succeeded { amount } => {
            (BookingEvent::PaymentSucceeded { amount: *amount }, Some("succeeded"), default_reason)
        }
        PaymentEventKind::Failed { why: Some(why) } => {
            (BookingEvent::PaymentFailed, Some("failed"), causes::format_gateway_refusal(why))
        }
        PaymentEventKind::Failed { why: None } => (BookingEvent::PaymentFailed, Some("failed"), default_reason),
        PaymentEventKind::Voided => (BookingEvent::PaymentVoided, Some("voided"), default_reason),
        PaymentEventKind::RefundSettled { number: None } => (BookingEvent::RefundSettled, None, default_reason),
        PaymentEventKind::RefundSettled { number: Some(number) } => {
            return pending_refunds::settle_arrived(tx, row, *number, now).await.map_err(move_problem);
        }
        PaymentEventKind::RefundFailed { refund, number, why } => {
            let lost = FailedRefund { gateway: news.gateway, refund, number: number.unwrap_or(0), why };
            return pending_refunds::park_failed(tx, row, &lost, now).await.map_err(move_problem);
        }
    };
    if matches!(news.kind, PaymentEventKind::RefundSettled { .. }) && refunds::has_parts(tx, news.booking).await? {
        return Ok(PaymentEventOutcome::Ignored);
    }
    let cause = Cause { actor: "gateway", reason: &reason };
    let moved = match effects::move_by_gateway(state, tx, row, event, cause, instrument, now).await {
        Ok(moved) => moved,
        Err(EffectError::Store(problem)) => return Err(problem),
        Err(EffectError::Database(cause)) => return Err(cause.into()),
        Err(other) => return Err(Problem::internal(&other)),
    };
    if !moved {
        return Ok(PaymentEventOutcome::Ignored);
    }
    if let PaymentEventKind::Failed { why } = &news.kind {
        declines::record(tx, row, why.as_deref(), false, now).await?;
    }
    // Only from a success: until then the reference is the one in the gateway's answer.
    let gateway_ref = news.gateway_ref.as_deref().filter(|_| matches!(news.kind, PaymentEventKind::Succeeded { .. }));
    match noted {
        Some(noted) => sql::note_payment(tx, news.booking, noted, gateway_ref, None, now).await?,
        None => drop(refunds::mark_settled(tx, news.booking, 0, now).await?),
    }
    Ok(PaymentEventOutcome::Applied)
}

/// Applies a webhook of a gateway that the booking left. Money there is refunded; other events are ignored.
async fn from_gateway_left(
    tx: &mut PgConnection,
    row: &BookingRow,
    news: &PaymentEvent,
    now: Timestamp,
) -> ApiResult<PaymentEventOutcome> {
    if let PaymentEventKind::RefundFailed { refund, why, .. } = &news.kind {
        let lost = FailedRefund { gateway: news.gateway, refund, number: 0, why };
        return pending_refunds::park_failed_at_left(tx, row, &lost, now).await.map_err(move_problem);
    }
    let PaymentEventKind::Succeeded { amount } = news.kind else { return Ok(PaymentEventOutcome::Ignored) };
    tracing::error!(booking = %news.booking, gateway = news.gateway, %amount, "a gateway that {} had left has charged it", news.booking);
    payment_rows::reopen_left(tx, news.booking, news.gateway, now).await?;
    Ok(PaymentEventOutcome::SentBack)
}

/// Interval of purges: a day, because the table has no index by age.
const PURGE_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// Retention of events, milliseconds: 90 days. Gateways repeat an event for days, and on request for weeks.
const KEPT_MS: i64 = 90 * 24 * 60 * MINUTE_MS;
/// Maximum number of events deleted in one statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 10_000;

/// Deletes old events until the server stops.
pub async fn purge_forever(state: SellingState) {
    let delete = |limit| payment_rows::delete_events(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "webhook events", MAX_AT_ONCE, delete).await;
}

/// Returns the history's reason for a charged amount that differs from the agreed one.
pub(crate) fn amount_mismatch_reason(agreed: Money, taken: Money) -> String {
    format!("The gateway took {taken} where {agreed} was agreed; it goes back.")
}

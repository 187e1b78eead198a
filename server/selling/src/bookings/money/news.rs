//! Applies gateway webhooks, each once.

use domain::booking::Event;
use domain::money::Money;
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::payment_rows::{self, GatewayRole};
use super::pending_refunds::{self, FailedRefund};
use super::{declines, refunds};
use crate::bookings::checkout::create::unmoved;
use crate::bookings::checkout::instruments::PaidWith;
use crate::bookings::commits::{Done, Work, retried};
use crate::bookings::effects::{self, EffectError};
use crate::bookings::moves::{Cause, causes};
use crate::bookings::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use http::Problem;
use payments::{NewsKind, NewsOutcome, PaymentNews};

/// Applies a gateway's verified event. Its id and outcome are written in the transaction of its effect.
///
/// # Errors
/// When the database or the lock store fails; the gateway repeats the webhook.
pub async fn payment_news(state: &SellingState, news: PaymentNews) -> Result<NewsOutcome, Problem> {
    // Most webhooks report a success and are batched; the others are rare.
    if !matches!(news.kind, NewsKind::Succeeded { .. }) {
        // Boxed, so that batched webhooks need no room for a transaction of their own.
        return Box::pin(retried(|| apply_one(state, &news))).await;
    }
    match state.commits.ask(state, Work::ApplyWebhook(news)).await? {
        Done::WebhookApplied(outcome) => Ok(outcome),
        other => Err(Problem::internal(&format!("a webhook came to {other:?}"))),
    }
}

/// Applies one webhook in a separate transaction.
pub(in crate::bookings) async fn apply_one(state: &SellingState, news: &PaymentNews) -> Result<NewsOutcome, Problem> {
    let now = state.clock.now();
    let mut connection = state.pg.acquire().await?;
    // The usual duplicate costs one query and waits for no lock.
    if payment_rows::is_noted(&mut connection, news.gateway, &news.event_id).await? {
        return Ok(NewsOutcome::Duplicate);
    }
    drop(connection);
    let instrument = match (effects::load_show_of(state, news.booking).await?, &news.kind) {
        (Some(show), NewsKind::Succeeded { .. }) => PaidWith::of_payment(state, &show, news.booking).await?,
        _ => None,
    };
    let mut tx = state.pg.begin().await?;
    let outcome = match sql::lock(&mut tx, news.booking).await? {
        None => NewsOutcome::Unknown,
        Some(row) => match payment_rows::gateway_role(&mut tx, news.booking, news.gateway).await? {
            GatewayRole::Stranger => NewsOutcome::Unknown,
            GatewayRole::Left => from_gateway_left(&mut tx, &row, news, now).await?,
            GatewayRole::Current => apply(state, &mut tx, &row, news, instrument.as_ref(), now).await?,
        },
    };
    if !payment_rows::note_event(&mut tx, news.gateway, &news.event_id, outcome, now).await? {
        // A concurrent duplicate was faster. The work of this one is rolled back.
        return Ok(NewsOutcome::Duplicate);
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(outcome)
}

async fn apply(
    state: &SellingState,
    tx: &mut PgConnection,
    row: &BookingRow,
    news: &PaymentNews,
    instrument: Option<&PaidWith>,
    now: Timestamp,
) -> Result<NewsOutcome, Problem> {
    let default_reason = causes::WEBHOOK.reason.to_owned();
    let (event, noted, reason) = match &news.kind {
        NewsKind::Succeeded { amount } if *amount != row.machine.total => {
            let reason = another_amount(row.machine.total, *amount);
            (Event::PaymentSucceeded { amount: *amount }, Some("succeeded"), reason)
        }
        NewsKind::Succeeded { amount } => {
            (Event::PaymentSucceeded { amount: *amount }, Some("succeeded"), default_reason)
        }
        NewsKind::Failed { why: Some(why) } => (Event::PaymentFailed, Some("failed"), causes::said_no(why)),
        NewsKind::Failed { why: None } => (Event::PaymentFailed, Some("failed"), default_reason),
        NewsKind::Voided => (Event::PaymentVoided, Some("voided"), default_reason),
        NewsKind::RefundSettled { number: None } => (Event::RefundSettled, None, default_reason),
        NewsKind::RefundSettled { number: Some(number) } => {
            return pending_refunds::settle_arrived(tx, row, *number, now).await.map_err(unmoved);
        }
        NewsKind::RefundFailed { refund, number, why } => {
            let lost = FailedRefund { gateway: news.gateway, refund, number: number.unwrap_or(0), why };
            return pending_refunds::park_failed(tx, row, &lost, now).await.map_err(unmoved);
        }
    };
    if matches!(news.kind, NewsKind::RefundSettled { .. }) && refunds::has_parts(tx, news.booking).await? {
        return Ok(NewsOutcome::Ignored);
    }
    let cause = Cause { actor: "gateway", reason: &reason };
    let moved = match effects::move_by_gateway(state, tx, row, event, cause, instrument, now).await {
        Ok(moved) => moved,
        Err(EffectError::Store(problem)) => return Err(problem),
        Err(EffectError::Database(cause)) => return Err(cause.into()),
        Err(other) => return Err(Problem::internal(&other)),
    };
    if !moved {
        return Ok(NewsOutcome::Ignored);
    }
    if let NewsKind::Failed { why } = &news.kind {
        declines::note(tx, row, why.as_deref(), now).await?;
    }
    // Only from a success: until then the reference is the one in the gateway's answer.
    let gateway_ref = news.gateway_ref.as_deref().filter(|_| matches!(news.kind, NewsKind::Succeeded { .. }));
    match noted {
        Some(noted) => sql::note_payment(tx, news.booking, noted, gateway_ref, None, now).await?,
        None => drop(refunds::mark_settled(tx, news.booking, 0, now).await?),
    }
    Ok(NewsOutcome::Applied)
}

/// Applies a webhook of a gateway that the booking left. Money there is refunded; other events are ignored.
async fn from_gateway_left(
    tx: &mut PgConnection,
    row: &BookingRow,
    news: &PaymentNews,
    now: Timestamp,
) -> Result<NewsOutcome, Problem> {
    if let NewsKind::RefundFailed { refund, why, .. } = &news.kind {
        let lost = FailedRefund { gateway: news.gateway, refund, number: 0, why };
        return pending_refunds::park_failed_at_left(tx, row, &lost, now).await.map_err(unmoved);
    }
    let NewsKind::Succeeded { amount } = news.kind else { return Ok(NewsOutcome::Ignored) };
    tracing::error!(booking = %news.booking, gateway = news.gateway, %amount, "a gateway that {} had left has charged it", news.booking);
    payment_rows::reopen_left(tx, news.booking, news.gateway, now).await?;
    Ok(NewsOutcome::SentBack)
}

/// Returns the history's reason for a charged amount that differs from the agreed one.
pub(in crate::bookings) fn another_amount(agreed: Money, taken: Money) -> String {
    format!("The gateway took {taken} where {agreed} was agreed; it goes back.")
}

//! What a gateway tells us by webhook, applied once.

use domain::booking::Event;

use super::commits::{CommitMode, Done, Work, retried};
use super::moves::causes;
use super::{effects, refunds, sql};
use crate::payments::{NewsKind, NewsOutcome, PaymentNews};
use crate::web::Problem;
use crate::{AppState, outbox};

/// Applies a gateway's verified event: its id is noted in the transaction of its effect.
///
/// # Errors
/// When the database or the lock store fails; the gateway sends it again.
pub async fn payment_news(state: &AppState, news: PaymentNews) -> Result<NewsOutcome, Problem> {
    // Paid is what most of them say; the rest needs no crowd.
    if state.config.commits == CommitMode::Interactive || !matches!(news.kind, NewsKind::Succeeded { .. }) {
        return retried(|| hear_one(state, &news)).await;
    }
    match state.commits.ask(state, Work::Hear(news)).await? {
        Done::Heard(outcome) => Ok(outcome),
        other => Err(Problem::internal(&format!("a webhook came to {other:?}"))),
    }
}

/// The same in a transaction of its own.
pub(super) async fn hear_one(state: &AppState, news: &PaymentNews) -> Result<NewsOutcome, Problem> {
    let now = state.locks.now();
    effects::load_show_of(state, news.booking).await?;
    let mut tx = state.pg.begin().await?;
    let Some(row) = sql::lock(&mut tx, news.booking).await? else { return Ok(NewsOutcome::Unknown) };
    if sql::payment_of(&mut tx, news.booking).await?.is_none() {
        return Ok(NewsOutcome::Unknown);
    }
    if !sql::first_time(&mut tx, news.gateway, &news.event_id, now).await? {
        return Ok(NewsOutcome::Duplicate);
    }
    let (event, noted) = match news.kind {
        NewsKind::Succeeded { amount } => (Event::PaymentSucceeded { amount }, Some("succeeded")),
        NewsKind::Failed => (Event::PaymentFailed, Some("failed")),
        NewsKind::Voided => (Event::PaymentVoided, Some("voided")),
        NewsKind::RefundSettled => (Event::RefundSettled, None),
    };
    if news.kind == NewsKind::RefundSettled && refunds::has_parts(&mut tx, news.booking).await? {
        tx.commit().await?;
        return Ok(NewsOutcome::Ignored);
    }
    let moved = effects::move_by_gateway(state, &mut tx, &row, event, causes::WEBHOOK, now).await?;
    if moved {
        match noted {
            Some(noted) => sql::note_payment(&mut tx, news.booking, noted, None, None, now).await?,
            None => drop(refunds::mark_settled(&mut tx, news.booking, 0, now).await?),
        }
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(if moved { NewsOutcome::Applied } else { NewsOutcome::Ignored })
}

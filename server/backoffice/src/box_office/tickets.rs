//! Prints tickets, the first time and again. Each print is recorded in the audit list: paper copies can be given to two
//! people.

use axum::http::StatusCode;
use domain::api::box_office::PrintedTicket;
use uuid::Uuid;

use super::{CounterStaff, find};
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};

/// Returns the tickets of a booking for printing.
///
/// # Errors
/// 404 for another theatre's booking, 409 when it has no valid tickets.
pub async fn print(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let view = find::by_id(state, counter, booking).await?;
    let list = tickets::of_booking(&state.pg, booking).await?;
    if list.is_empty() || view.state != domain::booking::BookingState::Confirmed {
        return Err(Problem::new(Code::WrongState, "This booking has no tickets, or not any more."));
    }
    let list: Vec<PrintedTicket> = list
        .into_iter()
        .map(|ticket| PrintedTicket { label: ticket.label, category: ticket.category, code: ticket.code })
        .collect();
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let subject = format!("booking {}", view.reference);
    let words = format!("{} tickets.", list.len());
    counter.record(&mut tx, "tickets_printed", subject, &words, now).await?;
    let answer = Answer::json(StatusCode::OK, &list)?;
    intent.commit(tx, answer, now).await
}

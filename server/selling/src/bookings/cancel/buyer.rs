//! Cancellation by the buyer, of a whole booking or of some seats.

use axum::http::StatusCode;
use domain::api::cancelling::CancelRequest;
use uuid::Uuid;

use super::{Canceller, undo, undo_seats, unmoved};
use crate::bookings::moves::Cause;
use crate::bookings::seat_offers;
use crate::bookings::sql;
use crate::bookings::views::view;
use crate::{SellingState, outbox};
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};

/// Cancels the caller's booking. Returns its new state.
pub(crate) async fn cancel(
    state: &SellingState,
    owner: &str,
    booking: Uuid,
    request: &CancelRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let (_, show) = view::owned(state, owner, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    if show.is_called_off() {
        // It is undone in full in a moment; charging a fee to a faster buyer would be unfair.
        return Err(Problem::new(
            Code::SalesClosed,
            "This show will not take place. The full price is being refunded; you do not need to do anything.",
        ));
    }

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    if seat_offers::is_offered(&mut tx, booking).await? {
        let words = "The show has moved, and you may choose: take the other seats, or have all of your money back.";
        return Err(Problem::new(Code::WrongState, words));
    }
    let seats: Option<Vec<i32>> =
        request.seats.as_ref().map(|seats| seats.iter().map(|seat| seat.cast_signed()).collect());
    if tickets::has_admissions(&mut tx, booking, seats.as_deref()).await? {
        return Err(Problem::new(
            Code::WrongState,
            "Someone has already come in with these tickets: they cannot be cancelled. The box office may help.",
        ));
    }
    let by = Canceller::Buyer { show_starts_at: show.starts_at };
    let words = "The buyer cancelled.";
    let undone = match &request.seats {
        Some(seats) => undo_seats(&mut tx, &row, seats, by, words, now).await?,
        None => undo(&mut tx, &row, by, Cause { actor: "buyer", reason: words }, now).await.map_err(unmoved)?,
    };
    let booking = view::of_row(&mut tx, &show, &undone).await?;
    let answer = Answer::json(StatusCode::OK, &booking)?;
    let answer = intent.commit(tx, answer, now).await?;
    outbox::wake(state);
    Ok(answer)
}

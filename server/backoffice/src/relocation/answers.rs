//! What buyers say to other places: yes, or the money back. A buyer who does not answer in time gets the money back.

use axum::http::StatusCode;
use domain::api::moving::{SeatOffer, SeatOfferAnswer};
use domain::booking::{BookingState, Event};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, OfferRow};
use crate::bookings::cancel::{self, undo_in_full};
use crate::bookings::moves::{self, Cause};
use crate::bookings::sql as bookings;
use crate::bookings::views::view;
use crate::catalogue::Show;
use crate::clock::from_utc;
use crate::idempotency::{Answer, Intent};
use crate::web::{Code, Problem};
use crate::{AppState, outbox, tickets};

/// Bookings whose time is over, ended in one round.
const MAX_DUE: i64 = 256;

/// What is offered to the buyer of a booking, if anything is.
pub(in crate::bookings) async fn offer(
    tx: &mut PgConnection,
    show: &Show,
    booking: Uuid,
) -> Result<Option<SeatOffer>, sqlx::Error> {
    let offer = sql::offer_of(tx, booking).await?;
    Ok(offer.map(|offer| {
        let until = from_utc(offer.answer_until);
        SeatOffer {
            from: offer.from_name,
            to: offer.to_name,
            reason: offer.reason,
            before: offer.before,
            after: offer.after,
            until_ms: until.0,
            until_local: show.local_iso(until),
        }
    }))
}

/// Whether the buyer of a booking may still answer.
pub(in crate::bookings) async fn is_offered(tx: &mut PgConnection, booking: Uuid) -> Result<bool, sqlx::Error> {
    sql::is_offered(tx, booking).await
}

/// Takes the caller's answer. The booking as it stands then.
pub(in crate::bookings) async fn answer(
    state: &AppState,
    owner: &str,
    booking: Uuid,
    request: &SeatOfferAnswer,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.locks.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let (_, show) = view::owned(state, owner, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let row = bookings::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let offer = sql::lock_offer(&mut tx, booking).await?.filter(|offer| from_utc(offer.answer_until) > now);
    let Some(offer) = offer.filter(|_| row.machine.state == BookingState::Confirmed) else {
        let words = "There is nothing to answer, or not any more. The page of your booking says how it stands.";
        return Err(Problem::new(Code::WrongState, words));
    };
    let after = if request.take {
        sql::answered(&mut tx, offer.move_id, booking, "taken", now).await?;
        let words = format!("The buyer takes {}.", offer.after.join(", "));
        moves::apply(&mut tx, &row, Event::Relocated, Cause::of("buyer", &words), now).await.map_err(cancel::unmoved)?
    } else {
        if tickets::in_use(&mut tx, booking, None).await? {
            let words = "Somebody came in with these tickets already. The box office may help.";
            return Err(Problem::new(Code::WrongState, words));
        }
        sql::answered(&mut tx, offer.move_id, booking, "declined", now).await?;
        let words = "You wanted your money back rather than other seats.";
        undo_in_full(&mut tx, &row, Cause::of("buyer", words), now).await?
    };
    let seen = view::of_row(&mut tx, &show, &after).await?;
    let answer = Answer::json(StatusCode::OK, &seen)?;
    let answer = intent.commit(tx, answer, now).await?;
    outbox::wake(state);
    Ok(answer)
}

/// Ends offers that were not answered in time: all of the money goes back.
pub(super) async fn end_due(state: &AppState) -> Result<(), Problem> {
    let now = state.locks.now();
    for booking in sql::due_offers(&state.pg, now, MAX_DUE).await? {
        if let Err(problem) = end(state, booking, now).await {
            tracing::warn!(?problem, %booking, "the offer to {booking} ends in the next round");
        }
    }
    Ok(())
}

async fn end(state: &AppState, booking: Uuid, now: Timestamp) -> Result<(), Problem> {
    let mut tx = state.pg.begin().await?;
    let Some(row) = bookings::lock(&mut tx, booking).await? else { return Ok(()) };
    let offer = sql::lock_offer(&mut tx, booking).await?;
    let Some(OfferRow { move_id, .. }) = offer.filter(|offer| from_utc(offer.answer_until) <= now) else {
        return Ok(());
    };
    let stands = row.machine.state == BookingState::Confirmed;
    // Someone who was let in with the ticket has accepted the place.
    let is_in_use = stands && tickets::in_use(&mut tx, booking, None).await?;
    sql::answered(&mut tx, move_id, booking, if is_in_use { "taken" } else { "lapsed" }, now).await?;
    if stands && !is_in_use {
        let words = "The show moved to another screen, and we heard nothing from you about the other seats.";
        undo_in_full(&mut tx, &row, Cause::of("system", words), now).await?;
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(())
}

//! The offer of other seats to the buyer of a booking whose show moved: the buyer accepts, or is refunded. A buyer
//! who does not answer in time is refunded. Table `moved_bookings`; a move writes its offers
//! (`backoffice::relocation`).

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::api::moving::{SeatOffer, SeatOfferAnswer};
use domain::booking::{BookingEvent, BookingState};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::cancel::{self, undo_in_full};
use super::moves::{self, Cause};
use super::sql;
use super::views::view;
use crate::{SellingState, outbox};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Expired offers ended in one round.
const MAX_DUE: i64 = 256;

pub(super) async fn offer(tx: &mut PgConnection, show: &Show, booking: Uuid) -> sqlx::Result<Option<SeatOffer>> {
    let offer = offer_of(tx, booking).await?;
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

pub(super) async fn is_offered(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM moved_bookings WHERE booking_id = $1 AND state = 'offered')";
    sqlx::query_scalar(sql).bind(booking).fetch_one(tx).await
}

/// Applies the caller's answer. Returns the booking in its new state.
pub(super) async fn answer(
    state: &SellingState,
    owner: &str,
    booking: Uuid,
    request: &SeatOfferAnswer,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let (_, show) = view::owned(state, owner, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let offer = lock_offer(&mut tx, booking).await?.filter(|offer| from_utc(offer.answer_until) > now);
    let Some(offer) = offer.filter(|_| row.machine.state == BookingState::Confirmed) else {
        let words = "There is nothing to answer, or not any more. The page of your booking says how it stands.";
        return Err(Problem::new(Code::WrongState, words));
    };
    let after = if request.take {
        close_offer(&mut tx, offer.move_id, booking, "taken", now).await?;
        let words = format!("The buyer takes {}.", offer.after.join(", "));
        moves::apply(&mut tx, &row, BookingEvent::Relocated, Cause::of("buyer", &words), now)
            .await
            .map_err(cancel::cancellation_problem)?
    } else {
        if tickets::has_admissions(&mut tx, booking, None).await? {
            let words = "Someone has already come in with these tickets. The box office may help.";
            return Err(Problem::new(Code::WrongState, words));
        }
        close_offer(&mut tx, offer.move_id, booking, "declined", now).await?;
        let words = "You chose a refund rather than other seats.";
        undo_in_full(&mut tx, &row, Cause::of("buyer", words), now).await?
    };
    let seen = view::of_row(&mut tx, &show, &after).await?;
    let answer = Answer::json(StatusCode::OK, &seen)?;
    let answer = intent.commit(tx, answer, now).await?;
    outbox::wake(state);
    Ok(answer)
}

/// Ends offers that were not answered in time: the bookings are refunded in full.
///
/// # Errors
/// When the database fails.
pub async fn end_due_seat_offers(state: &SellingState) -> ApiResult<()> {
    let now = state.clock.now();
    for booking in due_offers(&state.pg, now, MAX_DUE).await? {
        if let Err(problem) = end_offer(state, booking, now).await {
            tracing::warn!(?problem, %booking, "end the offer to {booking} failed; the next round retries it");
        }
    }
    Ok(())
}

async fn end_offer(state: &SellingState, booking: Uuid, now: Timestamp) -> ApiResult<()> {
    let mut tx = state.pg.begin().await?;
    let Some(row) = sql::lock(&mut tx, booking).await? else { return Ok(()) };
    let offer = lock_offer(&mut tx, booking).await?;
    let Some(OfferRow { move_id, .. }) = offer.filter(|offer| from_utc(offer.answer_until) <= now) else {
        return Ok(());
    };
    let is_confirmed = row.machine.state == BookingState::Confirmed;
    // A visitor who was admitted with the ticket has accepted the place.
    let is_in_use = is_confirmed && tickets::has_admissions(&mut tx, booking, None).await?;
    close_offer(&mut tx, move_id, booking, if is_in_use { "taken" } else { "lapsed" }, now).await?;
    if is_confirmed && !is_in_use {
        let words = "The show moved to another screen, and we heard nothing from you about the other seats.";
        undo_in_full(&mut tx, &row, Cause::of("system", words), now).await?;
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(())
}

/// An offer of other places to the buyer of a booking.
#[derive(platform::FromRow)]
struct OfferRow {
    move_id: Uuid,
    before: Vec<String>,
    after: Vec<String>,
    answer_until: DateTime<Utc>,
    reason: String,
    from_name: String,
    to_name: String,
}

macro_rules! offers {
    ($end:literal) => {
        concat!(
            "SELECT moved.move_id, moved.before, moved.after, moved.answer_until, move.reason,
                    (SELECT name FROM screens WHERE id = move.from_screen) AS from_name,
                    (SELECT name FROM screens WHERE id = move.to_screen) AS to_name
             FROM moved_bookings moved JOIN show_moves move ON move.id = moved.move_id
             WHERE moved.booking_id = $1 AND moved.state = 'offered'",
            $end
        )
    };
}

async fn offer_of(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<OfferRow>> {
    sqlx::query_as(offers!("")).bind(booking).fetch_optional(tx).await
}

/// Returns the offer to a booking, locked; the booking is locked already.
async fn lock_offer(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<OfferRow>> {
    sqlx::query_as(offers!(" FOR UPDATE OF moved")).bind(booking).fetch_optional(tx).await
}

/// Closes the offer as `taken`, `declined` or `lapsed`.
async fn close_offer(
    tx: &mut PgConnection,
    move_id: Uuid,
    booking: Uuid,
    how: &str,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE moved_bookings SET state = $3, answered_at = $4
               WHERE move_id = $1 AND booking_id = $2 AND state = 'offered'";
    let done = sqlx::query(sql).bind_all((move_id, booking, how, to_utc(now))).execute(tx).await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Returns bookings whose offers were not answered in time, or that have ended already.
async fn due_offers(pg: &PgPool, now: Timestamp, limit: i64) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT booking_id FROM moved_bookings WHERE state = 'offered' AND answer_until <= $1
               ORDER BY answer_until LIMIT $2";
    sqlx::query_scalar(sql).bind_all((to_utc(now), limit)).fetch_all(pg).await
}

//! Paying: the hold is extended, claims are written, and only then the gateway is asked.

use std::sync::Arc;

use axum::http::StatusCode;
use domain::api::ConfirmRequest;
use domain::booking::{BookingState, Event, PAYMENT_EXTENSION_MS};
use domain::seats::SeatState;
use domain::time::Timestamp;
use uuid::Uuid;

use super::create::unmoved;
use super::moves::{self, Cause};
use super::sql::{self, BookingRow};
use super::{checks, claims, effects, view};
use crate::catalogue::Show;
use crate::idempotency::{Answer, Intent};
use crate::seat_locks::with_map;
use crate::web::{Code, Problem};
use crate::{AppState, holds, outbox};

/// Pays for a booking. The answer says how it stands: confirmed, or pending with the gateway's page.
pub(super) async fn confirm(
    state: &AppState,
    owner: &str,
    booking: Uuid,
    request: &ConfirmRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    if let Some(answer) = intent.replay(&state.pg, state.locks.now()).await? {
        return Ok(answer);
    }
    let mut connection = state.pg.acquire().await?;
    let row = sql::find_owned(&mut connection, booking, owner).await?.ok_or_else(|| Problem::not_found("booking"))?;
    drop(connection);
    let show = state.catalogue.known_show(row.show_id).await?;

    match row.machine.state {
        BookingState::Created | BookingState::SeatsLocked => {}
        // A second tab or a second key: it is paid, or being paid, once.
        BookingState::PaymentPending | BookingState::PaymentSucceeded | BookingState::Confirmed => {
            return answer_as_it_stands(state, &show, booking, intent, Key::New).await;
        }
        BookingState::Cancelled | BookingState::Expired => {
            return Err(unmoved(moves::MoveError::Refused(domain::booking::Refused::Gone)));
        }
    }
    check_token(request)?;
    let until = checks::before_charge(state, &show, &row).await?;
    match submit(state, &show, booking, request, until, intent).await {
        Ok(None) => charge_and_answer(state, show, booking, intent).await,
        Ok(Some(answer)) => Ok(answer),
        Err(problem) => {
            give_up_payment(state, &show, &row).await;
            Err(problem)
        }
    }
}

/// Goes on when the buyer's connection does not: the answer is stored, and a retry finds it.
async fn charge_and_answer(
    state: &AppState,
    show: Arc<Show>,
    booking: Uuid,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let (state, intent) = (state.clone(), intent.clone());
    let tasks = state.tasks.clone();
    let rest = tasks.spawn(async move {
        // The charge has its row in the outbox: should we die here, the relay asks in our place.
        effects::charge_now(&state, booking).await;
        answer_as_it_stands(&state, &show, booking, &intent, Key::OursSinceSubmit).await
    });
    rest.await.map_err(|cause| Problem::internal(&cause))?
}

/// Nothing was submitted, so the hold is its owner's to change again; unless somebody else's request
/// for the same booking was, meanwhile.
pub(super) async fn give_up_payment(state: &AppState, show: &Show, row: &BookingRow) {
    let booking = row.id;
    let undone = async {
        let mut tx = state.pg.begin().await?;
        let still_open =
            sql::lock(&mut tx, booking).await?.is_some_and(|now| now.machine.state == BookingState::SeatsLocked);
        if still_open {
            state.locks.end_payment(show.id, &row.sale(), PAYMENT_EXTENSION_MS).await?;
        }
        tx.commit().await?;
        Ok::<(), Problem>(())
    };
    if let Err(problem) = undone.await {
        tracing::warn!(?problem, %booking, "the hold of {booking} stays closed until it expires");
    }
}

/// Longest payment token, bytes.
const MAX_TOKEN_BYTES: usize = 255;

fn check_token(request: &ConfirmRequest) -> Result<(), Problem> {
    let Some(token) = &request.payment_token else { return Ok(()) };
    if token.is_empty() || token.len() > MAX_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::new(
            Code::Malformed,
            "A payment_token is 1 to 255 visible ASCII characters, from the gateway.",
        ));
    }
    Ok(())
}

/// Key, move, claims, payment and the wish to charge, in one transaction. `Some`: a twin was faster.
async fn submit(
    state: &AppState,
    show: &Show,
    booking: Uuid,
    request: &ConfirmRequest,
    until: Timestamp,
    intent: &Intent,
) -> Result<Option<Answer>, Problem> {
    let now = state.locks.now();
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(Some(answer));
    }
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let cause = Cause { actor: "buyer", reason: "Pressed Pay while the hold was alive." };
    let pending = match moves::apply(&mut tx, &row, Event::PaymentSubmitted { until }, cause, now).await {
        Ok(pending) => pending,
        Err(moves::MoveError::Refused(domain::booking::Refused::AlreadyDone)) => {
            // Another key was faster by a hair. This one is not kept pending; it is answered as it stands.
            tx.rollback().await?;
            return answer_as_it_stands(state, show, booking, intent, Key::New).await.map(Some);
        }
        Err(error) => return Err(unmoved(error)),
    };
    let lost = claims::claim(&mut tx, &pending, now).await?;
    if !lost.is_empty() {
        // Redis had lost a lock and granted the seat twice. The map learns whose it is; this hold keeps
        // its other seats.
        let others = claims::holders(&mut tx, show.id, &lost).await?;
        tx.rollback().await?;
        for sale in &others {
            with_map(state, show, || state.locks.book(show.id, sale)).await?;
        }
        let taken: Vec<_> = lost.into_iter().map(|seat| (seat, SeatState::Booked)).collect();
        return Err(holds::seats_problem(show, &taken));
    }
    sql::insert_payment(&mut tx, &pending, state.gateways.first_choice(), request.payment_token.as_deref(), now)
        .await?;
    tx.commit().await?;
    Ok(None)
}

/// How far the request's key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// Nobody has claimed it, as far as we know.
    New,
    /// `submit` claimed it for this very request.
    OursSinceSubmit,
}

/// The booking as it stands, stored as the answer of this key.
async fn answer_as_it_stands(
    state: &AppState,
    show: &Show,
    booking: Uuid,
    intent: &Intent,
    key: Key,
) -> Result<Answer, Problem> {
    let now = state.locks.now();
    let mut tx = state.pg.begin().await?;
    if key == Key::New
        && let Some(answer) = intent.begin(&mut tx, now).await?
    {
        return Ok(answer);
    }
    let row = sql::find(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let booking = view::of_row(&mut tx, show, &row).await?;
    let answer = Answer::json(StatusCode::OK, &booking)?;
    intent.complete(&mut tx, &answer, now).await?;
    tx.commit().await?;
    outbox::wake(state);
    Ok(answer)
}

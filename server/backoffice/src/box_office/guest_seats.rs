//! House seats given to a guest: a seller holds them without their ever being on sale.
//!
//! Two steps. First Postgres stops keeping the seats for the house; the map still shows them as kept, so no other
//! request can take them. Then one call to the lock store turns them into the seller's hold (`LockAttempt::takes_kept`), a
//! hold like any other. If that call is refused or fails, the map is rebuilt from Postgres: the seats are on sale, and
//! the seller gets an error that says so.
//!
//! The idempotency key in Postgres covers the first step. The lock store stores the same key for the second step and
//! returns the same hold again. A retry therefore continues after the last completed step (docs/decisions/0058).

use std::sync::Arc;

use axum::http::StatusCode;
use domain::api::box_office::GuestSeats;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

use super::house_seats::{follow, kept_among, known_seats, labels, lock_unmoved, write};
use super::{CounterStaff, find};
use crate::BackofficeState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::reason_of;
use platform::ids;
use seats::seat_locks::{LockAttempt, Refusal, RequestIdentity, Selection, StoredHold, with_map};
use selling::holds;

/// Holds house seats for the seller; all or none.
///
/// # Errors
/// 404 for another theatre's show. 400 for an invalid request. 409 for seats the house does not keep, when the seller
/// holds other seats of the show, or when sales are closed. After the first step also every refusal of the lock store.
pub(super) async fn take(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    request: &GuestSeats,
    intent: &Intent,
) -> ApiResult<Answer> {
    let was_released = intent.replay(&state.pg, state.clock.now()).await?.is_some();
    let show = find::show_here(state, counter, show).await?;
    let seats = known_seats(&show, &request.seats, MAX_SEATS_PER_HOLD)?;
    let reason = reason_of(&request.reason)?;
    let owner = counter.staff.session.owner.clone();
    let id = ids::derived_id(&["guest", &owner, &show.id.to_string(), intent.key()]);
    let asked = RequestIdentity { id, digest: intent.digest() };
    let attempt = LockAttempt { asked, owner, selection: Selection::of_seats(seats), takes_kept: true };
    if !was_released {
        check_hold(state, &show, &attempt).await?;
        release_from_house(state, counter, &show, (&attempt.selection.seats, reason), intent).await?;
    }
    match hold(state, &show, &attempt).await {
        Ok(held) => {
            if !was_released {
                state.hold_tally.granted(show.id);
            }
            Answer::json(StatusCode::CREATED, &holds::view(&show, &held, None))
        }
        Err(refused) => Err(explain_failed_hold(state, &show, &attempt.selection.seats, refused).await),
    }
}

/// Checks the conditions of the hold before the seats are released from the house.
async fn check_hold(state: &BackofficeState, show: &Show, attempt: &LockAttempt) -> ApiResult<()> {
    catalogue::on_sale(show, state.clock.now())?;
    if attempt.selection.seats.len() > show.per_person {
        return Err(holds::refusal_problem(show, &Refusal::Limit(show.per_person as u32)));
    }
    let own = with_map(state, show, || state.locks.hold_of(show.id, &attempt.owner)).await?;
    match own.filter(|held| held.hold != attempt.asked.id) {
        Some(other) => Err(holds::refusal_problem(show, &Refusal::OtherHold(other.hold))),
        None => Ok(()),
    }
}

/// Releases these seats from the house in Postgres; all or none. The map still shows them as kept, so no other request
/// can take them yet.
async fn release_from_house(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: &Show,
    (seats, reason): (&[SeatIndex], &str),
    intent: &Intent,
) -> ApiResult<()> {
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    if intent.begin(&mut tx, now).await?.is_some() {
        return Ok(());
    }
    lock_unmoved(&mut tx, show).await?;
    let (_, others) = kept_among(&mut tx, show.id, seats).await?;
    if !others.is_empty() {
        let detail = format!("{}: not kept by the house (any more).", labels(show, &others));
        return Err(Problem::new(Code::WrongState, detail));
    }
    write(&mut tx, show.id, seats, false, (reason, counter.account()), now).await?;
    let words = format!("{}: {reason}", labels(show, seats));
    counter.record(&mut tx, "house_seats_taken", format!("show {}", show.id), &words, now).await?;
    intent.complete(&mut tx, &Answer::no_content(), now).await?;
    tx.commit().await?;
    Ok(())
}

/// Turns released seats into the seller's hold, unless the house keeps them again. The row lock prevents changes of
/// house seats until the lock store has answered.
async fn hold(state: &BackofficeState, show: &Arc<Show>, attempt: &LockAttempt) -> ApiResult<StoredHold> {
    // A missing map is loaded here: loading takes a connection, which the transaction must not wait for.
    with_map(state, show, || state.locks.snapshot(show.id)).await?;
    // Added before the call: a hold that is granted without an answer must expire as well.
    state.watched.add(show.id);
    let mut tx = state.pg.begin().await?;
    let (kept_again, _) = kept_among(&mut tx, show.id, &attempt.selection.seats).await?;
    let attempt = LockAttempt { takes_kept: kept_again.is_empty(), ..attempt.clone() };
    let outcome = state.locks.lock(show.id, holds::terms(state, show), std::slice::from_ref(&attempt)).await;
    // The transaction wrote nothing: it only held the row lock.
    let _ends_either_way = tx.rollback().await;
    let answer = outcome?.pop().ok_or_else(|| Problem::internal(&"an attempt without an answer"))?;
    answer.map_err(|refusal| match refusal {
        Refusal::Taken(_) if !kept_again.is_empty() => {
            let detail = format!("{}: kept by the house again since.", labels(show, &kept_again));
            Problem::new(Code::WrongState, detail)
        }
        other => holds::refusal_problem(show, &other),
    })
}

/// Corrects the map and adds the state of the seats to the problem.
async fn explain_failed_hold(state: &BackofficeState, show: &Show, seats: &[SeatIndex], refused: Problem) -> Problem {
    if let Err(problem) = follow(state, show.id, seats).await {
        let why = problem.detail();
        tracing::warn!(why, show = %show.id, "correcting the house seats of {} on the map failed", show.id);
        return refused.with_sentence(
            "The house no longer keeps these seats, but the map may not show it yet. Send the same request again.",
        );
    }
    if refused.code() == Code::WrongState {
        return refused;
    }
    refused.with_sentence("The house no longer keeps these seats: those that are still free are on sale.")
}

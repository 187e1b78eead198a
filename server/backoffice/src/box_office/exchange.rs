//! Exchanges a sold booking for other seats and books the difference in price into or out of the till, in one
//! transaction.

use axum::http::StatusCode;
use domain::api::box_office::{CounterBooking, ExchangeRequest};
use domain::booking::BookingState;
use domain::till::{Means, TillEntryKind};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CounterStaff, find, tills};
use crate::BackofficeState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::{self, reason_of};
use identity::audit;
use seats::seat_locks::StoredHold;
use selling::bookings::{self, CounterSale, CounterSaleError, Exchanged, ExchangedBooking};
use selling::outbox;

/// An exchange, validated, with its approval.
struct ExchangeOrder<'a> {
    /// The booking that ends.
    given: ExchangedBooking,
    /// The show of the new seats.
    show: &'a Show,
    /// The seller's hold of the new seats, closed.
    held: &'a StoredHold,
    /// Price of the new seats quoted to the customer, minor units.
    quoted_minor: i64,
    reason: &'a str,
    /// The manager who approved the exchange.
    manager: Option<Uuid>,
}

/// Exchanges a booking for the seats the seller holds, in the same show or another of the theatre. If the new seats
/// cost less, a manager approves the refund with their PIN. If the booking's show has begun, a manager approves the
/// exchange.
///
/// # Errors
/// 404 for another theatre's booking or show. 409 when the booking is not sold, a ticket of it was used, or a refund of
/// it is pending; when a price differs from the quoted one; when it was paid online and the new seats cost more; or
/// when no till is open for the difference or it holds too little cash. 410 when the hold has expired. 422 for a wrong
/// PIN, and for a refund or a show that has begun without the PIN of a manager. 429 after too many attempts.
pub(super) async fn exchange(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    request: &ExchangeRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    if let Some(answer) = intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    match exchange_once(state, counter, booking, request, intent).await {
        Ok(answer) => Ok(answer),
        // A retry of a completed request fails here: the booking has ended and the hold is used up. Its stored answer
        // is returned.
        Err(refused) => intent.unless_answered(&state.pg, state.clock.now(), refused).await,
    }
}

async fn exchange_once(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    request: &ExchangeRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let found = find::by_id(state, counter, booking).await?;
    if found.state != BookingState::Confirmed {
        return Err(Problem::new(
            Code::WrongState,
            "This booking is not sold, or not any more: it cannot be exchanged.",
        ));
    }
    let reason = reason_of(&request.reason)?;
    let show = find::show_here(state, counter, request.show).await?;
    catalogue::sales_open(&show, now)?;
    let manager = check_approval(state, counter, &found, request).await?;
    let owner = &counter.staff.session.owner;
    let held = bookings::close_hold(state, &show, owner, request.hold).await?;
    let given = ExchangedBooking { booking, quoted_minor: request.from_total_minor };
    let order = ExchangeOrder { given, show: &show, held: &held, quoted_minor: request.total_minor, reason, manager };
    let exchanged = commit(state, counter, &order, intent).await;
    if exchanged.is_err() {
        bookings::reopen_hold(state, &show, owner, &held).await;
    }
    exchanged
}

/// Checks the PIN of the manager who approves the exchange; `None` without one. A refund without one is refused here, a
/// booking whose show has begun in the transaction.
async fn check_approval(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    found: &CounterBooking,
    request: &ExchangeRequest,
) -> ApiResult<Option<Uuid>> {
    if let (Some(manager), Some(pin)) = (request.manager, &request.pin) {
        accounts::check_pin(state, counter.staff, counter.theatre, manager, pin).await?;
        return Ok(Some(manager));
    }
    if request.total_minor < found.total.minor {
        let detail = "The new seats cost less: a manager stands with their PIN for the money that goes back.";
        return Err(Problem::new(Code::PinWrong, detail));
    }
    Ok(None)
}

async fn commit(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    order: &ExchangeOrder<'_>,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let ExchangeOrder { given, show, held, quoted_minor, reason, manager } = *order;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = tills::lock_open_till(&mut tx, counter.theatre, counter.account()).await?;
    let sale = CounterSale { show, held, buyer: ("", ""), means: Means::Cash, quoted_minor, reason };
    let exchanged = match bookings::exchange(&mut tx, given, &sale, manager.is_some(), now).await {
        Ok(exchanged) => exchanged,
        Err(CounterSaleError::Refused(problem)) => return Err(problem),
        Err(CounterSaleError::Lost(lost)) => {
            tx.rollback().await?;
            return Err(lost.correct_map(state, show).await);
        }
    };
    let amount = (exchanged.means, exchanged.difference);
    let booking = exchanged.sold.booking;
    tills::book(&mut tx, counter, till.as_ref(), (TillEntryKind::Exchange, booking), amount, reason, now).await?;
    record_exchange(&mut tx, counter, &exchanged, order, now).await?;
    let found = bookings::find_by_id(&mut tx, exchanged.sold.booking).await?;
    let found = found.ok_or_else(|| Problem::internal(&"an exchange without a booking"))?;
    // The difference is part of this answer only; the booking does not store it.
    let view = CounterBooking { difference: Some(exchanged.difference), ..found.view(&mut tx, show).await? };
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    let answer = intent.commit(tx, answer, now).await?;
    bookings::show_as_sold(state, show, exchanged.sold.booking).await;
    outbox::wake(state);
    Ok(answer)
}

async fn record_exchange(
    tx: &mut PgConnection,
    counter: CounterStaff<'_>,
    exchanged: &Exchanged,
    order: &ExchangeOrder<'_>,
    now: Timestamp,
) -> ApiResult<()> {
    let Exchanged { sold, from, difference, .. } = exchanged;
    let by = match order.manager {
        Some(manager) => format!(", by the PIN of {}", audit::account(manager)),
        None => String::new(),
    };
    let words = format!("For {}, difference {difference}{by}: {}", sold.reference, order.reason);
    counter.record(tx, "exchanged", format!("booking {from}"), &words, now).await?;
    Ok(())
}

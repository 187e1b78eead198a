//! Other seats for a sold booking, and the difference in price into the till, in one transaction.

use axum::http::StatusCode;
use domain::api_box_office::ExchangeRequest;
use domain::booking::BookingState;
use domain::till::{Entry, Means};
use uuid::Uuid;

use super::sql::NewLine;
use super::{Counter, find, sql, tills};
use crate::accounts::reason_of;
use crate::audit::{self, Entry as Act};
use crate::bookings::{self, CounterSale, Exchanged, Unsold};
use crate::catalogue::Show;
use crate::idempotency::{Answer, Intent};
use crate::seat_locks::Held;
use crate::web::{Code, Problem};
use crate::{AppState, holds, outbox};

/// Exchanges a booking for what the seller holds, in the same show or another of the theatre.
///
/// # Errors
/// 404 for another theatre's booking or show, 409 when it is not sold, somebody came in with it, money of it is on its way
/// back, the new seats cost less or another sum than was told, it was paid online and they are not of the same price, or
/// there is no till for the difference; 410 when the hold is over.
pub(super) async fn exchange(
    state: &AppState,
    counter: Counter<'_>,
    booking: Uuid,
    request: &ExchangeRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.locks.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let found = find::by_id(state, counter, booking).await?;
    if found.state != BookingState::Confirmed {
        return Err(Problem::new(
            Code::WrongState,
            "This booking is not sold, or not any more: it cannot be exchanged.",
        ));
    }
    let reason = reason_of(&request.reason)?;
    let show = find::show_here(state, counter, request.show).await?;
    holds::sales_open(&show, now)?;
    let owner = &counter.staff.session.owner;
    let held = bookings::close_hold(state, &show, owner, request.hold).await?;
    let exchanged = commit(state, counter, booking, (&show, &held), (request.total_minor, reason), intent).await;
    if exchanged.is_err() {
        bookings::open_hold_again(state, &show, owner, &held).await;
    }
    exchanged
}

async fn commit(
    state: &AppState,
    counter: Counter<'_>,
    booking: Uuid,
    (show, held): (&Show, &Held),
    (told_minor, reason): (i64, &str),
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.locks.now();
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = sql::lock_open_till(&mut tx, counter.theatre, counter.account()).await?;
    let sale = CounterSale { show, held, buyer: ("", ""), means: Means::Cash, told_minor, reason };
    let exchanged = match bookings::exchange(&mut tx, booking, &sale, now).await {
        Ok(exchanged) => exchanged,
        Err(Unsold::Refused(problem)) => return Err(problem),
        Err(Unsold::Lost(lost)) => {
            tx.rollback().await?;
            return Err(lost.told(state, show).await?);
        }
    };
    write_difference(&mut tx, counter, till.as_ref(), &exchanged, reason, now).await?;
    let Exchanged { sold, from, difference, .. } = exchanged;
    let words = format!("For {}, difference {difference}: {reason}", sold.reference);
    let act = Act::by(counter.account(), "exchanged", format!("booking {from}"), &words).at(counter.theatre);
    audit::record(&mut tx, &act, now).await?;
    let found = bookings::find_by_id(&mut tx, sold.booking).await?;
    let found = found.ok_or_else(|| Problem::internal(&"an exchange without a booking"))?;
    let answer = Answer::json(StatusCode::CREATED, &found.view(&mut tx, show).await?)?;
    intent.complete(&mut tx, &answer, now).await?;
    tx.commit().await?;
    bookings::show_as_sold(state, show, sold.booking).await;
    outbox::wake(state);
    Ok(answer)
}

/// What was paid at the counter and what changes hands there now has its line, also when that is nothing.
async fn write_difference(
    tx: &mut sqlx::PgConnection,
    counter: Counter<'_>,
    till: Option<&sql::TillRecord>,
    exchanged: &Exchanged,
    reason: &str,
    now: domain::time::Timestamp,
) -> Result<(), Problem> {
    let Some(means) = exchanged.means else { return Ok(()) };
    let till = till.ok_or_else(tills::no_till)?;
    let difference = exchanged.difference;
    if difference.currency.code() != till.currency {
        return Err(Problem::new(Code::WrongState, "Your till is in another currency than this booking."));
    }
    let line = NewLine {
        till: till.id,
        entry: Entry::Exchange,
        means,
        amount_minor: difference.minor,
        booking: Some(exchanged.sold.booking),
        actor: counter.account(),
        reason,
    };
    sql::insert_line(tx, &line, now).await?;
    Ok(())
}

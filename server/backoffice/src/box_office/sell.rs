//! Sells the seller's hold and adds its price to the till, in one transaction.

use axum::http::StatusCode;
use domain::VariantName;
use domain::api::box_office::SaleRequest;
use domain::till::{Means, TillEntryKind};
use uuid::Uuid;

use super::tills::{self, NewLine};
use super::{CounterStaff, caller_holds, find};
use crate::BackofficeState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::reason_of;
use seats::seat_locks::StoredHold;
use selling::bookings::{self, CounterSale, CounterSaleError};
use selling::outbox;

/// Sells the seller's hold in a show. 404 for another theatre's show. 409 without an open till, for another total, when
/// sales are closed, or when the show is planned. 410 when the hold has expired. 400 for an invalid request.
pub(super) async fn sell(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    request: &SaleRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    if let Some(answer) = intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    match sell_once(state, counter, show, request, intent).await {
        Ok(answer) => Ok(answer),
        // A retry of a completed request fails here: the hold is used up. Its stored answer is returned.
        Err(refused) => intent.unless_answered(&state.pg, state.clock.now(), refused).await,
    }
}

async fn sell_once(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    request: &SaleRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let reason = why(request)?;
    let show = find::show_here(state, counter, show).await?;
    catalogue::sales_open(&show, now)?;
    // A pause refuses new holds only: existing holds are sold, as at a checkout.
    catalogue::refuse_planned(&show)?;
    // An early check, before the hold is closed. The row lock in the transaction decides.
    if tills::open_till(&mut *state.pg.acquire().await?, counter.theatre, counter.account()).await?.is_none() {
        return Err(tills::no_till());
    }
    // A caller's hold has its own owner, not the seller's session.
    let caller = caller_holds::owner_of(state, counter, show.id, request.hold).await?;
    let owner = caller.as_deref().unwrap_or(&counter.staff.session.owner);
    let held = bookings::close_hold(state, &show, owner, request.hold).await?;
    let sold = commit(state, counter, (&show, &held), request, &reason, intent).await;
    if sold.is_err() {
        bookings::reopen_hold(state, &show, owner, &held).await;
    }
    sold
}

/// The reason of the sale: why it is free, or the means of payment.
fn why(request: &SaleRequest) -> ApiResult<String> {
    match (request.means, request.reason.trim()) {
        (Means::Free, _) => Ok(format!("For free at the counter: {}", reason_of(&request.reason)?)),
        (means, "") => Ok(format!("Sold at the counter, {}.", means.as_str())),
        _ => Err(Problem::new(Code::Malformed, "A reason is for what is free.")),
    }
}

async fn commit(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    (show, held): (&Show, &StoredHold),
    request: &SaleRequest,
    reason: &str,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = tills::lock(&mut tx, counter).await?;
    let sale = CounterSale {
        show,
        held,
        buyer: (&request.name, &request.email),
        means: request.means,
        quoted_minor: request.total_minor,
        reason,
    };
    let sold = match bookings::sell(&mut tx, &sale, now).await {
        Ok(sold) => sold,
        Err(CounterSaleError::Refused(problem)) => return Err(problem),
        Err(CounterSaleError::Lost(lost)) => {
            tx.rollback().await?;
            return Err(lost.correct_map(state, show).await);
        }
    };
    if sold.total.currency.code() != till.currency {
        return Err(Problem::new(Code::WrongState, "Your till is in another currency than this show."));
    }
    let line = NewLine {
        till: till.id,
        entry: TillEntryKind::Sale,
        means: request.means,
        amount_minor: sold.total.minor,
        booking: Some(sold.booking),
        actor: counter.account(),
        reason,
    };
    tills::insert_line(&mut tx, &line, now).await?;
    caller_holds::mark_sold(&mut tx, request.hold).await?;
    let subject = format!("booking {}", sold.reference);
    let act = if request.means == Means::Free { "given_away" } else { "sold" };
    let words = format!("{}: {reason}", sold.total);
    counter.record(&mut tx, act, subject, &words, now).await?;
    let found = bookings::find_by_id(&mut tx, sold.booking).await?;
    let found = found.ok_or_else(|| Problem::internal(&"a sale without a booking"))?;
    let mut view = found.view(&mut tx, show).await?;
    view.undo_until_ms = Some(domain::till::undo_until(now).0);
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    let answer = intent.commit(tx, answer, now).await?;
    bookings::show_as_sold(state, show, sold.booking).await;
    outbox::wake(state);
    Ok(answer)
}

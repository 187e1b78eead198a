//! Checkout and payment in one request: one round trip for the buyer, one key, and one commit before the charge
//! instead of two.
//!
//! All rules of `create` and `confirm` apply. A refusal writes nothing: there is no booking, and the hold is
//! unchanged. Where the connection to Postgres failed during the commit, the outcome is unknown; then the hold stays
//! closed until it expires, or until its owner retries.

use std::sync::Arc;

use axum::http::StatusCode;
use domain::api::{CheckoutPayment, ConfirmRequest};
use domain::booking::BookingState;

use super::confirm::{self, PaymentAttempt};
use super::create::{self, Order};
use crate::SellingState;
use crate::bookings::commits::{Done, Key, Submission, Turn};
use crate::bookings::sql::{self, BookingRow};
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use seats::seat_locks::StoredHold;

/// Creates a booking of the caller's hold and pays for it. Returns its state: confirmed, or pending with the
/// gateway's page. `turn` ends when the payment is committed.
pub(crate) async fn at_once(
    state: &SellingState,
    order: Order<'_>,
    terms: &CheckoutPayment,
    turn: &mut Turn,
) -> ApiResult<Answer> {
    let intent = order.intent;
    match buy(state, order, terms, turn).await {
        Ok(answer) => Ok(answer),
        // The request is malformed, or the store that knows earlier grants is unavailable.
        Err(refusal) if !may_have_been_granted(refusal.code()) => Err(refusal),
        // A refused request may have been granted before: to the same key, or to another tab.
        Err(refusal) => match create::or_replay(state, order.visitor, intent, refusal).await {
            Ok(answer) => Ok(answer),
            Err(refusal) => unless_paid(state, order, refusal).await,
        },
    }
}

fn may_have_been_granted(code: Code) -> bool {
    code.describe().0 != StatusCode::BAD_REQUEST && !create::is_out_of_reach(code)
}

async fn buy(state: &SellingState, order: Order<'_>, terms: &CheckoutPayment, turn: &mut Turn) -> ApiResult<Answer> {
    // Most likely the hold is as this replica granted it; the lock store compares it with the sale.
    let known = state.latest_holds.of(order.request.hold, &order.visitor.owner);
    let is_known = known.is_some();
    let submitted = match submit(state, order, terms, known).await {
        Err(refusal) if is_known && may_be_outdated(refusal.code()) => submit(state, order, terms, None).await?,
        submitted => submitted?,
    };
    turn.end();
    confirm::go_on(state, submitted).await
}

/// Checks for a refusal that a fresh read of the hold could change.
const fn may_be_outdated(code: Code) -> bool {
    matches!(code, Code::WrongState | Code::HoldExpired | Code::PriceChanged | Code::EmailCodeWanted)
}

async fn submit(
    state: &SellingState,
    order: Order<'_>,
    terms: &CheckoutPayment,
    known: Option<StoredHold>,
) -> ApiResult<(Submission, Done)> {
    let row = create::build_row(state, order, known).await?;
    agreed(&row, terms)?;
    let (is_guest, if_late) = (order.visitor.account.is_none(), Some(order.request.if_late));
    let attempt = PaymentAttempt { row, seen: None, only_at: None, is_guest, if_late };
    let means = ConfirmRequest { payment_token: terms.payment_token.clone() };
    // The show that the total was computed with: its lines have the same prices.
    confirm::submit(state, Arc::clone(order.show), attempt, &means, order.intent).await
}

/// Checks that the total is the one the buyer saw.
fn agreed(row: &BookingRow, terms: &CheckoutPayment) -> ApiResult<()> {
    let total = row.machine.total;
    if total.minor == terms.total_minor {
        return Ok(());
    }
    let words = format!("It costs {total} now. Nothing was charged and your seats are still held.");
    Err(Problem::new(Code::PriceChanged, words))
}

/// Returns the booking of that hold, if it is paid or being paid: then there is nothing to refuse.
async fn unless_paid(
    state: &SellingState,
    Order { show, visitor, request, intent }: Order<'_>,
    refusal: Problem,
) -> ApiResult<Answer> {
    let looked = async {
        // Boxed, as in `checks`.
        let mut connection = Box::pin(state.pg.acquire()).await?;
        sql::find_of_hold(&mut connection, request.hold, &visitor.owner).await
    };
    let row = looked.await.ok().flatten();
    let goes_on = |row: &BookingRow| {
        use BookingState::{Confirmed, PaymentPending, PaymentSucceeded};
        row.show_id == show.id && matches!(row.machine.state, PaymentPending | PaymentSucceeded | Confirmed)
    };
    let Some(row) = row.filter(goes_on) else { return Err(refusal) };
    // Not with a copy of the cookie of a guest who has signed in since.
    crate::account_bookings::owner_for(state, visitor, row.id).await?;
    confirm::current_answer(state, show, row.id, intent, Key::New).await
}

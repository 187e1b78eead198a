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
pub(crate) async fn create_and_pay(
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
        Err(refusal) => match create::replay_or_refuse(state, order.visitor, intent, refusal).await {
            Ok(answer) => Ok(answer),
            Err(refusal) => current_answer_if_paid(state, order, refusal).await,
        },
    }
}

fn may_have_been_granted(code: Code) -> bool {
    code.describe().0 != StatusCode::BAD_REQUEST && !create::is_database_unavailable(code)
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
    confirm::finish_payment(state, submitted).await
}

/// Returns true for a refusal that a fresh read of the hold may change.
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
    check_total(&row, terms)?;
    let (is_guest, if_late) = (order.visitor.account.is_none(), Some(order.request.if_late));
    let attempt = PaymentAttempt { row, seen: None, expected_version: None, is_guest, if_late };
    let means = ConfirmRequest { payment_token: terms.payment_token.clone() };
    // The show that the total was computed with: its lines have the same prices.
    confirm::submit(state, Arc::clone(order.show), attempt, &means, order.intent).await
}

/// Refuses a total that differs from the one the buyer saw.
fn check_total(row: &BookingRow, terms: &CheckoutPayment) -> ApiResult<()> {
    let total = row.machine.total;
    if total.minor == terms.total_minor {
        return Ok(());
    }
    let words = format!("It costs {total} now. Nothing was charged and your seats are still held.");
    Err(Problem::new(Code::PriceChanged, words))
}

/// Answers with the booking of that hold if it is paid or being paid; otherwise returns the refusal.
async fn current_answer_if_paid(
    state: &SellingState,
    Order { show, visitor, request, intent }: Order<'_>,
    refusal: Problem,
) -> ApiResult<Answer> {
    let lookup = async {
        // Boxed, as in `checks`.
        let mut connection = Box::pin(state.pg.acquire()).await?;
        sql::find_of_hold(&mut connection, request.hold, &visitor.owner).await
    };
    let row = lookup.await.ok().flatten();
    let is_paid_or_pending = |row: &BookingRow| {
        use BookingState::{Confirmed, PaymentPending, PaymentSucceeded};
        row.show_id == show.id && matches!(row.machine.state, PaymentPending | PaymentSucceeded | Confirmed)
    };
    let Some(row) = row.filter(is_paid_or_pending) else { return Err(refusal) };
    // Not with a copy of the cookie of a guest who has signed in since.
    crate::account_bookings::owner_for(state, visitor, row.id).await?;
    confirm::current_answer(state, show, row.id, intent, Key::New).await
}

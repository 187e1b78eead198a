//! Refunds at the counter: a refund approved by a manager, the undo of a recent sale, and the pay-out of a waiting
//! refund.

use axum::http::StatusCode;
use domain::api::accounts::Password;
use domain::api::box_office::{PayOutRequest, Reason, RefundRequest};
use domain::money::Money;
use domain::till::{TillEntryKind, UNDO_MS, undo_until};
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CounterStaff, find, tills};
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::{self, reason_of};
use identity::audit;
use platform::clock::from_utc;
use selling::bookings::{self, CounterReturn, ReturnedSeats};
use selling::outbox;

/// Refunds a booking, or some of its seats, in full. A manager of the theatre approves it with their PIN.
///
/// # Errors
/// 404 for another theatre's booking. 422 for a wrong PIN. 429 after too many attempts. 409 when the booking is not
/// sold, or when the till for the money is not open or holds too little cash.
pub async fn refund(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    request: &RefundRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    perform(state, counter, booking, ReturnKind::Refund(request), &request.reason, intent).await
}

/// Undoes a recent sale of the caller, out of the same till.
///
/// # Errors
/// 404 for another theatre's booking. 409 when it is too late, the sale is another seller's or of another till, or a
/// ticket was used.
pub async fn undo(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    request: &Reason,
    intent: &Intent,
) -> ApiResult<Answer> {
    perform(state, counter, booking, ReturnKind::Undo, &request.reason, intent).await
}

/// Pays out the waiting refund of a booking. If the buyer cancelled it, a manager of the theatre approves it with their
/// PIN.
///
/// # Errors
/// 404 for another theatre's booking. 422 for a wrong or missing PIN. 429 after too many attempts. 409 when no refund
/// waits, or when the till is not open or holds too little cash.
pub async fn pay_out(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    request: &PayOutRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    perform(state, counter, booking, ReturnKind::PayOut(request), &request.reason, intent).await
}

#[derive(Clone, Copy)]
enum ReturnKind<'a> {
    Refund(&'a RefundRequest),
    Undo,
    PayOut(&'a PayOutRequest),
}

impl<'a> ReturnKind<'a> {
    /// The manager who approves the return, and the PIN, if the request has both.
    fn approval(self) -> Option<(Uuid, &'a Password)> {
        match self {
            Self::Refund(request) => Some((request.manager, &request.pin)),
            Self::PayOut(request) => request.manager.zip(request.pin.as_ref()),
            Self::Undo => None,
        }
    }
}

async fn perform(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    booking: Uuid,
    kind: ReturnKind<'_>,
    reason: &str,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    find::show_of(state, counter, booking).await?;
    let reason = reason_of(reason)?;
    let approval = kind.approval();
    if let Some((manager, pin)) = approval {
        accounts::check_pin(state, counter.staff, counter.theatre, manager, pin).await?;
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = tills::lock_open_till(&mut tx, counter.theatre, counter.account()).await?;
    let back = match kind {
        ReturnKind::Refund(request) => {
            let returned = ReturnedSeats::of_request(request.seats.as_deref(), request.labels.as_deref())?;
            bookings::take_back(&mut tx, booking, returned, reason, now).await?
        }
        ReturnKind::Undo => undo_own(&mut tx, counter, till.as_ref(), booking, reason, now).await?,
        ReturnKind::PayOut(_) => bookings::pay_out(&mut tx, booking, approval.is_some(), now).await?,
    };
    let amount = (back.means, Money::new(-back.amount.minor, back.amount.currency));
    tills::book(&mut tx, counter, till.as_ref(), (TillEntryKind::Refund, booking), amount, reason, now).await?;
    let found = bookings::find_by_id(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    // The show was loaded before this transaction began and is cached.
    let show = state.catalogue.find_show(found.show).await?;
    let view = found.view(&mut tx, &show).await?;
    let act = match kind {
        ReturnKind::Refund(_) => "refunded",
        ReturnKind::Undo => "sale_undone",
        ReturnKind::PayOut(_) => "paid_out",
    };
    let by = match approval {
        Some((manager, _)) => format!(", by the PIN of {}", audit::account(manager)),
        None => String::new(),
    };
    let words = format!("{}{by}: {reason}", back.amount);
    let subject = format!("booking {}", view.reference);
    counter.record(&mut tx, act, subject, &words, now).await?;
    let answer = Answer::json(StatusCode::OK, &view)?;
    let answer = intent.commit(tx, answer, now).await?;
    outbox::wake(state);
    Ok(answer)
}

/// Takes back the caller's own sale within the undo period.
async fn undo_own(
    tx: &mut PgConnection,
    counter: CounterStaff<'_>,
    till: Option<&tills::TillRecord>,
    booking: Uuid,
    reason: &str,
    now: Timestamp,
) -> ApiResult<CounterReturn> {
    let till = till.ok_or_else(tills::no_till)?;
    let own = tills::sale_of(tx, booking)
        .await?
        .filter(|(of, who, at)| *of == till.id && *who == counter.account() && now < undo_until(from_utc(*at)));
    if own.is_none() {
        let detail = format!(
            "Only your own sale of the last {} minutes can be undone, with the same till. A manager can refund it.",
            UNDO_MS / MINUTE_MS
        );
        return Err(Problem::new(Code::UndoTooLate, detail));
    }
    let back = bookings::take_back(tx, booking, None, reason, now).await?;
    // The booking is locked only since the statement above. A used ticket keeps its seat, unless a manager approves the
    // refund.
    if tickets::has_admissions(tx, booking, None).await? {
        let detail = "Someone has already come in with these tickets. A manager can refund them.";
        return Err(Problem::new(Code::UndoTooLate, detail));
    }
    Ok(back)
}

//! Payment: the hold is extended, claims are written, and only then the gateway is called.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use domain::api::ConfirmRequest;
use domain::api::cancelling::LatePaymentHandling;
use domain::booking::{BookingEvent, BookingState, PAYMENT_EXTENSION_MS};
use sqlx::Connection as _;
use sqlx::pool::PoolConnection;
use tracing::Instrument;
use uuid::Uuid;

use super::checks::{self, Checked};
use super::create::{self, is_database_unavailable, move_problem, replay_or_refuse};
use super::{instruments, person_limit};
use crate::bookings::commits::{BookingDetails, ChargeOutcome, Done, Key, NewBooking, Submission, Turn, Work};
use crate::bookings::money::payment_rows::Route;
use crate::bookings::moves::{self, causes};
use crate::bookings::sql::{self, BookingRow};
use crate::bookings::views::view;
use crate::bookings::{claims, effects, late};
use crate::{SellingState, outbox};
use admission::fairness::LimitedCaller;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, ClientAddress, Code, Problem};
use identity::Visitor;

/// Reads of a booking before its payment is refused because its version keeps changing.
const MAX_READS: u32 = 3;

/// Pays for a booking. Returns its state: confirmed, or pending with the gateway's page. `turn` ends when the
/// payment is committed. Counts as a checkout: a refused payment leaves the booking payable.
pub(crate) async fn confirm(
    state: &SellingState,
    (visitor, address): (&Visitor, &ClientAddress),
    booking: Uuid,
    (request, intent): (&ConfirmRequest, &Intent),
    turn: &mut Turn,
) -> ApiResult<Answer> {
    match pay(state, (visitor, address), booking, (request, intent), turn).await {
        // A refused request may have been granted before, to the same key.
        Err(refusal) => replay_or_refuse(state, visitor, intent, refusal).await,
        answered => answered,
    }
}

async fn pay(
    state: &SellingState,
    (visitor, address): (&Visitor, &ClientAddress),
    booking: Uuid,
    (request, intent): (&ConfirmRequest, &Intent),
    turn: &mut Turn,
) -> ApiResult<Answer> {
    let mut is_counted = false;
    let recent = state.commits.recent_booking(booking, &visitor.owner);
    let recent = recent.filter(|found| found.row.machine.state == BookingState::SeatsLocked);
    let mut refused = None;
    if let Some(found) = recent {
        // This replica checked it out recently: most likely it is unchanged. The buyer's record later shows if the
        // cookie still has access.
        let (row, is_guest) = (found.row.clone(), visitor.account.is_none());
        let (version, show) = (row.version, state.catalogue.find_show(row.show_id).await?);
        LimitedCaller::new(show.id, visitor, address).count_checkout(state, &show).await?;
        is_counted = true;
        let attempt = PaymentAttempt {
            row,
            seen: Some(Box::new(found)),
            expected_version: Some(version),
            is_guest,
            if_late: None,
        };
        match submit(state, show, attempt, request, intent).await {
            Ok(submitted) => {
                turn.end();
                return finish_payment(state, submitted).await;
            }
            // The store with the current state is unavailable or too slow.
            Err(problem) if is_database_unavailable(problem.code()) => return Err(problem),
            Err(problem) => refused = Some((version, problem)),
        }
    }
    let owner = crate::account_bookings::owner_for(state, visitor, booking).await?;
    for _ in 0..MAX_READS {
        let found = state.commits.find_owned(state, booking, &owner).await?;
        let found = found.ok_or_else(|| Problem::not_found("booking"))?;
        let row = found.row.clone();
        // A refusal is final if the booking's version is unchanged.
        if let Some((_, problem)) = refused.take_if(|(version, _)| *version == row.version) {
            return Err(problem);
        }
        let show = state.catalogue.find_show(row.show_id).await?;
        match row.machine.state {
            BookingState::Created | BookingState::SeatsLocked => {
                if !std::mem::replace(&mut is_counted, true) {
                    LimitedCaller::new(show.id, visitor, address).count_checkout(state, &show).await?;
                }
            }
            // A second tab or a second key: it is paid, or being paid, once.
            BookingState::PaymentPending | BookingState::PaymentSucceeded | BookingState::Confirmed => {
                return current_answer(state, &show, booking, intent, Key::New).await;
            }
            BookingState::Cancelled | BookingState::Expired => {
                return Err(move_problem(moves::MoveError::Refused(domain::booking::StepError::Gone)));
            }
        }
        let version = row.version;
        let seen = Some(Box::new(found));
        let attempt = PaymentAttempt { row, seen, expected_version: Some(version), is_guest: false, if_late: None };
        match submit(state, show, attempt, request, intent).await {
            Ok(submitted) => {
                turn.end();
                return finish_payment(state, submitted).await;
            }
            // The booking may have moved since it was read.
            Err(problem) if problem.code() == Code::WrongState => refused = Some((version, problem)),
            Err(problem) => return Err(problem),
        }
    }
    Err(refused.map_or_else(|| move_problem(moves::MoveError::LostRace), |(_, problem)| problem))
}

/// A booking to be paid for.
pub(super) struct PaymentAttempt {
    pub(super) row: BookingRow,
    /// Its details, where they are in memory.
    pub(super) seen: Option<Box<BookingDetails>>,
    /// The version it must still have when it moves: the checked booking is the one that is charged. `None` where
    /// the booking is new.
    pub(super) expected_version: Option<i32>,
    /// True if it is still unchecked that the owner was not merged into an account.
    pub(super) is_guest: bool,
    /// For a new booking: the treatment of late money.
    pub(super) if_late: Option<LatePaymentHandling>,
}

/// Runs the checks, and commits the payment, with the booking where it is new.
pub(super) async fn submit(
    state: &SellingState,
    show: Arc<Show>,
    attempt: PaymentAttempt,
    request: &ConfirmRequest,
    intent: &Intent,
) -> ApiResult<(Submission, Done)> {
    let PaymentAttempt { row, seen, expected_version, is_guest, if_late } = attempt;
    check_token(request)?;
    let gateway = state.gateways.first_choice();
    // No gateway is called for a booking that costs nothing.
    let token = request.payment_token.clone().filter(|_| row.machine.total.minor > 0);
    let means = (gateway, token.as_deref());
    let Checked { until, instrument, person } =
        checks::before_charge(state, &show, &row, is_guest, if_late.is_none(), means).await?;
    let submission = Submission {
        show,
        booking: row.id,
        new: if_late.map(|if_late| Box::new(NewBooking { row: row.clone(), if_late })),
        // Passed to the commit, and not needed afterwards.
        seen: None,
        expected_version,
        token,
        instrument,
        person,
        gateway,
        until,
        intent: intent.clone(),
    };
    match state.commits.ask(state, Work::Submit(Submission { seen, ..submission.clone() })).await {
        Ok(done) => Ok((submission, done)),
        // The outcome of the commit is unknown: the booking may be charged, and its hold stays closed, until it
        // expires if nothing was written. The buyer may retry meanwhile.
        Err(problem) if submission.new.is_some() && may_be_committed(problem.code()) => Err(problem),
        Err(problem) => {
            reopen_hold_after_refusal(state, &submission.show, &row).await;
            Err(problem)
        }
    }
}

/// Charges a payment that was submitted now, or returns the answer to an earlier one.
pub(super) async fn finish_payment(state: &SellingState, (submission, done): (Submission, Done)) -> ApiResult<Answer> {
    match done {
        Done::Submitted(pending, seen) => charge_and_answer(state, submission, *pending, seen).await,
        Done::Answered(answer) => Ok(answer),
        other => Err(Problem::internal(&format!("a submission returned {other:?}"))),
    }
}

/// Returns true for an error after which the transaction may have been committed.
const fn may_be_committed(code: Code) -> bool {
    matches!(code, Code::DatabaseUnavailable | Code::Internal)
}

/// Charges the payment and records the outcome, even if the buyer's connection drops: the answer is stored, and a retry
/// gets it. The charge has its row in the outbox: if this replica dies here, the relay sends the charge.
async fn charge_and_answer(
    state: &SellingState,
    submission: Submission,
    pending: BookingRow,
    seen: Option<Box<BookingDetails>>,
) -> ApiResult<Answer> {
    let state = state.clone();
    let tasks = state.tasks.clone();
    // Boxed: it is kilobytes, and a task is moved several times.
    let rest = Box::pin(async move {
        let Submission { show, new, token, gateway, intent, .. } = submission;
        let booking = pending.id;
        let ours = Key::OursSinceSubmit(if new.is_some() { StatusCode::CREATED } else { StatusCode::OK });
        // Counted as the first charge request when the payment was committed.
        let route = Route { gateway: gateway.to_owned(), gateway_ref: None, payment_token: token };
        let asked = effects::request_charge(&state, &show, &pending, route).await;
        let (gateway_answer, charged) = match asked {
            Ok(gateway_answer) => (gateway_answer, true),
            Err(cause) => {
                tracing::warn!(%booking, %cause, "charge {booking} failed; the relay retries it");
                (None, false)
            }
        };
        let answer = Some((intent, ours));
        expect_answer(
            state
                .commits
                .ask(
                    &state,
                    Work::RecordChargeOutcome(Box::new(ChargeOutcome {
                        show,
                        booking,
                        seen,
                        gateway_answer,
                        charged,
                        answer,
                    })),
                )
                .await,
        )
    });
    let rest = tasks.spawn(rest.in_current_span());
    rest.await.map_err(|cause| Problem::internal(&cause))?
}

/// Answers with the current booking, in a batch with other work.
pub(super) async fn current_answer(
    state: &SellingState,
    show: &Arc<Show>,
    booking: Uuid,
    intent: &Intent,
    key: Key,
) -> ApiResult<Answer> {
    let answer = Some((intent.clone(), key));
    let outcome =
        ChargeOutcome { show: Arc::clone(show), booking, seen: None, gateway_answer: None, charged: false, answer };
    expect_answer(state.commits.ask(state, Work::RecordChargeOutcome(Box::new(outcome))).await)
}

/// Returns the answer of a request that always gets one.
fn expect_answer(done: ApiResult<Done>) -> ApiResult<Answer> {
    match done? {
        Done::Answered(answer) => Ok(answer),
        other => Err(Problem::internal(&format!("a request for the current booking returned {other:?}"))),
    }
}

/// Timeout for reopening the hold after a refusal.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(3);
/// Ends the statement in Postgres within that time.
const BEGIN_REOPENING: &str = "BEGIN; SET LOCAL statement_timeout = '2500ms'";

/// Reopens the hold for its owner after a refused payment, unless a concurrent request submitted a payment
/// for the same booking.
pub(crate) async fn reopen_hold_after_refusal(state: &SellingState, show: &Show, row: &BookingRow) {
    let (booking, mut on) = (row.id, None);
    // Boxed: this is rare.
    let reopened = Box::pin(async {
        let mut tx = on.insert(state.pg.acquire().await?).begin_with(BEGIN_REOPENING).await?;
        // By its hold: a booking that was to be created in this request does not exist, or another tab created it.
        let now = sql::lock_of_hold(&mut tx, row.hold_id).await?;
        if now.is_none_or(|now| now.machine.state == BookingState::SeatsLocked) {
            state.locks.end_payment(show.id, &row.sale(), PAYMENT_EXTENSION_MS).await?;
        }
        tx.commit().await?;
        Ok::<(), Problem>(())
    });
    let problem = match tokio::time::timeout(REOPEN_TIMEOUT, reopened).await {
        Ok(Ok(())) => return,
        Ok(Err(problem)) => Some(problem),
        Err(_) => {
            on.iter_mut().for_each(PoolConnection::close_on_drop);
            None
        }
    };
    tracing::warn!(?problem, %booking, "reopen the hold of {booking} failed; it stays closed until it expires");
}

/// Longest payment token, bytes.
const MAX_TOKEN_BYTES: usize = 255;

fn check_token(request: &ConfirmRequest) -> ApiResult<()> {
    let Some(token) = &request.payment_token else { return Ok(()) };
    if token.is_empty() || token.len() > MAX_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::new(
            Code::Malformed,
            "A payment_token is 1 to 255 visible ASCII characters, from the gateway.",
        ));
    }
    Ok(())
}

/// Commits a submission that a batch cannot plan: with places, a limited card or an earlier checkout, or whose key, seats
/// or person another transaction has. Writes key, move, claims, payment and charge effect. Returns an answer instead if
/// a concurrent duplicate was faster.
pub(crate) async fn submit_alone(state: &SellingState, submission: &Submission) -> ApiResult<Done> {
    let Submission { show, booking, new, token, instrument, person, gateway, until, intent, expected_version, .. } =
        submission;
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(Done::Answered(answer));
    }
    let row = match new {
        Some(new) => create::insert_or_revise(&mut tx, show, new.row.clone(), now).await?,
        None => sql::lock(&mut tx, *booking).await?.ok_or_else(|| Problem::not_found("booking"))?,
    };
    if new.is_some() && row.machine.state != BookingState::SeatsLocked {
        // Another tab was faster: it is paid, or being paid, once.
        tx.rollback().await?;
        return answer_current(state, show, row.id, intent, Key::New).await.map(Done::Answered);
    }
    if expected_version.is_some_and(|version| version != row.version) {
        return Err(move_problem(moves::MoveError::LostRace));
    }
    let submitted = BookingEvent::PaymentSubmitted { until: *until };
    let pending = match moves::apply(&mut tx, &row, submitted, causes::PRESSED_PAY, now).await {
        Ok(pending) => pending,
        Err(moves::MoveError::Refused(domain::booking::StepError::AlreadyDone)) => {
            // Another key was slightly faster. This one is not kept pending; it gets the booking as it is now.
            tx.rollback().await?;
            return answer_current(state, show, row.id, intent, Key::New).await.map(Done::Answered);
        }
        Err(error) => return Err(move_problem(error)),
    };
    if let Some(new) = new {
        late::store_late_preference(&mut tx, &row, new.if_late).await?;
    }
    if let Some(person) = person {
        person_limit::check_under_lock(&mut tx, show, &pending, person, now).await?;
    }
    if let Some(instrument) = instrument {
        instruments::record_or_refuse(&mut tx, show, &pending, instrument).await?;
    }
    if let Some(lost) = claims::claim_all(&mut tx, show, &pending, now).await? {
        tx.rollback().await?;
        return Err(lost.correct_map(state, show).await);
    }
    sql::insert_payment(&mut tx, &pending, gateway, token.as_deref(), now).await?;
    tx.commit().await?;
    Ok(Done::Submitted(Box::new(pending), None))
}

/// Stores the current booking as the answer of this key.
pub(crate) async fn answer_current(
    state: &SellingState,
    show: &Show,
    booking: Uuid,
    intent: &Intent,
    key: Key,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    if key == Key::New
        && let Some(answer) = intent.begin(&mut tx, now).await?
    {
        return Ok(answer);
    }
    let row = sql::find(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let booking = view::of_row(&mut tx, show, &row).await?;
    let answer = Answer::json(key.status(), &booking)?;
    let answer = intent.commit(tx, answer, now).await?;
    outbox::wake(state);
    Ok(answer)
}

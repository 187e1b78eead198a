//! Paying: the hold is extended, claims are written, and only then the gateway is asked.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use domain::api::ConfirmRequest;
use domain::api::cancelling::IfLate;
use domain::booking::{BookingState, Event, PAYMENT_EXTENSION_MS};
use sqlx::Connection as _;
use sqlx::pool::PoolConnection;
use tracing::Instrument;
use uuid::Uuid;

use super::checks::{self, Checked};
use super::create::{self, is_out_of_reach, or_replay, unmoved};
use super::{instruments, person_limit};
use crate::bookings::commits::{CommitMode, Done, Found, Key, Lesson, NewBooking, Submission, Turn, Work, retried};
use crate::bookings::money::payment_rows::Route;
use crate::bookings::moves::{self, causes};
use crate::bookings::sql::{self, BookingRow};
use crate::bookings::views::view;
use crate::bookings::{claims, effects, late};
use crate::{SellingState, outbox};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::Visitor;

/// Reads of a booking before its payment is refused because it keeps moving.
const MAX_LOOKS: u32 = 3;

/// Pays for a booking. The answer says how it stands: confirmed, or pending with the gateway's page. `turn` ends when the
/// payment is written down.
pub(in crate::bookings) async fn confirm(
    state: &SellingState,
    visitor: &Visitor,
    booking: Uuid,
    (request, intent): (&ConfirmRequest, &Intent),
    turn: &mut Turn,
) -> Result<Answer, Problem> {
    if state.selling_settings.commits == CommitMode::Interactive
        && let Some(answer) = create::replayed(state, visitor, intent).await?
    {
        return Ok(answer);
    }
    match pay(state, visitor, booking, (request, intent), turn).await {
        // What is refused now may have been granted before, to the same key.
        Err(refusal) if state.selling_settings.commits == CommitMode::Batched => {
            or_replay(state, visitor, intent, refusal).await
        }
        answered => answered,
    }
}

async fn pay(
    state: &SellingState,
    visitor: &Visitor,
    booking: Uuid,
    (request, intent): (&ConfirmRequest, &Intent),
    turn: &mut Turn,
) -> Result<Answer, Problem> {
    let lately = state.commits.lately(booking, &visitor.owner);
    let lately = lately.filter(|found| found.row.machine.state == BookingState::SeatsLocked);
    let mut refused = None;
    if let Some(found) = lately {
        // Checked out here a moment ago: most likely it stands as it did. Whether the cookie still opens it is
        // looked up with the buyer's record.
        let (row, is_guest) = (found.row.clone(), visitor.account.is_none());
        let (version, show) = (row.version, state.catalogue.known_show(row.show_id).await?);
        let wish = Wish { row, seen: Some(Box::new(found)), only_at: Some(version), is_guest, if_late: None };
        match submit(state, show, wish, request, intent).await {
            Ok(submitted) => {
                turn.end();
                return go_on(state, submitted).await;
            }
            // Whoever would be asked how it stands does not answer, or not in time.
            Err(problem) if is_out_of_reach(problem.code()) => return Err(problem),
            Err(problem) => refused = Some((version, problem)),
        }
    }
    let owner = crate::belongings::owner_for(state, visitor, booking).await?;
    for _ in 0..MAX_LOOKS {
        let (row, seen) = owned(state, &owner, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
        // A refusal stands if what it was about still does.
        if let Some((_, problem)) = refused.take_if(|(version, _)| *version == row.version) {
            return Err(problem);
        }
        let show = state.catalogue.known_show(row.show_id).await?;
        match row.machine.state {
            BookingState::Created | BookingState::SeatsLocked => {}
            // A second tab or a second key: it is paid, or being paid, once.
            BookingState::PaymentPending | BookingState::PaymentSucceeded | BookingState::Confirmed => {
                return as_it_stands(state, &show, booking, intent, Key::New).await;
            }
            BookingState::Cancelled | BookingState::Expired => {
                return Err(unmoved(moves::MoveError::Refused(domain::booking::Refused::Gone)));
            }
        }
        let version = row.version;
        let wish = Wish { row, seen, only_at: Some(version), is_guest: false, if_late: None };
        match submit(state, show, wish, request, intent).await {
            Ok(submitted) => {
                turn.end();
                return go_on(state, submitted).await;
            }
            // It may have moved on since it was read.
            Err(problem) if problem.code() == Code::WrongState => refused = Some((version, problem)),
            Err(problem) => return Err(problem),
        }
    }
    Err(refused.map_or_else(|| unmoved(moves::MoveError::LostRace), |(_, problem)| problem))
}

/// A booking that its buyer wants to pay for.
pub(super) struct Wish {
    pub(super) row: BookingRow,
    /// All that belongs to it, where that is at hand.
    pub(super) seen: Option<Box<Found>>,
    /// The version it must still have when it moves: what is checked before a charge is what is charged for. None where
    /// it is to be made.
    pub(super) only_at: Option<i32>,
    /// Whether it is still to be looked up that its owner is nobody's visitor but their own.
    pub(super) is_guest: bool,
    /// Of a booking that is to be made: what to do with late money.
    pub(super) if_late: Option<IfLate>,
}

/// Checks it, and writes the payment down, with the booking where it is to be made.
pub(super) async fn submit(
    state: &SellingState,
    show: Arc<Show>,
    wish: Wish,
    request: &ConfirmRequest,
    intent: &Intent,
) -> Result<(Submission, Done), Problem> {
    let Wish { row, seen, only_at, is_guest, if_late } = wish;
    check_token(request)?;
    let gateway = state.gateways.first_choice();
    let means = (gateway, request.payment_token.as_deref());
    let Checked { until, instrument, person } =
        checks::before_charge(state, &show, &row, is_guest, if_late.is_none(), means).await?;
    let submission = Submission {
        show,
        booking: row.id,
        new: if_late.map(|if_late| Box::new(NewBooking { row: row.clone(), if_late })),
        // Goes along with what is written down, and is of no use afterwards.
        seen: None,
        only_at,
        token: request.payment_token.clone(),
        instrument,
        person,
        gateway,
        until,
        intent: intent.clone(),
    };
    match write_down(state, &submission, seen).await {
        Ok(done) => Ok((submission, done)),
        // Whether it was written is not known: then it may be charged for, and its hold stays closed, until its end if it
        // was not. The buyer may try again all the while.
        Err(problem) if submission.new.is_some() && may_be_written(problem.code()) => Err(problem),
        Err(problem) => {
            give_up_payment(state, &submission.show, &row).await;
            Err(problem)
        }
    }
}

pub(super) async fn go_on(state: &SellingState, (submission, done): (Submission, Done)) -> Result<Answer, Problem> {
    match done {
        Done::Submitted(pending, seen) => charge_and_answer(state, submission, *pending, seen).await,
        Done::Answered(answer) => Ok(answer),
        other => Err(Problem::internal(&format!("a submission came to {other:?}"))),
    }
}

/// The booking, if it is this owner's; and all that belongs to it, where that was read as well.
async fn owned(
    state: &SellingState,
    owner: &str,
    booking: Uuid,
) -> Result<Option<(BookingRow, Option<Box<Found>>)>, Problem> {
    if state.selling_settings.commits == CommitMode::Batched {
        let found = state.commits.find_owned(state, booking, owner).await?;
        return Ok(found.map(|found| (found.row.clone(), Some(Box::new(found)))));
    }
    // Boxed, as in `checks`.
    let mut connection = Box::pin(state.pg.acquire()).await?;
    let row = sql::find_owned(&mut connection, booking, owner).await?;
    Ok(row.map(|row| (row, None)))
}

/// Whether a transaction that ended so may have been committed nevertheless.
const fn may_be_written(code: Code) -> bool {
    matches!(code, Code::DatabaseUnavailable | Code::Internal)
}

async fn write_down(state: &SellingState, submission: &Submission, seen: Option<Box<Found>>) -> Result<Done, Problem> {
    match state.selling_settings.commits {
        CommitMode::Batched => state.commits.ask(state, Work::Submit(Submission { seen, ..submission.clone() })).await,
        CommitMode::Interactive => Box::pin(retried(|| submit_one(state, submission))).await,
    }
}

/// Goes on when the buyer's connection does not: the answer is stored, and a retry finds it. The charge
/// has its row in the outbox: should we die here, the relay asks in our place.
async fn charge_and_answer(
    state: &SellingState,
    submission: Submission,
    pending: BookingRow,
    seen: Option<Box<Found>>,
) -> Result<Answer, Problem> {
    let state = state.clone();
    let tasks = state.tasks.clone();
    // Boxed: it is kilobytes, and a task is moved several times.
    let rest = Box::pin(async move {
        let Submission { show, new, token, gateway, intent, .. } = submission;
        let booking = pending.id;
        let ours = Key::OursSinceSubmit(if new.is_some() { StatusCode::CREATED } else { StatusCode::OK });
        if state.selling_settings.commits == CommitMode::Interactive {
            effects::charge_now(&state, booking).await;
            return answer_as_it_stands(&state, &show, booking, &intent, ours).await;
        }
        // Counted as the first question when the payment was written down.
        let route = Route { gateway: gateway.to_owned(), gateway_ref: None, payment_token: token };
        let asked = effects::ask_for_money(&state, &show, &pending, route).await;
        let (said, charged) = match asked {
            Ok(said) => (said, true),
            Err(cause) => {
                tracing::warn!(%booking, %cause, "the charge of {booking} has no answer yet");
                (None, false)
            }
        };
        let answer = Some((intent, ours));
        answered(
            state
                .commits
                .ask(&state, Work::Learn(Box::new(Lesson { show, booking, seen, said, charged, answer })))
                .await,
        )
    });
    let rest = tasks.spawn(rest.in_current_span());
    rest.await.map_err(|cause| Problem::internal(&cause))?
}

/// The booking as it stands, together with whatever else is committed.
pub(super) async fn as_it_stands(
    state: &SellingState,
    show: &Arc<Show>,
    booking: Uuid,
    intent: &Intent,
    key: Key,
) -> Result<Answer, Problem> {
    if state.selling_settings.commits == CommitMode::Interactive {
        return Box::pin(retried(|| answer_as_it_stands(state, show, booking, intent, key))).await;
    }
    let answer = Some((intent.clone(), key));
    let lesson = Lesson { show: Arc::clone(show), booking, seen: None, said: None, charged: false, answer };
    answered(state.commits.ask(state, Work::Learn(Box::new(lesson))).await)
}

fn answered(done: Result<Done, Problem>) -> Result<Answer, Problem> {
    match done? {
        Done::Answered(answer) => Ok(answer),
        other => Err(Problem::internal(&format!("a wish for an answer came to {other:?}"))),
    }
}

/// A buyer who is told "no" waits no longer for their hold to be opened.
const GIVE_UP_WITHIN: Duration = Duration::from_secs(3);
/// Postgres goes on no longer than that.
const BEGIN_GIVING_UP: &str = "BEGIN; SET LOCAL statement_timeout = '2500ms'";

/// Nothing was submitted, so the hold is its owner's to change again; unless somebody else's request
/// for the same booking was, meanwhile.
pub(in crate::bookings) async fn give_up_payment(state: &SellingState, show: &Show, row: &BookingRow) {
    let (booking, mut on) = (row.id, None);
    // Boxed, likewise: few are given up.
    let undone = Box::pin(async {
        let mut tx = on.insert(state.pg.acquire().await?).begin_with(BEGIN_GIVING_UP).await?;
        // By its hold: one that was to be made and paid for at once is not there, or another tab made it.
        let now = sql::lock_of_hold(&mut tx, row.hold_id).await?;
        if now.is_none_or(|now| now.machine.state == BookingState::SeatsLocked) {
            state.locks.end_payment(show.id, &row.sale(), PAYMENT_EXTENSION_MS).await?;
        }
        tx.commit().await?;
        Ok::<(), Problem>(())
    });
    let problem = match tokio::time::timeout(GIVE_UP_WITHIN, undone).await {
        Ok(Ok(())) => return,
        Ok(Err(problem)) => Some(problem),
        Err(_) => {
            on.iter_mut().for_each(PoolConnection::close_on_drop);
            None
        }
    };
    tracing::warn!(?problem, %booking, "the hold of {booking} stays closed until it expires");
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

/// Key, move, claims, payment and the wish to charge, in a transaction of its own. An answer instead: a twin
/// was faster.
pub(in crate::bookings) async fn submit_one(state: &SellingState, submission: &Submission) -> Result<Done, Problem> {
    let Submission { show, booking, new, token, instrument, person, gateway, until, intent, only_at, seen: _ } =
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
        return answer_as_it_stands(state, show, row.id, intent, Key::New).await.map(Done::Answered);
    }
    if only_at.is_some_and(|version| version != row.version) {
        return Err(unmoved(moves::MoveError::LostRace));
    }
    let submitted = Event::PaymentSubmitted { until: *until };
    let pending = match moves::apply(&mut tx, &row, submitted, causes::PRESSED_PAY, now).await {
        Ok(pending) => pending,
        Err(moves::MoveError::Refused(domain::booking::Refused::AlreadyDone)) => {
            // Another key was slightly faster. This one is not kept pending; it gets the booking as it is now.
            tx.rollback().await?;
            return answer_as_it_stands(state, show, row.id, intent, Key::New).await.map(Done::Answered);
        }
        Err(error) => return Err(unmoved(error)),
    };
    if let Some(new) = new {
        late::note_wish(&mut tx, &row, new.if_late).await?;
    }
    if let Some(person) = person {
        person_limit::claim(&mut tx, show, &pending, person, now).await?;
    }
    if let Some(instrument) = instrument {
        instruments::claim(&mut tx, show, &pending, instrument).await?;
    }
    if let Some(lost) = claims::claim_all(&mut tx, show, &pending, now).await? {
        tx.rollback().await?;
        return Err(lost.correct_map(state, show).await);
    }
    sql::insert_payment(&mut tx, &pending, gateway, token.as_deref(), now).await?;
    tx.commit().await?;
    Ok(Done::Submitted(Box::new(pending), None))
}

/// The booking as it stands, stored as the answer of this key.
pub(in crate::bookings) async fn answer_as_it_stands(
    state: &SellingState,
    show: &Show,
    booking: Uuid,
    intent: &Intent,
    key: Key,
) -> Result<Answer, Problem> {
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

//! Decisions of persons about parked effects, written into the booking's history: at the command line
//! by an operator, on a page or through the API by a manager of the theatre.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use domain::VariantName;
use domain::api::ProblemView;
use domain::api::parked::ParkedView;
use domain::api::systems::ReasonRequest;
use domain::booking::{BookingEvent, Effect};
use domain::time::Timestamp;
use serde::Deserialize;
use sqlx::{PgConnection, PgPool};
use strum::EnumString;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::checkout::create::move_problem;
use super::ledger;
use super::money::{payment_rows, refunds};
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::{Managers, StaffAction, StaffMutation, StaffRequest, reason_of};
use platform::clock::rfc3339;

/// The effect name of a difference between a gateway's ledger and our payment.
const LEDGER: &str = "compare_ledger";
/// The value for `payment_switches` after a person settled a gateway that the booking had left: it keeps
/// none of the payer's money. The booking's history has the details.
const SETTLED_AS: &str = "refunded";

/// A decision about a parked effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Decision {
    /// Puts the effect back in the queue.
    Retry,
    /// Closes it: a person did it in another way. A refund then counts as paid; late money without
    /// seats is refunded.
    #[strum(serialize = "settle")]
    Close,
}

impl Decision {
    const fn event(self) -> &'static str {
        match self {
            Self::Retry => "effect_retried",
            Self::Close => "effect_settled",
        }
    }

    const fn act(self) -> &'static str {
        match self {
            Self::Retry => "parked_retried",
            Self::Close => "parked_settled",
        }
    }
}

/// Puts a parked effect back in the queue.
///
/// # Errors
/// 404 when it is not parked (any more), 400 when the reason is invalid.
pub async fn retry_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> ApiResult<()> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    decide(&mut tx, (id, None), Decision::Retry, reason, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Puts all parked mails back in the queue, for instance after an outage of the mail server. Returns their number.
///
/// # Errors
/// 400 when the reason is invalid. When the database fails: mails before the failure are in the queue.
pub async fn retry_parked_mails(pg: &PgPool, reason: &str, now: Timestamp) -> ApiResult<usize> {
    let reason = reason_of(reason)?;
    let mut retried = 0;
    for id in outbox::parked_mails(pg).await? {
        match retry_parked(pg, id, reason, now).await {
            Ok(()) => retried += 1,
            // Another caller was faster.
            Err(problem) if problem.code() == Code::NotFound => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(retried)
}

/// Closes a parked effect.
///
/// # Errors
/// As [`retry_parked`].
pub async fn settle_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> ApiResult<()> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    decide(&mut tx, (id, None), Decision::Close, reason, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Returns the parked effects and open differences of a theatre, oldest first.
///
/// # Errors
/// When the database fails.
pub async fn parked_at(state: &SellingState, theatre: &str) -> ApiResult<Vec<ParkedView>> {
    let view = |job: outbox::ParkedEffect| ParkedView {
        id: job.id,
        booking: job.booking,
        reference: job.reference,
        effect: job.effect,
        amount: job.amount,
        attempts: job.attempts.unsigned_abs(),
        why: job.why,
        since: rfc3339(job.since),
    };
    let mut parked: Vec<ParkedView> = outbox::parked(&state.pg, Some(theatre)).await?.into_iter().map(view).collect();
    parked.extend(ledger::list_open_differences(&state.pg, Some(theatre)).await?.into_iter().map(difference_view));
    parked.sort_by_key(|one| one.id);
    Ok(parked)
}

fn difference_view(found: ledger::OpenDifference) -> ParkedView {
    ParkedView {
        id: found.id,
        booking: found.booking,
        reference: found.reference.unwrap_or_default(),
        effect: LEDGER.to_owned(),
        amount: Some(found.amount),
        attempts: 0,
        why: found.why,
        since: rfc3339(found.since),
    }
}

/// Returns the number of parked effects and open differences per theatre; theatres without any are left out.
///
/// # Errors
/// When the database fails.
pub async fn parked_counts(pg: &PgPool, theatres: &[String]) -> sqlx::Result<HashMap<String, i64>> {
    let mut counts = outbox::parked_counts(pg, theatres).await?;
    for (theatre, differences) in ledger::open_counts(pg, theatres).await? {
        *counts.entry(theatre).or_default() += differences;
    }
    Ok(counts)
}

/// Applies a manager's decision about a parked effect of their theatre.
///
/// # Errors
/// 404 when it is not parked (any more) or another theatre's, 400 when the reason is invalid.
pub async fn decide_parked(
    state: &SellingState,
    action: &StaffAction<'_>,
    id: i64,
    decision: Decision,
) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let reference = decide(&mut begun.tx, (id, Some(action.theatre)), decision, begun.reason, begun.now).await?;
    let answer = begun.finish(decision.act(), format!("booking {reference}"), Answer::no_content()).await?;
    outbox::wake(state);
    Ok(answer)
}

/// Applies a decision in the caller's transaction, limited to this theatre's shows if one is given. Returns the
/// reference of the booking.
async fn decide(
    tx: &mut PgConnection,
    (id, theatre): (i64, Option<&str>),
    decision: Decision,
    reason: &str,
    now: Timestamp,
) -> ApiResult<String> {
    let gone = || Problem::not_found("parked effect");
    let Some((booking, effect)) = outbox::parked_effect(tx, id, theatre).await? else {
        return decide_difference(tx, (id, theatre), decision, reason, now).await;
    };
    // The booking is locked first, as by every other writer.
    let row = sql::lock(tx, booking).await?.ok_or_else(gone)?;
    let was_parked = match decision {
        Decision::Retry => outbox::retry(tx, id, now).await?,
        Decision::Close => outbox::settle(tx, id).await?,
    };
    if !was_parked {
        return Err(gone());
    }
    let words = format!("{}: {reason}", effect.as_str());
    let cause = Cause { actor: "staff", reason: &words };
    let row = moves::note(tx, &row, decision.event(), cause, now).await.map_err(move_problem)?;
    if decision == Decision::Close {
        apply_consequences(tx, &row, effect, cause, now).await.map_err(move_problem)?;
    }
    Ok(row.reference)
}

/// Applies a decision about a difference between the ledger of a gateway and our payment.
async fn decide_difference(
    tx: &mut PgConnection,
    (id, theatre): (i64, Option<&str>),
    decision: Decision,
    reason: &str,
    now: Timestamp,
) -> ApiResult<String> {
    let gone = || Problem::not_found("parked effect");
    let found = ledger::find(tx, id, theatre).await?.ok_or_else(gone)?;
    let was_open = match decision {
        Decision::Retry => ledger::compare_again(tx, id, now).await?,
        Decision::Close => ledger::settle(tx, id, now).await?,
    };
    if !was_open {
        return Err(gone());
    }
    // An unknown booking has no history.
    let Some(row) = found.booking else { return Ok(String::new()) };
    let words = format!("{LEDGER}: {reason}");
    let event = match decision {
        Decision::Retry => "ledger_compared_again",
        Decision::Close => "ledger_settled",
    };
    let row =
        moves::note(tx, &row, event, Cause { actor: "staff", reason: &words }, now).await.map_err(move_problem)?;
    Ok(row.reference)
}

/// Applies the consequences of a settled effect to its booking.
async fn apply_consequences(
    tx: &mut PgConnection,
    row: &BookingRow,
    effect: Effect,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), MoveError> {
    match effect {
        Effect::Refund { amount } => {
            if !refunds::request_within_charge(tx, row.id, 0, amount, now).await? {
                // The refund should never have been ordered. The books cannot refund more than was charged, and a
                // manager must be able to close it: the history keeps the decision, and no refund is counted.
                tracing::error!(booking = %row.id, %amount, "a refund of {} above what was charged was settled by a person and is not counted", row.id);
                return refunds::settle_uncounted(tx, row, cause, now).await;
            }
            refunds::settle(tx, row, 0, cause, now).await
        }
        Effect::RefundPart { number, .. } => refunds::settle(tx, row, number, cause, now).await,
        Effect::VoidLeft => {
            // Otherwise the next round of `void_left` would refund the money a second time.
            for gateway in payment_rows::unsettled_gateways(tx, row.id).await? {
                payment_rows::settle_left(tx, row.id, &gateway, SETTLED_AS, now).await?;
            }
            Ok(())
        }
        Effect::PlaceLate => {
            moves::apply(tx, row, BookingEvent::LateMoneyReturned { amount: row.machine.total }, cause, now)
                .await
                .map(drop)
        }
        _ => Ok(()),
    }
}

/// The routes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(retry)).routes(routes!(settle))
}

/// Effects of bookings of your theatre that failed and wait for a person, oldest first.
///
/// Parked effects of your bookings, which wait for a person, oldest first; a difference between a gateway's ledger
/// and a payment here has the effect `compare_ledger`.
#[utoipa::path(get, path = "/theatres/{theatre}/parked", tag = "bookings",
    responses((status = 200, body = Vec<ParkedView>)))]
async fn list(State(state): State<SellingState>, from: StaffRequest<Managers>) -> ApiResult<Json<Vec<ParkedView>>> {
    parked_at(&state, &from.theatre).await.map(Json)
}

#[derive(Deserialize)]
struct ParkedPath {
    parked: i64,
}

/// Retry a parked effect.
///
/// Retry a parked effect, `{"reason": …}`. A difference is compared again, and money that is not recorded here
/// becomes a late payment.
#[utoipa::path(post, path = "/theatres/{theatre}/parked/{parked}/retry", tag = "bookings", request_body = ReasonRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "Not parked, or not any more; also for another theatre's staff")))]
async fn retry(
    State(state): State<SellingState>,
    mutation: StaffMutation<Managers, ParkedPath, ReasonRequest>,
) -> ApiResult<Answer> {
    decide_parked(&state, &mutation.action(&mutation.body.reason), mutation.from.path.parked, Decision::Retry).await
}

/// Close a parked effect, because it was done in another way or need not be done.
///
/// Remove a parked effect, because you settled it in another way, `{"reason": …}`: a refund counts as paid, a late
/// payment that waits for seats is refunded, a ledger difference is not listed again.
///
/// A refund then counts as paid back, and late money is refunded.
#[utoipa::path(post, path = "/theatres/{theatre}/parked/{parked}/settle", tag = "bookings",
    request_body = ReasonRequest, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "Not parked, or not any more; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state: the booking moved at the same moment, or late money went another way; still_running")))]
async fn settle(
    State(state): State<SellingState>,
    mutation: StaffMutation<Managers, ParkedPath, ReasonRequest>,
) -> ApiResult<Answer> {
    decide_parked(&state, &mutation.action(&mutation.body.reason), mutation.from.path.parked, Decision::Close).await
}

//! Decisions of persons about parked effects, written into the booking's history: at the command line
//! by an operator, on a page or through the API by a manager of the theatre.

mod endpoints;

use std::collections::HashMap;

use domain::api::parked::ParkedView;
use domain::api::systems::ReasonRequest;
use domain::booking::{BookingEvent, Effect};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use strum::{EnumString, IntoStaticStr};

pub(super) use self::endpoints::routes;
use super::cancel::reason_of;
use super::checkout::create::unmoved;
use super::history;
use super::ledger;
use super::money::{payment_rows, refunds};
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use http::Problem;
use http::idempotency::{Answer, Intent};
use identity::accounts::Staff;
use identity::audit::{self, AuditEntry};
use platform::clock::rfc3339;

/// The effect name of a difference between a gateway's ledger and our payment.
const LEDGER: &str = "compare_ledger";
/// The value for `payment_switches` after a person settled a gateway that the booking had left: it keeps
/// none of the payer's money. The booking's history has the details.
const SETTLED_AS: &str = "refunded";

/// A decision about a parked effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
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
    /// Returns its event name in the booking's history.
    const fn event(self) -> &'static str {
        match self {
            Self::Retry => "effect_retried",
            Self::Close => "effect_settled",
        }
    }

    /// Returns its name in the audit log.
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
pub async fn retry_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> Result<(), Problem> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    decide(&mut tx, (id, None), Decision::Retry, reason, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Closes a parked effect.
///
/// # Errors
/// As [`retry_parked`].
pub async fn settle_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> Result<(), Problem> {
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
pub async fn parked_at(state: &SellingState, theatre: &str) -> Result<Vec<ParkedView>, Problem> {
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
    let mut parked: Vec<ParkedView> = outbox::parked_at(&state.pg, theatre).await?.into_iter().map(view).collect();
    parked.extend(ledger::open_at(&state.pg, theatre).await?.into_iter().map(difference_view));
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
    staff: &Staff,
    (theatre, id, decision): (&str, i64, Decision),
    request: &ReasonRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let reference = decide(&mut tx, (id, Some(theatre)), decision, reason, now).await?;
    let subject = format!("booking {reference}");
    let entry = AuditEntry::by(staff.session.account, decision.act(), subject, reason).at(theatre);
    audit::record(&mut tx, &entry, now).await?;
    let answer = intent.commit(tx, Answer::no_content(), now).await?;
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
) -> Result<String, Problem> {
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
    let words = format!("{}: {reason}", outbox::effect_name(effect));
    let cause = Cause { actor: "staff", reason: &words };
    let row = history::note(tx, &row, decision.event(), cause, now).await.map_err(unmoved)?;
    if decision == Decision::Close {
        follow(tx, &row, effect, cause, now).await.map_err(unmoved)?;
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
) -> Result<String, Problem> {
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
    let row = history::note(tx, &row, event, Cause { actor: "staff", reason: &words }, now).await.map_err(unmoved)?;
    Ok(row.reference)
}

/// Applies the consequences of a settled effect to its booking.
async fn follow(
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
            for gateway in payment_rows::unsettled(tx, row.id).await? {
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

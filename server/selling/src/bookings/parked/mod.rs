//! What a person decides about an effect that failed too often, written into the booking's story: at the command line
//! by an operator, on a page or through the API by a manager of the theatre.

mod endpoints;

use std::collections::HashMap;

use domain::api::parked::ParkedView;
use domain::api::systems::ReasonRequest;
use domain::booking::{Effect, Event};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};

pub(super) use self::endpoints::routes;
use super::cancel::reason_of;
use super::checkout::create::unmoved;
use super::ledger;
use super::money::{payment_rows, refunds};
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow};
use super::story;
use crate::{SellingState, outbox};
use http::Problem;
use http::idempotency::{Answer, Intent};
use identity::accounts::Staff;
use identity::audit::{self, Entry};
use platform::clock::rfc3339;

/// Name of a difference between a gateway's ledger and a payment here, in the place of an effect's name.
const LEDGER: &str = "compare_ledger";
/// How it ended, for `payment_switches`, at a gateway that a booking had left and that a person has seen to: it keeps
/// nothing of the payer's. How that came about is in the booking's story.
const SETTLED_AS: &str = "refunded";

/// What becomes of a parked effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is put back to work.
    Retry,
    /// It is taken off the list: a person did it in another way. A refund counts as paid back then; late money that
    /// found no seats goes back.
    Settle,
}

impl Decision {
    /// The last part of its address.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Settle => "settle",
        }
    }

    /// The decision of that name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Retry, Self::Settle].into_iter().find(|decision| decision.as_str() == name)
    }

    /// Its name in the booking's story.
    const fn event(self) -> &'static str {
        match self {
            Self::Retry => "effect_retried",
            Self::Settle => "effect_settled",
        }
    }

    /// Its name in the list of who did what.
    const fn act(self) -> &'static str {
        match self {
            Self::Retry => "parked_retried",
            Self::Settle => "parked_settled",
        }
    }
}

/// Puts a parked effect back to work.
///
/// # Errors
/// 404 when it is not parked (any more), 400 when the reason cannot be used.
pub async fn retry_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> Result<(), Problem> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    decide(&mut tx, (id, None), Decision::Retry, reason, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Takes a parked effect off the list.
///
/// # Errors
/// As [`retry_parked`].
pub async fn settle_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> Result<(), Problem> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    decide(&mut tx, (id, None), Decision::Settle, reason, now).await?;
    tx.commit().await?;
    Ok(())
}

/// What waits for a person in a theatre, the oldest first.
///
/// # Errors
/// When the database fails.
pub async fn parked_at(state: &SellingState, theatre: &str) -> Result<Vec<ParkedView>, Problem> {
    let view = |job: outbox::Parked| ParkedView {
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

/// The number of parked effects and open differences in each of these theatres; a theatre without any is left out.
///
/// # Errors
/// When the database fails.
pub async fn parked_counts(pg: &PgPool, theatres: &[String]) -> Result<HashMap<String, i64>, sqlx::Error> {
    let mut counts = outbox::parked_counts(pg, theatres).await?;
    for (theatre, differences) in ledger::open_counts(pg, theatres).await? {
        *counts.entry(theatre).or_default() += differences;
    }
    Ok(counts)
}

/// A manager of the theatre decides about one of its parked effects.
///
/// # Errors
/// 404 when it is not parked (any more) or another theatre's, 400 when the reason cannot be used.
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
    let entry = Entry::by(staff.session.account, decision.act(), subject, reason).at(theatre);
    audit::record(&mut tx, &entry, now).await?;
    let answer = intent.commit(tx, Answer::no_content(), now).await?;
    outbox::wake(state);
    Ok(answer)
}

/// Decides in the caller's transaction, about shows of this theatre alone if one is named. Returns the reference of the
/// booking.
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
    // The booking first, like every other writer.
    let row = sql::lock(tx, booking).await?.ok_or_else(gone)?;
    let was_parked = match decision {
        Decision::Retry => outbox::retry(tx, id, now).await?,
        Decision::Settle => outbox::settle(tx, id).await?,
    };
    if !was_parked {
        return Err(gone());
    }
    let words = format!("{}: {reason}", outbox::effect_name(effect));
    let cause = Cause { actor: "staff", reason: &words };
    let row = story::note(tx, &row, decision.event(), cause, now).await.map_err(unmoved)?;
    if decision == Decision::Settle {
        follow(tx, &row, effect, cause, now).await.map_err(unmoved)?;
    }
    Ok(row.reference)
}

/// Decides about a difference between the ledger of a gateway and a payment here, likewise.
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
        Decision::Settle => ledger::settle(tx, id, now).await?,
    };
    if !was_open {
        return Err(gone());
    }
    // A booking that is not here has no story.
    let Some(row) = found.booking else { return Ok(String::new()) };
    let words = format!("{LEDGER}: {reason}");
    let event = match decision {
        Decision::Retry => "ledger_compared_again",
        Decision::Settle => "ledger_settled",
    };
    let row = story::note(tx, &row, event, Cause { actor: "staff", reason: &words }, now).await.map_err(unmoved)?;
    Ok(row.reference)
}

/// What it means for the booking that a person did it.
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
                // An order that should never have been. The books have no room for more than came in, and a manager
                // must be rid of it: the story keeps who decided, and no refund is counted.
                tracing::error!(booking = %row.id, %amount, "a refund of {} above what was charged was settled by a person and is not counted", row.id);
                return refunds::settle_uncounted(tx, row, cause, now).await;
            }
            refunds::settle(tx, row, 0, cause, now).await
        }
        Effect::RefundPart { number, .. } => refunds::settle(tx, row, number, cause, now).await,
        Effect::VoidLeft => {
            // Or the next look at what the booking left would send the money back a second time.
            for gateway in payment_rows::unsettled(tx, row.id).await? {
                payment_rows::settle_left(tx, row.id, &gateway, SETTLED_AS, now).await?;
            }
            Ok(())
        }
        Effect::PlaceLate => {
            moves::apply(tx, row, Event::LateMoneyReturned { amount: row.machine.total }, cause, now).await.map(drop)
        }
        _ => Ok(()),
    }
}

//! The shifts at tills: float, drops and cash-up; and the close of the day by a manager.

use axum::http::StatusCode;
use domain::api::box_office::{CashUp, CashUpFor, DayClose, DayView, DropRequest, OpenTill, TillView};
use domain::money::Money;
use domain::till::{Means, TillEntryKind, is_plausible_count};
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, NewLine, TillRecord};
use super::{CounterStaff, ledger};
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::accounts::reason_of;
use identity::audit::{self, AuditEntry};
use platform::clock::{from_utc, rfc3339};
use platform::ids;

/// Maximum number of tills per day.
const MAX_TILLS: i64 = 200;

/// The problem of a request without an open till.
pub(super) fn no_till() -> Problem {
    Problem::new(Code::TillClosed, "Open your till first: say how much cash is in it.")
}

/// The audit subject of a till.
fn subject(till: &TillRecord) -> String {
    format!("till {}", till.id)
}

/// Validates a counted sum.
fn check_counted(minor: i64) -> Result<i64, Problem> {
    if is_plausible_count(minor) {
        Ok(minor)
    } else {
        Err(Problem::new(Code::Malformed, "A till cannot hold that sum."))
    }
}

/// Returns the caller's open till with its ledger.
pub async fn mine(state: &BackofficeState, counter: CounterStaff<'_>) -> Result<Option<TillView>, Problem> {
    let mut connection = state.pg.acquire().await?;
    match sql::open_till(&mut connection, counter.theatre, counter.account()).await? {
        Some(till) => ledger::with_lines(&mut connection, &till).await.map(Some),
        None => Ok(None),
    }
}

/// Opens the caller's till with its float.
///
/// # Errors
/// 409 when the caller already has an open till here, 400 for an invalid sum.
pub async fn open(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    request: OpenTill,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    let float = check_counted(request.float_minor)?;
    let currency = counter.currency(state).await?;
    let (id, account) = (ids::new_id(), counter.account());
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    if !sql::insert_till(&mut tx, id, (counter.theatre, account), currency.code(), now).await? {
        return Err(Problem::new(Code::TillOpen, "Your till is open already. Count it before you open another."));
    }
    let till = lock(&mut tx, counter).await?;
    let line = NewLine {
        till: id,
        entry: TillEntryKind::Float,
        means: Means::Cash,
        amount_minor: float,
        booking: None,
        actor: account,
        reason: "Opened.",
    };
    sql::insert_line(&mut tx, &line, now).await?;
    let words = format!("Opened with {}.", Money::new(float, currency));
    let act = AuditEntry::by(account, "till_opened", subject(&till), &words).at(counter.theatre);
    audit::record(&mut tx, &act, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &ledger::with_lines(&mut tx, &till).await?)?;
    intent.commit(tx, answer, now).await
}

/// Returns the caller's open till, locked.
pub(super) async fn lock(tx: &mut PgConnection, counter: CounterStaff<'_>) -> Result<TillRecord, Problem> {
    sql::lock_open_till(tx, counter.theatre, counter.account()).await?.ok_or_else(no_till)
}

/// Moves cash from the caller's till to the safe.
///
/// # Errors
/// 409 when the caller has no open till, or less cash in it. 400 for an invalid sum or reason.
pub async fn drop_cash(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    request: &DropRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    let amount = check_counted(request.amount_minor)?;
    let reason = reason_of(&request.reason)?;
    if amount == 0 {
        return Err(Problem::new(Code::Malformed, "Nothing is no drop."));
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = lock(&mut tx, counter).await?;
    let before = ledger::one(&mut tx, &till).await?;
    require_cash(&before, amount)?;
    let line = NewLine {
        till: till.id,
        entry: TillEntryKind::Drop,
        means: Means::Cash,
        amount_minor: -amount,
        booking: None,
        actor: counter.account(),
        reason,
    };
    sql::insert_line(&mut tx, &line, now).await?;
    let words = format!("{}: {reason}", Money::new(amount, before.expected.currency));
    let act = AuditEntry::by(counter.account(), "till_drop", subject(&till), &words).at(counter.theatre);
    audit::record(&mut tx, &act, now).await?;
    let answer = Answer::json(StatusCode::OK, &ledger::with_lines(&mut tx, &till).await?)?;
    intent.commit(tx, answer, now).await
}

/// Fails when the till holds less cash than `amount`, minor units.
pub(super) fn require_cash(till: &TillView, amount: i64) -> Result<(), Problem> {
    if till.expected.minor >= amount {
        return Ok(());
    }
    let detail = format!("There should be {} in your till: that is too little.", till.expected);
    Err(Problem::new(Code::TillShort, detail))
}

/// Ends a shift: stores the counted sum beside the expected sum and closes the till.
///
/// # Errors
/// 409 when no till is open. 400 for an invalid sum, or a difference without a reason.
pub async fn cash_up(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    request: &CashUp,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    let counted = check_counted(request.counted_minor)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = lock(&mut tx, counter).await?;
    let expected = ledger::one(&mut tx, &till).await?.expected;
    let difference = Money::new(counted - expected.minor, expected.currency);
    if difference.minor != 0 && request.reason.trim().is_empty() {
        let detail = format!("{expected} should be in the till. Count again, or say why it is another sum.");
        return Err(Problem::new(Code::TillDiffers, detail));
    }
    let reason = if request.reason.trim().is_empty() { "It was right." } else { reason_of(&request.reason)? };
    if !sql::close_till(&mut tx, till.id, (expected.minor, counted), None, now).await? {
        return Err(no_till());
    }
    let words = format!("Counted {}, difference {difference}: {reason}", Money::new(counted, expected.currency));
    let act = AuditEntry::by(counter.account(), "till_cashed_up", subject(&till), &words).at(counter.theatre);
    audit::record(&mut tx, &act, now).await?;
    let closed = TillRecord { closed_at: Some(platform::clock::to_utc(now)), counted_minor: Some(counted), ..till };
    let answer = Answer::json(StatusCode::OK, &ledger::with_lines(&mut tx, &closed).await?)?;
    intent.commit(tx, answer, now).await
}

/// Counts the till of a person who left without counting it, so that the day can be closed. The person sees the
/// manager's name and reason (`last_till_counted_by_manager`).
///
/// # Errors
/// 404 for another theatre's till. 409 when it is already counted. 400 for an invalid sum or without a reason.
pub async fn cash_up_for(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    till: Uuid,
    request: &CashUpFor,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    let counted = check_counted(request.counted_minor)?;
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = sql::lock_till(&mut tx, counter.theatre, till).await?.ok_or_else(|| Problem::not_found("till"))?;
    let was_counted = || Problem::new(Code::WrongState, "This till was counted already.");
    if till.closed_at.is_some() {
        return Err(was_counted());
    }
    let expected = ledger::one(&mut tx, &till).await?.expected;
    let in_place = Some((counter.account(), reason));
    if !sql::close_till(&mut tx, till.id, (expected.minor, counted), in_place, now).await? {
        return Err(was_counted());
    }
    let currency = expected.currency;
    let difference = Money::new(counted - expected.minor, currency);
    let sum = Money::new(counted, currency);
    let words = format!("Of {}, counted {sum}, difference {difference}: {reason}", till.person);
    let act = AuditEntry::by(counter.account(), "till_cashed_up_for", subject(&till), &words).at(counter.theatre);
    audit::record(&mut tx, &act, now).await?;
    let closed = sql::lock_till(&mut tx, counter.theatre, till.id).await?;
    let closed = closed.ok_or_else(|| Problem::internal(&"a till that was counted is gone"))?;
    let answer = Answer::json(StatusCode::OK, &ledger::one(&mut tx, &closed).await?)?;
    intent.commit(tx, answer, now).await
}

/// Returns the caller's last till if a manager counted it. The page shows it until the caller opens another.
pub async fn last_till_counted_by_manager(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
) -> Result<Option<TillView>, Problem> {
    let mut connection = state.pg.acquire().await?;
    match sql::last_till(&mut connection, counter.theatre, counter.account()).await? {
        Some(till) if till.counted_by.is_some() => ledger::one(&mut connection, &till).await.map(Some),
        _ => Ok(None),
    }
}

/// Returns the tills that belong to no closed day.
pub async fn of_the_day(state: &BackofficeState, counter: CounterStaff<'_>) -> Result<Vec<TillView>, Problem> {
    let mut connection = state.pg.acquire().await?;
    let tills = sql::of_the_day(&mut connection, counter.theatre, MAX_TILLS).await?;
    ledger::views(&mut connection, &tills).await
}

/// Closes the day: all tills must be counted; their sums are added up.
///
/// # Errors
/// 409 while a till is open, or when there is no till to close.
pub async fn close_day(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    request: &DayClose,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let tills = sql::lock_of_the_day(&mut tx, counter.theatre, MAX_TILLS).await?;
    if let Some(open) = tills.iter().find(|till| till.closed_at.is_none()) {
        let detail =
            format!("The till of {} is still open. Every till is counted before the day is closed.", open.person);
        return Err(Problem::new(Code::TillOpen, detail));
    }
    if tills.is_empty() {
        return Err(Problem::new(Code::TillClosed, "No till was counted since the last day was closed."));
    }
    let ids: Vec<_> = tills.iter().map(|till| till.id).collect();
    let number = sql::close_day(&mut tx, counter.theatre, &ids, counter.account(), reason, now).await?;
    let day = day(number, rfc3339(now), ledger::views(&mut tx, &tills).await?)?;
    let words = format!("{} tills, difference {}: {reason}", day.tills.len(), day.difference);
    let act = AuditEntry::by(counter.account(), "day_closed", format!("day {number}"), &words).at(counter.theatre);
    audit::record(&mut tx, &act, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &day)?;
    intent.commit(tx, answer, now).await
}

fn day(number: i32, closed_at: String, tills: Vec<TillView>) -> Result<DayView, Problem> {
    let sum = |of: fn(&TillView) -> Money| {
        let sum = tills.iter().map(of).map(Some).reduce(|sum, one| sum?.checked_add(one?)).flatten();
        sum.ok_or_else(|| Problem::internal(&format!("the tills of day {number} do not add up")))
    };
    let (cash, card) = (sum(|till| till.cash)?, sum(|till| till.card)?);
    let difference = sum(|till| till.difference.unwrap_or(Money::new(0, till.float.currency)))?;
    Ok(DayView { number: number.cast_unsigned(), closed_at, cash, card, difference, tills })
}

/// Returns the last closed day.
pub async fn last_close(state: &BackofficeState, counter: CounterStaff<'_>) -> Result<Option<DayView>, Problem> {
    let mut connection = state.pg.acquire().await?;
    let Some((number, at)) = sql::last_close(&mut connection, counter.theatre).await? else { return Ok(None) };
    let tills = sql::of_close(&mut connection, counter.theatre, number, MAX_TILLS).await?;
    let tills = ledger::views(&mut connection, &tills).await?;
    day(number, rfc3339(from_utc(at)), tills).map(Some)
}

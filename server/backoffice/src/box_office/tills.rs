//! The shifts at tills: float, drops and cash-up; and the close of the day by a manager. A till's ledger is append-only, and
//! every writer locks the row of the till first.

use std::collections::HashMap;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::api::box_office::{CashUp, CashUpFor, DayClose, DayView, DropRequest, OpenTill, TillRow, TillView};
use domain::money::{Currency, Money};
use domain::till::{LedgerLine, Means, TillEntryKind, TillSums, is_plausible_count};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::CounterStaff;
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::reason_of;
use platform::clock::{from_utc, rfc3339, to_utc};
use platform::database::BindAll;
use platform::ids;

/// Maximum number of tills per day.
const MAX_TILLS: i64 = 200;

/// The problem of a request without an open till.
pub(super) fn no_till() -> Problem {
    Problem::new(Code::TillClosed, "Open your till first: say how much cash is in it.")
}

fn subject(till: &TillRecord) -> String {
    format!("till {}", till.id)
}

/// Validates a counted sum.
fn check_counted(minor: i64) -> ApiResult<i64> {
    if is_plausible_count(minor) {
        Ok(minor)
    } else {
        Err(Problem::new(Code::Malformed, "A till cannot hold that sum."))
    }
}

/// Returns the caller's open till with its ledger.
pub async fn mine(state: &BackofficeState, counter: CounterStaff<'_>) -> ApiResult<Option<TillView>> {
    let mut connection = state.pg.acquire().await?;
    match open_till(&mut connection, counter.theatre, counter.account()).await? {
        Some(till) => with_lines(&mut connection, &till).await.map(Some),
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
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let float = check_counted(request.float_minor)?;
    let currency = counter.currency(state).await?;
    let (id, account) = (ids::new_id(), counter.account());
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    if !insert_till(&mut tx, id, (counter.theatre, account), currency.code(), now).await? {
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
    insert_line(&mut tx, &line, now).await?;
    let words = format!("Opened with {}.", Money::new(float, currency));
    counter.record(&mut tx, "till_opened", subject(&till), &words, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &with_lines(&mut tx, &till).await?)?;
    intent.commit(tx, answer, now).await
}

/// Returns the caller's open till, locked.
pub(super) async fn lock(tx: &mut PgConnection, counter: CounterStaff<'_>) -> ApiResult<TillRecord> {
    lock_open_till(tx, counter.theatre, counter.account()).await?.ok_or_else(no_till)
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
) -> ApiResult<Answer> {
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
    let before = till_view(&mut tx, &till).await?;
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
    insert_line(&mut tx, &line, now).await?;
    let words = format!("{}: {reason}", Money::new(amount, before.expected.currency));
    counter.record(&mut tx, "till_drop", subject(&till), &words, now).await?;
    let answer = Answer::json(StatusCode::OK, &with_lines(&mut tx, &till).await?)?;
    intent.commit(tx, answer, now).await
}

/// Fails when the till holds less cash than `amount`, minor units.
fn require_cash(till: &TillView, amount: i64) -> ApiResult<()> {
    if till.expected.minor >= amount {
        return Ok(());
    }
    let detail = format!("There should be {} in your till: that is too little.", till.expected);
    Err(Problem::new(Code::TillShort, detail))
}

/// Adds the money of a refund or an exchange at the counter to the ledger, also when it is zero; money by a gateway, which
/// has no means, concerns no till. Money out in cash needs that much cash in the till.
pub(super) async fn book(
    tx: &mut PgConnection,
    counter: CounterStaff<'_>,
    till: Option<&TillRecord>,
    (entry, booking): (TillEntryKind, Uuid),
    (means, amount): (Option<Means>, Money),
    reason: &str,
    now: Timestamp,
) -> ApiResult<()> {
    let Some(means) = means else { return Ok(()) };
    let till = till.ok_or_else(no_till)?;
    if amount.currency.code() != till.currency {
        return Err(Problem::new(Code::WrongState, "Your till is in another currency than this booking."));
    }
    if means == Means::Cash && amount.minor < 0 {
        require_cash(&till_view(tx, till).await?, -amount.minor)?;
    }
    let (till, actor, amount_minor) = (till.id, counter.account(), amount.minor);
    let line = NewLine { till, entry, means, amount_minor, booking: Some(booking), actor, reason };
    Ok(insert_line(tx, &line, now).await?)
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
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let counted = check_counted(request.counted_minor)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = lock(&mut tx, counter).await?;
    let expected = till_view(&mut tx, &till).await?.expected;
    let difference = Money::new(counted - expected.minor, expected.currency);
    if difference.minor != 0 && request.reason.trim().is_empty() {
        let detail = format!("{expected} should be in the till. Count again, or say why it is another sum.");
        return Err(Problem::new(Code::TillDiffers, detail));
    }
    let reason = if request.reason.trim().is_empty() { "It was right." } else { reason_of(&request.reason)? };
    if !close_till(&mut tx, till.id, (expected.minor, counted), None, now).await? {
        return Err(no_till());
    }
    let words = format!("Counted {}, difference {difference}: {reason}", Money::new(counted, expected.currency));
    counter.record(&mut tx, "till_cashed_up", subject(&till), &words, now).await?;
    let closed = TillRecord { closed_at: Some(platform::clock::to_utc(now)), counted_minor: Some(counted), ..till };
    let answer = Answer::json(StatusCode::OK, &with_lines(&mut tx, &closed).await?)?;
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
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let counted = check_counted(request.counted_minor)?;
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let till = lock_till(&mut tx, counter.theatre, till).await?.ok_or_else(|| Problem::not_found("till"))?;
    let was_counted = || Problem::new(Code::WrongState, "This till was counted already.");
    if till.closed_at.is_some() {
        return Err(was_counted());
    }
    let expected = till_view(&mut tx, &till).await?.expected;
    let counted_by = Some((counter.account(), reason));
    if !close_till(&mut tx, till.id, (expected.minor, counted), counted_by, now).await? {
        return Err(was_counted());
    }
    let currency = expected.currency;
    let difference = Money::new(counted - expected.minor, currency);
    let sum = Money::new(counted, currency);
    let words = format!("Of {}, counted {sum}, difference {difference}: {reason}", till.person);
    counter.record(&mut tx, "till_cashed_up_for", subject(&till), &words, now).await?;
    let closed = lock_till(&mut tx, counter.theatre, till.id).await?;
    let closed = closed.ok_or_else(|| Problem::internal(&"a till that was counted is gone"))?;
    let answer = Answer::json(StatusCode::OK, &till_view(&mut tx, &closed).await?)?;
    intent.commit(tx, answer, now).await
}

/// Returns the caller's last till if a manager counted it. The page shows it until the caller opens another.
pub async fn last_till_counted_by_manager(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
) -> ApiResult<Option<TillView>> {
    let mut connection = state.pg.acquire().await?;
    match last_till(&mut connection, counter.theatre, counter.account()).await? {
        Some(till) if till.counted_by.is_some() => till_view(&mut connection, &till).await.map(Some),
        _ => Ok(None),
    }
}

/// Returns the tills that belong to no closed day.
pub async fn of_the_day(state: &BackofficeState, counter: CounterStaff<'_>) -> ApiResult<Vec<TillView>> {
    let mut connection = state.pg.acquire().await?;
    let tills = load_of_the_day(&mut connection, counter.theatre).await?;
    views(&mut connection, &tills).await
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
) -> ApiResult<Answer> {
    let now = state.clock.now();
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let tills = lock_of_the_day(&mut tx, counter.theatre).await?;
    if let Some(open) = tills.iter().find(|till| till.closed_at.is_none()) {
        let detail =
            format!("The till of {} is still open. Every till is counted before the day is closed.", open.person);
        return Err(Problem::new(Code::TillOpen, detail));
    }
    if tills.is_empty() {
        return Err(Problem::new(Code::TillClosed, "No till was counted since the last day was closed."));
    }
    let ids: Vec<_> = tills.iter().map(|till| till.id).collect();
    let number = insert_day_close(&mut tx, counter.theatre, &ids, counter.account(), reason, now).await?;
    let day = day(number, rfc3339(now), views(&mut tx, &tills).await?)?;
    let words = format!("{} tills, difference {}: {reason}", day.tills.len(), day.difference);
    counter.record(&mut tx, "day_closed", format!("day {number}"), &words, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &day)?;
    intent.commit(tx, answer, now).await
}

fn day(number: i32, closed_at: String, tills: Vec<TillView>) -> ApiResult<DayView> {
    let sum = |of: fn(&TillView) -> Money| {
        Money::total(tills.iter().map(of))
            .ok_or_else(|| Problem::internal(&format!("the tills of day {number} do not add up")))
    };
    let (cash, card) = (sum(|till| till.cash)?, sum(|till| till.card)?);
    let difference = sum(|till| till.difference.unwrap_or(Money::new(0, till.float.currency)))?;
    Ok(DayView { number: number.cast_unsigned(), closed_at, cash, card, difference, tills })
}

/// Returns the last closed day.
pub async fn last_close(state: &BackofficeState, counter: CounterStaff<'_>) -> ApiResult<Option<DayView>> {
    let mut connection = state.pg.acquire().await?;
    let Some((number, at)) = load_last_close(&mut connection, counter.theatre).await? else { return Ok(None) };
    let tills = of_close(&mut connection, counter.theatre, number).await?;
    let tills = views(&mut connection, &tills).await?;
    day(number, rfc3339(from_utc(at)), tills).map(Some)
}

/// Maximum number of ledger lines in a view.
const MAX_LINES: i64 = 200;

/// Returns these tills with their sums, in their order.
async fn views(tx: &mut PgConnection, tills: &[TillRecord]) -> ApiResult<Vec<TillView>> {
    let ids: Vec<Uuid> = tills.iter().map(|till| till.id).collect();
    let mut lines: HashMap<Uuid, Vec<LedgerLine>> = HashMap::new();
    for (till, kind, means, amount_minor) in load_sums(tx, &ids).await? {
        lines.entry(till).or_default().push((entry_of(&kind)?, means_of(&means)?, amount_minor));
    }
    tills.iter().map(|till| view_of(till, lines.remove(&till.id).unwrap_or_default())).collect()
}

/// Returns one till with its sums and latest lines.
async fn with_lines(tx: &mut PgConnection, till: &TillRecord) -> ApiResult<TillView> {
    let mut view = till_view(tx, till).await?;
    let currency = view.float.currency;
    let rows = load_lines(tx, till.id).await?;
    view.rows = rows.into_iter().map(|row| row_view(row, currency)).collect::<Result<_, _>>()?;
    Ok(view)
}

async fn till_view(tx: &mut PgConnection, till: &TillRecord) -> ApiResult<TillView> {
    let views = views(tx, std::slice::from_ref(till)).await?;
    views.into_iter().next().ok_or_else(|| Problem::internal(&"a till without a view"))
}

fn view_of(till: &TillRecord, lines: Vec<LedgerLine>) -> ApiResult<TillView> {
    let currency = Currency::parse(&till.currency).ok_or_else(|| corrupt("tills.currency", &till.currency))?;
    let too_much = || Problem::internal(&format!("the ledger of till {} does not add up", till.id));
    let sums = TillSums::of(lines).ok_or_else(too_much)?;
    let expected = sums.expected().ok_or_else(too_much)?;
    let money = |minor| Money::new(minor, currency);
    Ok(TillView {
        id: till.id,
        person: till.person.clone(),
        opened_at: rfc3339(from_utc(till.opened_at)),
        closed_at: till.closed_at.map(|at| rfc3339(from_utc(at))),
        float: money(sums.float),
        cash: money(sums.cash),
        card: money(sums.card),
        dropped: money(sums.dropped),
        expected: money(expected),
        counted: till.counted_minor.map(money),
        difference: till.counted_minor.map(|counted| money(counted - expected)),
        counted_by: till.counted_by.clone(),
        counted_why: till.counted_why.clone(),
        rows: Vec::new(),
    })
}

fn entry_of(text: &str) -> ApiResult<TillEntryKind> {
    text.parse().map_err(|_| corrupt("till_rows.kind", text))
}

fn means_of(text: &str) -> ApiResult<Means> {
    text.parse().map_err(|_| corrupt("till_rows.means", text))
}

fn row_view(row: LineRow, currency: Currency) -> ApiResult<TillRow> {
    Ok(TillRow {
        number: row.number.cast_unsigned(),
        kind: entry_of(&row.kind)?,
        means: means_of(&row.means)?,
        amount: Money::new(row.amount_minor, currency),
        booking: row.booking_id,
        reference: row.reference,
        reason: row.reason,
        at: rfc3339(from_utc(row.at)),
    })
}

/// An invalid stored value is an error that names it, never a default.
fn corrupt(column: &str, value: &str) -> Problem {
    Problem::internal(&format!("{column} is {value:?}"))
}

/// A till as stored, with the name of its person.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct TillRecord {
    pub(super) id: Uuid,
    pub(super) person: String,
    pub(super) currency: String,
    pub(super) opened_at: DateTime<Utc>,
    pub(super) closed_at: Option<DateTime<Utc>>,
    pub(super) counted_minor: Option<i64>,
    /// The manager who counted the till in place of its person.
    pub(super) counted_by: Option<String>,
    pub(super) counted_why: Option<String>,
}

macro_rules! select_till {
    ($rest:literal) => {
        concat!(
            "SELECT till.id, account.name AS person, till.currency, till.opened_at, till.closed_at, till.counted_minor,
                    manager.name AS counted_by, till.counted_why
             FROM tills till JOIN accounts account ON account.id = till.account_id
             LEFT JOIN accounts manager ON manager.id = till.counted_by WHERE ",
            $rest
        )
    };
}

pub(super) async fn currency(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT currency FROM theatres WHERE id = $1").bind(theatre).fetch_optional(tx).await
}

pub(super) async fn open_till(tx: &mut PgConnection, theatre: &str, account: Uuid) -> sqlx::Result<Option<TillRecord>> {
    let sql = select_till!("till.theatre_id = $1 AND till.account_id = $2 AND till.closed_at IS NULL");
    sqlx::query_as(sql).bind_all((theatre, account)).fetch_optional(tx).await
}

/// Returns the open till, locked until the transaction ends.
pub(super) async fn lock_open_till(
    tx: &mut PgConnection,
    theatre: &str,
    account: Uuid,
) -> sqlx::Result<Option<TillRecord>> {
    let sql =
        select_till!("till.theatre_id = $1 AND till.account_id = $2 AND till.closed_at IS NULL FOR UPDATE OF till");
    sqlx::query_as(sql).bind_all((theatre, account)).fetch_optional(tx).await
}

/// Returns a till of a theatre, open or closed, locked until the transaction ends.
async fn lock_till(tx: &mut PgConnection, theatre: &str, till: Uuid) -> sqlx::Result<Option<TillRecord>> {
    let sql = select_till!("till.theatre_id = $1 AND till.id = $2 FOR UPDATE OF till");
    sqlx::query_as(sql).bind_all((theatre, till)).fetch_optional(tx).await
}

async fn last_till(tx: &mut PgConnection, theatre: &str, account: Uuid) -> sqlx::Result<Option<TillRecord>> {
    let sql = select_till!(
        "till.theatre_id = $1 AND till.account_id = $2 ORDER BY till.opened_at DESC, till.id DESC LIMIT 1"
    );
    sqlx::query_as(sql).bind_all((theatre, account)).fetch_optional(tx).await
}

/// Returns the tills of a theatre that belong to no closed day, the oldest first, locked until the transaction ends.
async fn lock_of_the_day(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<Vec<TillRecord>> {
    let sql = select_till!(
        "till.theatre_id = $1 AND till.day_close IS NULL ORDER BY till.opened_at, till.id LIMIT $2 FOR UPDATE OF till"
    );
    sqlx::query_as(sql).bind_all((theatre, MAX_TILLS)).fetch_all(tx).await
}

/// Returns the tills of a theatre that belong to no closed day, the oldest first.
async fn load_of_the_day(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<Vec<TillRecord>> {
    let sql = select_till!("till.theatre_id = $1 AND till.day_close IS NULL ORDER BY till.opened_at, till.id LIMIT $2");
    sqlx::query_as(sql).bind_all((theatre, MAX_TILLS)).fetch_all(tx).await
}

/// Returns the tills of a closed day.
async fn of_close(tx: &mut PgConnection, theatre: &str, number: i32) -> sqlx::Result<Vec<TillRecord>> {
    let sql = select_till!("till.theatre_id = $1 AND till.day_close = $2 ORDER BY till.opened_at, till.id LIMIT $3");
    sqlx::query_as(sql).bind_all((theatre, number, MAX_TILLS)).fetch_all(tx).await
}

/// Opens a till; `false` when the person already has an open one in the theatre.
async fn insert_till(
    tx: &mut PgConnection,
    id: Uuid,
    (theatre, account): (&str, Uuid),
    currency: &str,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "INSERT INTO tills (id, theatre_id, account_id, currency, opened_at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (theatre_id, account_id) WHERE closed_at IS NULL DO NOTHING";
    let inserted = sqlx::query(sql).bind_all((id, theatre, account, currency, to_utc(now))).execute(tx).await?;
    Ok(inserted.rows_affected() == 1)
}

/// Closes a locked till with the counted sum; `counted_by` is the manager who counted it for its person, and the reason.
/// Returns `false` when the till is already closed.
async fn close_till(
    tx: &mut PgConnection,
    id: Uuid,
    (expected, counted): (i64, i64),
    counted_by: Option<(Uuid, &str)>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let closed = sqlx::query(
        "UPDATE tills SET closed_at = $2, expected_minor = $3, counted_minor = $4, counted_by = $5, counted_why = $6
         WHERE id = $1 AND closed_at IS NULL",
    )
    .bind_all((id, to_utc(now), expected, counted, counted_by.map(|(by, _)| by), counted_by.map(|(_, why)| why)))
    .execute(tx)
    .await?;
    Ok(closed.rows_affected() == 1)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NewLine<'a> {
    pub(super) till: Uuid,
    pub(super) entry: TillEntryKind,
    pub(super) means: Means,
    /// Money in; negative: money out.
    pub(super) amount_minor: i64,
    pub(super) booking: Option<Uuid>,
    pub(super) actor: Uuid,
    pub(super) reason: &'a str,
}

/// Adds a line to a locked till.
pub(super) async fn insert_line(tx: &mut PgConnection, line: &NewLine<'_>, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO till_rows (till_id, number, kind, means, amount_minor, booking_id, actor, reason, at)
         SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5, $6, $7, $8 FROM till_rows WHERE till_id = $1",
    )
    .bind_all((line.till, line.entry.as_str(), line.means.as_str(), line.amount_minor))
    .bind_all((line.booking, line.actor, line.reason, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the sums of these tills' lines, by kind and means.
async fn load_sums(tx: &mut PgConnection, tills: &[Uuid]) -> sqlx::Result<Vec<(Uuid, String, String, i64)>> {
    let sql = "SELECT till_id, kind, means, sum(amount_minor)::bigint AS amount_minor FROM till_rows
               WHERE till_id = ANY($1) GROUP BY till_id, kind, means";
    sqlx::query_as(sql).bind(tills).fetch_all(tx).await
}

/// A line of a ledger as stored.
#[derive(Clone, Debug, platform::FromRow)]
struct LineRow {
    pub(super) number: i32,
    pub(super) kind: String,
    pub(super) means: String,
    pub(super) amount_minor: i64,
    pub(super) booking_id: Option<Uuid>,
    pub(super) reference: Option<String>,
    pub(super) reason: String,
    pub(super) at: DateTime<Utc>,
}

/// Returns the latest lines of a till, the newest first.
async fn load_lines(tx: &mut PgConnection, till: Uuid) -> sqlx::Result<Vec<LineRow>> {
    sqlx::query_as(
        "SELECT line.number, line.kind, line.means, line.amount_minor, line.booking_id, booking.reference, line.reason,
                line.at
         FROM till_rows line LEFT JOIN bookings booking ON booking.id = line.booking_id
         WHERE line.till_id = $1 ORDER BY line.number DESC LIMIT $2",
    )
    .bind_all((till, MAX_LINES))
    .fetch_all(tx)
    .await
}

/// Returns the till that took the money of a booking, the seller and the time.
pub(super) async fn sale_of(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<(Uuid, Uuid, DateTime<Utc>)>> {
    let sql = "SELECT till_id, actor, at FROM till_rows WHERE booking_id = $1 AND kind = 'sale'";
    sqlx::query_as(sql).bind(booking).fetch_optional(tx).await
}

/// Records a closed day with these tills; returns its number.
async fn insert_day_close(
    tx: &mut PgConnection,
    theatre: &str,
    tills: &[Uuid],
    by: Uuid,
    reason: &str,
    now: Timestamp,
) -> sqlx::Result<i32> {
    // The row lock serialises concurrent closes, so that each gets its own number.
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(&mut *tx).await?;
    let sql = "INSERT INTO day_closes (theatre_id, number, closed_by, closed_at, reason)
         SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4 FROM day_closes WHERE theatre_id = $1 RETURNING number";
    let number: i32 = sqlx::query_scalar(sql).bind_all((theatre, by, to_utc(now), reason)).fetch_one(&mut *tx).await?;
    let sql = "UPDATE tills SET day_close = $3
               WHERE theatre_id = $1 AND id = ANY($2) AND day_close IS NULL AND closed_at IS NOT NULL";
    let taken = sqlx::query(sql).bind_all((theatre, tills, number)).execute(tx).await?;
    assert_eq!(taken.rows_affected(), tills.len() as u64, "the tills were locked a statement ago");
    Ok(number)
}

async fn load_last_close(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<Option<(i32, DateTime<Utc>)>> {
    let sql = "SELECT number, closed_at FROM day_closes WHERE theatre_id = $1 ORDER BY number DESC LIMIT 1";
    sqlx::query_as(sql).bind(theatre).fetch_optional(tx).await
}

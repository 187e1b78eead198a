//! Queries of `tills`, `till_rows` and `day_closes`. Every writer locks the till's row first.

use chrono::{DateTime, Utc};
use domain::till::{Means, TillEntryKind};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use platform::clock::to_utc;

/// A till as stored, with the name of its person.
#[derive(Clone, Debug, sqlx::FromRow)]
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

/// Returns the currency of a theatre.
pub(super) async fn currency(tx: &mut PgConnection, theatre: &str) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT currency FROM theatres WHERE id = $1").bind(theatre).fetch_optional(tx).await
}

/// Returns the open till of a person in a theatre.
pub(super) async fn open_till(
    tx: &mut PgConnection,
    theatre: &str,
    account: Uuid,
) -> Result<Option<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!("till.theatre_id = $1 AND till.account_id = $2 AND till.closed_at IS NULL"))
        .bind(theatre)
        .bind(account)
        .fetch_optional(tx)
        .await
}

/// Returns the open till, locked until the transaction ends.
pub(super) async fn lock_open_till(
    tx: &mut PgConnection,
    theatre: &str,
    account: Uuid,
) -> Result<Option<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!(
        "till.theatre_id = $1 AND till.account_id = $2 AND till.closed_at IS NULL FOR UPDATE OF till"
    ))
    .bind(theatre)
    .bind(account)
    .fetch_optional(tx)
    .await
}

/// Returns a till of a theatre, open or closed, locked until the transaction ends.
pub(super) async fn lock_till(
    tx: &mut PgConnection,
    theatre: &str,
    till: Uuid,
) -> Result<Option<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!("till.theatre_id = $1 AND till.id = $2 FOR UPDATE OF till"))
        .bind(theatre)
        .bind(till)
        .fetch_optional(tx)
        .await
}

/// Returns the till a person opened last in a theatre.
pub(super) async fn last_till(
    tx: &mut PgConnection,
    theatre: &str,
    account: Uuid,
) -> Result<Option<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!(
        "till.theatre_id = $1 AND till.account_id = $2 ORDER BY till.opened_at DESC, till.id DESC LIMIT 1"
    ))
    .bind(theatre)
    .bind(account)
    .fetch_optional(tx)
    .await
}

/// Returns the tills of a theatre that belong to no closed day, the oldest first, locked until the transaction ends.
pub(super) async fn lock_of_the_day(
    tx: &mut PgConnection,
    theatre: &str,
    limit: i64,
) -> Result<Vec<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!(
        "till.theatre_id = $1 AND till.day_close IS NULL ORDER BY till.opened_at, till.id LIMIT $2 FOR UPDATE OF till"
    ))
    .bind(theatre)
    .bind(limit)
    .fetch_all(tx)
    .await
}

/// Returns the tills of a theatre that belong to no closed day, the oldest first.
pub(super) async fn of_the_day(
    tx: &mut PgConnection,
    theatre: &str,
    limit: i64,
) -> Result<Vec<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!(
        "till.theatre_id = $1 AND till.day_close IS NULL ORDER BY till.opened_at, till.id LIMIT $2"
    ))
    .bind(theatre)
    .bind(limit)
    .fetch_all(tx)
    .await
}

/// Returns the tills of a closed day.
pub(super) async fn of_close(
    tx: &mut PgConnection,
    theatre: &str,
    number: i32,
    limit: i64,
) -> Result<Vec<TillRecord>, sqlx::Error> {
    sqlx::query_as(select_till!(
        "till.theatre_id = $1 AND till.day_close = $2 ORDER BY till.opened_at, till.id LIMIT $3"
    ))
    .bind(theatre)
    .bind(number)
    .bind(limit)
    .fetch_all(tx)
    .await
}

/// Opens a till; `false` when the person already has an open one in the theatre.
pub(super) async fn insert_till(
    tx: &mut PgConnection,
    id: Uuid,
    (theatre, account): (&str, Uuid),
    currency: &str,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query(
        "INSERT INTO tills (id, theatre_id, account_id, currency, opened_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (theatre_id, account_id) WHERE closed_at IS NULL DO NOTHING",
    )
    .bind(id)
    .bind(theatre)
    .bind(account)
    .bind(currency)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Closes a locked till with the counted sum; `in_place` is the manager who counted it for its person, and the reason.
/// Returns `false` when the till is already closed.
pub(super) async fn close_till(
    tx: &mut PgConnection,
    id: Uuid,
    (expected, counted): (i64, i64),
    in_place: Option<(Uuid, &str)>,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let closed = sqlx::query(
        "UPDATE tills SET closed_at = $2, expected_minor = $3, counted_minor = $4, counted_by = $5, counted_why = $6
         WHERE id = $1 AND closed_at IS NULL",
    )
    .bind(id)
    .bind(to_utc(now))
    .bind(expected)
    .bind(counted)
    .bind(in_place.map(|(by, _)| by))
    .bind(in_place.map(|(_, why)| why))
    .execute(tx)
    .await?;
    Ok(closed.rows_affected() == 1)
}

/// A new line of a ledger.
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
pub(super) async fn insert_line(tx: &mut PgConnection, line: &NewLine<'_>, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO till_rows (till_id, number, kind, means, amount_minor, booking_id, actor, reason, at)
         SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5, $6, $7, $8 FROM till_rows WHERE till_id = $1",
    )
    .bind(line.till)
    .bind(line.entry.as_str())
    .bind(line.means.as_str())
    .bind(line.amount_minor)
    .bind(line.booking)
    .bind(line.actor)
    .bind(line.reason)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// A sum of a till's lines of one kind.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct SumRow {
    pub(super) till_id: Uuid,
    pub(super) kind: String,
    pub(super) means: String,
    pub(super) amount_minor: i64,
}

/// Returns the sums of these tills' lines, by kind and means.
pub(super) async fn sums(tx: &mut PgConnection, tills: &[Uuid]) -> Result<Vec<SumRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT till_id, kind, means, sum(amount_minor)::bigint AS amount_minor FROM till_rows
         WHERE till_id = ANY($1) GROUP BY till_id, kind, means",
    )
    .bind(tills)
    .fetch_all(tx)
    .await
}

/// A line of a ledger as stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct LineRow {
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
pub(super) async fn lines(tx: &mut PgConnection, till: Uuid, limit: i64) -> Result<Vec<LineRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT line.number, line.kind, line.means, line.amount_minor, line.booking_id, booking.reference, line.reason,
                line.at
         FROM till_rows line LEFT JOIN bookings booking ON booking.id = line.booking_id
         WHERE line.till_id = $1 ORDER BY line.number DESC LIMIT $2",
    )
    .bind(till)
    .bind(limit)
    .fetch_all(tx)
    .await
}

/// Returns the till that took the money of a booking, the seller and the time.
pub(super) async fn sale_of(
    tx: &mut PgConnection,
    booking: Uuid,
) -> Result<Option<(Uuid, Uuid, DateTime<Utc>)>, sqlx::Error> {
    sqlx::query_as("SELECT till_id, actor, at FROM till_rows WHERE booking_id = $1 AND kind = 'sale'")
        .bind(booking)
        .fetch_optional(tx)
        .await
}

/// Records a closed day with these tills; returns its number.
pub(super) async fn close_day(
    tx: &mut PgConnection,
    theatre: &str,
    tills: &[Uuid],
    by: Uuid,
    reason: &str,
    now: Timestamp,
) -> Result<i32, sqlx::Error> {
    // The row lock serialises concurrent closes, so that each gets its own number.
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(&mut *tx).await?;
    let number: i32 = sqlx::query_scalar(
        "INSERT INTO day_closes (theatre_id, number, closed_by, closed_at, reason)
         SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4 FROM day_closes WHERE theatre_id = $1 RETURNING number",
    )
    .bind(theatre)
    .bind(by)
    .bind(to_utc(now))
    .bind(reason)
    .fetch_one(&mut *tx)
    .await?;
    let taken = sqlx::query(
        "UPDATE tills SET day_close = $3
         WHERE theatre_id = $1 AND id = ANY($2) AND day_close IS NULL AND closed_at IS NOT NULL",
    )
    .bind(theatre)
    .bind(tills)
    .bind(number)
    .execute(tx)
    .await?;
    assert_eq!(taken.rows_affected(), tills.len() as u64, "the tills were locked a statement ago");
    Ok(number)
}

/// Returns the number and the time of the last closed day.
pub(super) async fn last_close(
    tx: &mut PgConnection,
    theatre: &str,
) -> Result<Option<(i32, DateTime<Utc>)>, sqlx::Error> {
    sqlx::query_as("SELECT number, closed_at FROM day_closes WHERE theatre_id = $1 ORDER BY number DESC LIMIT 1")
        .bind(theatre)
        .fetch_optional(tx)
        .await
}

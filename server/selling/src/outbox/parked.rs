//! Queries of parked effects, which failed too often and wait for a person. `bookings::parked` applies the decisions
//! and writes them into the booking's history.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::booking::Effect;
use domain::money::{Currency, Money};
use domain::time::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row};
use uuid::Uuid;

use super::relay::Lane;
use super::sql::{self, JobRow};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Maximum parked effects listed at once, oldest first.
pub const MAX_LISTED: i64 = 500;

/// A parked effect.
#[derive(Clone, Debug)]
pub struct ParkedEffect {
    /// Its id, for [`retry`] and [`settle`].
    pub id: i64,
    /// The booking it is about.
    pub booking: Uuid,
    /// The booking's reference.
    pub reference: String,
    /// The name of the effect, for example `refund`.
    pub effect: String,
    /// The amount of a refund.
    pub amount: Option<Money>,
    /// The number of attempts.
    pub attempts: i32,
    /// The last error.
    pub why: String,
    /// The time when it was enqueued.
    pub since: Timestamp,
}

/// Returns the parked effects, oldest first, up to [`MAX_LISTED`]; only of this theatre's shows if one is given.
///
/// # Errors
/// When the database fails, or has a corrupt row.
pub async fn parked(pg: &PgPool, theatre: Option<&str>) -> sqlx::Result<Vec<ParkedEffect>> {
    let sql = "SELECT job.id, job.booking_id, booking.reference, job.effect, job.amount_minor, booking.currency,
                job.attempts, job.parked_why, job.created_at
         FROM outbox job
         JOIN bookings booking ON booking.id = job.booking_id
         JOIN shows show ON show.id = booking.show_id
         JOIN screens screen ON screen.id = show.screen_id
         WHERE job.parked_why IS NOT NULL AND ($1::text IS NULL OR screen.theatre_id = $1) ORDER BY job.id LIMIT $2";
    let rows = sqlx::query(sql).bind_all((theatre, MAX_LISTED)).fetch_all(pg).await?;
    rows.iter().map(read).collect()
}

fn read(row: &PgRow) -> sqlx::Result<ParkedEffect> {
    let code: String = row.try_get("currency")?;
    let currency =
        Currency::parse(&code).ok_or_else(|| sqlx::Error::Decode(format!("bookings.currency is {code:?}").into()))?;
    Ok(ParkedEffect {
        id: row.try_get("id")?,
        booking: row.try_get("booking_id")?,
        reference: row.try_get("reference")?,
        effect: row.try_get("effect")?,
        amount: row.try_get::<Option<i64>, _>("amount_minor")?.map(|minor| Money::new(minor, currency)),
        attempts: row.try_get("attempts")?,
        why: row.try_get("parked_why")?,
        since: from_utc(row.try_get::<DateTime<Utc>, _>("created_at")?),
    })
}

/// Returns the number of all parked effects.
///
/// # Errors
/// When the database fails.
pub async fn count_parked(pg: &PgPool) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").fetch_one(pg).await
}

/// Returns the ids of all parked mails, oldest first.
///
/// # Errors
/// When the database fails.
pub async fn parked_mails(pg: &PgPool) -> sqlx::Result<Vec<i64>> {
    let sql = "SELECT id FROM outbox WHERE parked_why IS NOT NULL AND effect = ANY($1) ORDER BY id";
    sqlx::query_scalar(sql).bind(Lane::Mail.effects()).fetch_all(pg).await
}

/// Returns the number of parked effects per theatre; theatres without any are left out.
///
/// # Errors
/// When the database fails.
pub async fn parked_counts(pg: &PgPool, theatres: &[String]) -> sqlx::Result<HashMap<String, i64>> {
    let sql = "SELECT screen.theatre_id, count(*)
               FROM outbox job
               JOIN bookings booking ON booking.id = job.booking_id
               JOIN shows show ON show.id = booking.show_id
               JOIN screens screen ON screen.id = show.screen_id
               WHERE job.parked_why IS NOT NULL AND screen.theatre_id = ANY($1) GROUP BY screen.theatre_id";
    let counts: Vec<(String, i64)> = sqlx::query_as(sql).bind(theatres).fetch_all(pg).await?;
    Ok(counts.into_iter().collect())
}

/// Returns the numbers of a booking's parked refunds.
///
/// # Errors
/// When the database fails.
pub async fn parked_refunds(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Vec<i32>> {
    let sql = "SELECT refund_number FROM outbox
               WHERE booking_id = $1 AND effect IN ('refund', 'refund_part') AND parked_why IS NOT NULL";
    sqlx::query_scalar(sql).bind(booking).fetch_all(tx).await
}

/// Returns those of these bookings whose refund of the rest is parked.
///
/// # Errors
/// When the database fails.
pub async fn with_parked_refund(pg: &PgPool, bookings: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    if bookings.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_scalar(
        "SELECT booking_id FROM outbox WHERE booking_id = ANY($1) AND effect = 'refund' AND parked_why IS NOT NULL",
    )
    .bind(bookings)
    .fetch_all(pg)
    .await
}

/// Removes the parked refund of that number, because it reached the payer after all. True if it was parked.
///
/// # Errors
/// When the database fails.
pub async fn unpark_refund(tx: &mut PgConnection, booking: Uuid, number: u32) -> sqlx::Result<bool> {
    let sql = "DELETE FROM outbox WHERE booking_id = $1 AND effect IN ('refund', 'refund_part') AND refund_number = $2
                 AND parked_why IS NOT NULL";
    let taken = sqlx::query(sql).bind_all((booking, number.cast_signed())).execute(tx).await?;
    Ok(taken.rows_affected() > 0)
}

/// Returns the booking and the effect of a parked row, limited to shows of this theatre if one is given; `None` when
/// it is not parked (any more), or another theatre's.
///
/// # Errors
/// When the database fails, or has a corrupt row.
pub async fn parked_effect(
    tx: &mut PgConnection,
    id: i64,
    theatre: Option<&str>,
) -> sqlx::Result<Option<(Uuid, Effect)>> {
    let row: Option<JobRow> = sqlx::query_as(
        "SELECT job.id, job.booking_id, job.effect, job.amount_minor, job.refund_number, booking.currency, job.attempts
         FROM outbox job
         JOIN bookings booking ON booking.id = job.booking_id
         JOIN shows show ON show.id = booking.show_id
         JOIN screens screen ON screen.id = show.screen_id
         WHERE job.id = $1 AND job.parked_why IS NOT NULL AND ($2::text IS NULL OR screen.theatre_id = $2)",
    )
    .bind_all((id, theatre))
    .fetch_optional(tx)
    .await?;
    row.map(|row| sql::parse_job(row).map(|job| (job.booking, job.effect))).transpose()
}

/// Puts a parked effect back in the queue and resets its attempts; `false` when another caller was faster.
///
/// # Errors
/// When the database fails.
pub async fn retry(tx: &mut PgConnection, id: i64, now: Timestamp) -> sqlx::Result<bool> {
    let put_back = sqlx::query(
        "UPDATE outbox SET parked_why = NULL, attempts = 0, run_after = $2 WHERE id = $1 AND parked_why IS NOT NULL",
    )
    .bind_all((id, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(put_back.rows_affected() == 1)
}

/// Removes a parked effect: a person did it in another way, or it need not be done. `false`
/// when another caller was faster.
///
/// # Errors
/// When the database fails.
pub async fn settle(tx: &mut PgConnection, id: i64) -> sqlx::Result<bool> {
    let taken = sqlx::query("DELETE FROM outbox WHERE id = $1 AND parked_why IS NOT NULL").bind(id).execute(tx).await?;
    Ok(taken.rows_affected() == 1)
}

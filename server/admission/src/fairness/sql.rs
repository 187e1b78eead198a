//! Queries of `unusual_flags`.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::batch::FlagRow;
use platform::clock::to_utc;

/// Owners of these who bought something in that show, or began to pay for it.
pub(super) async fn load_buyers(pg: &PgPool, asked: &[(Uuid, &str)]) -> Result<HashSet<(Uuid, String)>, sqlx::Error> {
    let bought: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT DISTINCT booking.show_id, booking.owner
         FROM unnest($1::uuid[], $2::text[]) AS asked (show_id, owner)
         JOIN bookings booking ON booking.owner = asked.owner AND booking.show_id = asked.show_id
         WHERE booking.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED')",
    )
    .bind(asked.iter().map(|(show, _)| *show).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, owner)| *owner).collect::<Vec<_>>())
    .fetch_all(pg)
    .await?;
    Ok(bought.into_iter().collect())
}

/// Accounts of these who work at that show's theatre.
pub(super) async fn load_staff(pg: &PgPool, asked: &[(Uuid, Uuid)]) -> Result<HashSet<(Uuid, Uuid)>, sqlx::Error> {
    let working: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT DISTINCT asked.show_id, asked.account_id
         FROM unnest($1::uuid[], $2::uuid[]) AS asked (show_id, account_id)
         JOIN shows show ON show.id = asked.show_id
         JOIN screens screen ON screen.id = show.screen_id
         JOIN staff_grants staff ON staff.account_id = asked.account_id AND staff.theatre_id = screen.theatre_id",
    )
    .bind(asked.iter().map(|(show, _)| *show).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, account)| *account).collect::<Vec<_>>())
    .fetch_all(pg)
    .await?;
    Ok(working.into_iter().collect())
}

/// Deletes the `never_bought` flags of buyers, except those a manager has dismissed.
pub(super) async fn delete_never_bought(pg: &PgPool, rows: &[FlagRow<'_>]) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM unusual_flags flag
         USING unnest($1::uuid[], $2::text[], $3::text[]) AS bought (show_id, subject, tag)
         WHERE flag.show_id = bought.show_id AND flag.kind = 'never_bought' AND flag.subject = bought.subject
           AND flag.tag = bought.tag AND flag.dismissed_at IS NULL",
    )
    .bind(rows.iter().map(|row| row.sighting.key.show).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.sighting.key.subject.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.tag.as_str()).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(())
}

/// Writes flags: adds to existing ones, and inserts new ones for shows with fewer than `most`.
pub(super) async fn write(pg: &PgPool, rows: &[FlagRow<'_>], most: i64) -> Result<(), sqlx::Error> {
    let all = |text: fn(&FlagRow<'_>) -> String| rows.iter().map(text).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO unusual_flags (id, show_id, theatre_id, kind, subject, tag, seen, since, last_at)
         SELECT found.*
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                     $8::timestamptz[], $9::timestamptz[])
              AS found (id, show_id, theatre_id, kind, subject, tag, seen, since, last_at)
         JOIN shows show ON show.id = found.show_id
         WHERE (SELECT count(*) FROM unusual_flags flag WHERE flag.show_id = found.show_id) < $10
            OR EXISTS (SELECT 1 FROM unusual_flags flag
                       WHERE flag.show_id = found.show_id AND flag.kind = found.kind
                         AND flag.subject = found.subject AND flag.tag = found.tag)
         ORDER BY found.show_id, found.kind, found.subject, found.tag
         ON CONFLICT (show_id, kind, subject, tag) DO UPDATE
         SET seen = unusual_flags.seen + EXCLUDED.seen,
             since = LEAST(unusual_flags.since, EXCLUDED.since),
             last_at = GREATEST(unusual_flags.last_at, EXCLUDED.last_at)",
    )
    .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.sighting.key.show).collect::<Vec<_>>())
    .bind(all(|row| row.theatre.clone()))
    .bind(all(|row| row.sighting.kind.as_str().to_owned()))
    .bind(all(|row| row.sighting.key.subject.as_str().to_owned()))
    .bind(all(|row| row.tag.clone()))
    .bind(rows.iter().map(|row| i64::from(row.sighting.unwritten)).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| to_utc(row.sighting.since)).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| to_utc(row.sighting.last)).collect::<Vec<_>>())
    .bind(most)
    .execute(pg)
    .await?;
    Ok(())
}

/// A row of `unusual_flags`.
#[derive(sqlx::FromRow)]
pub(super) struct Flag {
    pub(super) id: Uuid,
    pub(super) show_id: Uuid,
    pub(super) kind: String,
    pub(super) subject: String,
    pub(super) tag: String,
    pub(super) seen: i64,
    pub(super) since: DateTime<Utc>,
    pub(super) last_at: DateTime<Utc>,
    pub(super) dismissed_at: Option<DateTime<Utc>>,
    pub(super) reason: Option<String>,
}

/// Flags of a theatre: those not dismissed first, then the latest.
pub(super) async fn of_theatre(pg: &PgPool, theatre: &str, limit: i64) -> Result<Vec<Flag>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, show_id, kind, subject, tag, seen, since, last_at, dismissed_at, reason FROM unusual_flags
         WHERE theatre_id = $1 ORDER BY dismissed_at IS NOT NULL, last_at DESC, id LIMIT $2",
    )
    .bind(theatre)
    .bind(limit)
    .fetch_all(pg)
    .await
}

/// Dismisses a flag. `None`: the theatre has no such flag; `false`: it was dismissed before.
pub(super) async fn dismiss(
    tx: &mut PgConnection,
    theatre: &str,
    id: Uuid,
    (by, reason): (Uuid, &str),
    now: Timestamp,
) -> Result<Option<bool>, sqlx::Error> {
    let put_aside = sqlx::query(
        "UPDATE unusual_flags SET dismissed_at = $3, dismissed_by = $4, reason = $5
         WHERE id = $1 AND theatre_id = $2 AND dismissed_at IS NULL",
    )
    .bind(id)
    .bind(theatre)
    .bind(to_utc(now))
    .bind(by)
    .bind(reason)
    .execute(&mut *tx)
    .await?;
    if put_aside.rows_affected() == 1 {
        return Ok(Some(true));
    }
    let there: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM unusual_flags WHERE id = $1 AND theatre_id = $2)")
            .bind(id)
            .bind(theatre)
            .fetch_one(tx)
            .await?;
    Ok(there.then_some(false))
}

/// Deletes flags last seen before that time.
pub(super) async fn purge(pg: &PgPool, before: Timestamp, limit: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM unusual_flags WHERE id IN (SELECT id FROM unusual_flags WHERE last_at < $1 ORDER BY last_at LIMIT $2)",
    )
    .bind(to_utc(before))
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(())
}

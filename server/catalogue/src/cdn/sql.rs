//! Queries of `cdn` and `cdn_purges`. All times in them are Postgres' own: it writes the rows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::{FromRow, PgPool};

use platform::clock::from_utc;

/// Rows taken with the tags of one call: a tag may be wanted by many changes.
const MAX_ROWS: i64 = 2_000;
/// Parked tags named at once, the oldest first.
const MAX_LISTED: i64 = 500;
/// Lifetime of the record that a CDN is configured, seconds: longer than any pause between two servers.
const BELIEVED_S: f64 = 24.0 * 3_600.0;

/// A wish for a purge that was taken: which, in which round, and at which try.
#[derive(Clone, Debug, FromRow)]
pub(super) struct DuePurge {
    pub(super) id: i64,
    pub(super) tag: String,
    pub(super) round: i16,
    pub(super) tries: i32,
}

/// The retry of a failed purge.
pub(super) struct PostponedPurge {
    pub(super) pause_s: f64,
    /// Set when it is parked.
    pub(super) parked_why: Option<String>,
}

/// Records that a CDN is configured: from now on changes write their tags.
pub async fn announce(pg: &PgPool) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO cdn (there, told_until) VALUES (true, now() + make_interval(secs => $1))
         ON CONFLICT (there) DO UPDATE SET told_until = EXCLUDED.told_until",
    )
    .bind(BELIEVED_S)
    .execute(pg)
    .await?;
    Ok(())
}

/// Takes all wishes that are due for so many tags, the oldest first, and for so long. What another replica takes just now
/// is passed over.
pub(super) async fn take_due(pg: &PgPool, tags: i64, lease: Duration) -> Result<Vec<DuePurge>, sqlx::Error> {
    sqlx::query_as(
        "WITH wanted AS (SELECT tag FROM cdn_purges WHERE parked_why IS NULL AND run_after <= now()
                         GROUP BY tag ORDER BY min(id) LIMIT $1),
              due AS (SELECT id FROM cdn_purges
                      WHERE parked_why IS NULL AND run_after <= now() AND tag IN (SELECT tag FROM wanted)
                      ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
         UPDATE cdn_purges purge SET tries = purge.tries + 1, run_after = now() + make_interval(secs => $3)
         FROM due WHERE purge.id = due.id
         RETURNING purge.id, purge.tag, purge.round, purge.tries",
    )
    .bind(tags)
    .bind(MAX_ROWS)
    .bind(lease.as_secs_f64())
    .fetch_all(pg)
    .await
}

/// Records a success: the first round is followed by the second, and the second by deletion. Rows that another replica has
/// leased since stay.
pub(super) async fn record_purged(pg: &PgPool, purges: &[DuePurge], again_after: Duration) -> Result<(), sqlx::Error> {
    let (ids, rounds, tries) = keys(purges);
    sqlx::query(
        "WITH purged AS (SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::integer[]) AS purged (id, round, tries)),
              again AS (UPDATE cdn_purges purge
                        SET round = 2, tries = 0, due_at = now() + make_interval(secs => $4),
                            run_after = now() + make_interval(secs => $4)
                        FROM purged WHERE purge.id = purged.id AND purge.round = purged.round AND purge.tries = purged.tries
                                    AND purge.round = 1)
         DELETE FROM cdn_purges purge USING purged
         WHERE purge.id = purged.id AND purge.round = purged.round AND purge.tries = purged.tries AND purge.round = 2",
    )
    .bind(ids)
    .bind(rounds)
    .bind(tries)
    .bind(again_after.as_secs_f64())
    .execute(pg)
    .await?;
    Ok(())
}

/// The CDN has not: each is tried again after its pause, or waits for a person.
pub(super) async fn postpone(pg: &PgPool, purges: &[DuePurge], later: &[PostponedPurge]) -> Result<(), sqlx::Error> {
    let (ids, rounds, tries) = keys(purges);
    sqlx::query(
        "UPDATE cdn_purges purge
         SET run_after = now() + make_interval(secs => failed.pause_s), parked_why = failed.why
         FROM unnest($1::bigint[], $2::smallint[], $3::integer[], $4::float8[], $5::text[])
              AS failed (id, round, tries, pause_s, why)
         WHERE purge.id = failed.id AND purge.round = failed.round AND purge.tries = failed.tries
           AND purge.parked_why IS NULL",
    )
    .bind(ids)
    .bind(rounds)
    .bind(tries)
    .bind(later.iter().map(|later| later.pause_s).collect::<Vec<_>>())
    .bind(later.iter().map(|later| later.parked_why.clone()).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(())
}

/// The keys of an attempt: id, round and attempt number.
fn keys(purges: &[DuePurge]) -> (Vec<i64>, Vec<i16>, Vec<i32>) {
    let ids = purges.iter().map(|purge| purge.id).collect();
    (ids, purges.iter().map(|purge| purge.round).collect(), purges.iter().map(|purge| purge.tries).collect())
}

/// Deletes wishes of so long ago, so many at most; how many. What they were about no CDN keeps any more.
pub(super) async fn delete_old(pg: &PgPool, kept: Duration, limit: i64) -> Result<u64, sqlx::Error> {
    let gone = sqlx::query(
        "DELETE FROM cdn_purges WHERE id IN (
             SELECT id FROM cdn_purges WHERE wanted_at < now() - make_interval(secs => $1)
             ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .bind(kept.as_secs_f64())
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(gone.rows_affected())
}

/// A tag whose purge failed repeatedly and waits for an operator.
#[derive(Clone, Debug)]
pub struct ParkedPurge {
    /// The tag.
    pub tag: String,
    /// Number of attempts.
    pub tries: i32,
    /// Last failure.
    pub why: String,
    /// When it was wanted first.
    pub since: Timestamp,
}

/// Tags that wait for a person, each once, the oldest first.
pub async fn parked(pg: &PgPool) -> Result<Vec<ParkedPurge>, sqlx::Error> {
    let rows: Vec<(String, i32, String, DateTime<Utc>)> = sqlx::query_as(
        "SELECT tag, max(tries), (array_agg(parked_why ORDER BY id DESC))[1], min(wanted_at)
         FROM cdn_purges WHERE parked_why IS NOT NULL GROUP BY tag ORDER BY min(id) LIMIT $1",
    )
    .bind(MAX_LISTED)
    .fetch_all(pg)
    .await?;
    Ok(rows.into_iter().map(|(tag, tries, why, at)| ParkedPurge { tag, tries, why, since: from_utc(at) }).collect())
}

/// Has everything that was parked tried again, its tries forgotten; how many tags that were.
pub async fn retry_parked(pg: &PgPool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "WITH back AS (UPDATE cdn_purges SET parked_why = NULL, tries = 0, run_after = now()
                       WHERE parked_why IS NOT NULL RETURNING tag)
         SELECT count(DISTINCT tag) FROM back",
    )
    .fetch_one(pg)
    .await
}

//! Sends purges to the CDN: each tag is leased by one replica.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::PgPool;

use super::AGAIN_AFTER;
use super::client::{ANSWER_DEADLINE, NotPurged};
use crate::CatalogueState;
use platform::background::PeriodicLoop;
use platform::clock::from_utc;
use platform::database::BindAll;
use platform::telemetry::{CdnPurge, cdn_purged};
use platform::{housekeeping, ids};

/// Interval of the checks for due tags.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// Tags per call: Cloudflare's maximum.
const MAX_TAGS: i64 = 30;
/// Lease of a tag: longer than a call. Another replica takes an expired one.
const LEASE: Duration = ANSWER_DEADLINE.saturating_mul(2);
/// Maximum number of attempts per round of a tag. With the pauses below that is ten minutes at the mean.
const MAX_TRIES: i32 = 30;
/// First pause after a failure, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;
/// Longest pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// Interval at which a server records that a CDN is configured, and deletes old purges.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(3_600);
/// Lifetime of a stored purge, parked ones included: no CDN caches one of our pages for a week.
const PURGE_LIFE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Rows per delete statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 2_000;

/// Sends purges until the server stops, if a CDN is configured; another replica takes expired leases.
pub async fn relay_forever(state: CatalogueState) {
    if !state.cdn.is_configured() {
        return;
    }
    let mut rounds = PeriodicLoop::every(&state.stop, CHECK_EVERY);
    while rounds.wait_next().await {
        while !state.stop.is_cancelled() {
            match take_due(&state.pg).await {
                Ok(purges) if purges.is_empty() => break,
                Ok(purges) => send_purges(&state, &purges).await,
                Err(cause) => {
                    tracing::warn!(%cause, "read due CDN purges failed");
                    break;
                }
            }
        }
    }
}

/// Sends the tags of purges in one call, each tag once, and records the result.
async fn send_purges(state: &CatalogueState, purges: &[DuePurge]) {
    let tags: BTreeSet<&str> = purges.iter().map(|purge| purge.tag.as_str()).collect();
    let tags: Vec<&str> = tags.into_iter().collect();
    let recorded = match state.cdn.purge(&tags).await {
        Ok(()) => {
            cdn_purged(CdnPurge::Accepted, tags.len());
            record_purged(&state.pg, purges).await
        }
        Err(cause) => {
            let outcome = match cause {
                NotPurged::Refused(_) => CdnPurge::Refused,
                NotPurged::Unreachable(_) => CdnPurge::Unreachable,
            };
            cdn_purged(outcome, tags.len());
            let pause_s = pause_s(purges, ids::jitter);
            let postponed: Vec<PostponedPurge> =
                purges.iter().map(|purge| postponed_purge(purge, pause_s, &cause)).collect();
            let parked = purges.iter().zip(&postponed).filter(|(_, postponed)| postponed.parked_why.is_some());
            let parked: BTreeSet<&str> = parked.map(|(purge, _)| purge.tag.as_str()).collect();
            if parked.is_empty() {
                tracing::warn!(%cause, tags = tags.len(), "CDN purge failed; retrying");
            } else {
                cdn_purged(CdnPurge::Parked, parked.len());
                tracing::error!(%cause, tags = parked.len(), "CDN purge failed; parked for an operator");
            }
            postpone(&state.pg, purges, &postponed).await
        }
    };
    if let Err(cause) = recorded {
        // The purges are repeated when their lease expires, which is harmless.
        tracing::warn!(%cause, tags = tags.len(), "record the result of a CDN purge failed");
    }
}

/// The common pause of tags that failed in one call, so that they are retried in one call.
fn pause_s(purges: &[DuePurge], jitter: impl Fn(u64) -> u64) -> f64 {
    let tries = purges.iter().map(|purge| purge.tries).max().unwrap_or(1);
    let doubled = FIRST_PAUSE_MS << (tries.clamp(1, 20) - 1);
    Duration::from_millis(jitter(doubled.min(LONGEST_PAUSE_MS))).as_secs_f64()
}

/// The retry of a failed purge, or its parking after the last attempt.
fn postponed_purge(purge: &DuePurge, pause_s: f64, cause: &NotPurged) -> PostponedPurge {
    PostponedPurge { pause_s, parked_why: (purge.tries >= MAX_TRIES).then(|| cause.to_string()) }
}

/// Records that a CDN is configured and deletes old purges, until the server stops.
pub async fn announce_forever(state: CatalogueState) {
    let mut rounds = PeriodicLoop::every(&state.stop, ANNOUNCE_EVERY);
    while rounds.wait_next().await {
        if state.cdn.is_configured()
            && let Err(cause) = announce(&state.pg).await
        {
            tracing::warn!(%cause, "record that a CDN is configured failed");
        }
        let delete = |limit| delete_old(&state.pg, limit);
        housekeeping::clear(&state.stop, "old CDN purges", MAX_AT_ONCE, delete).await;
    }
}

/// Maximum number of rows per call: many changes may purge one tag.
const MAX_ROWS: i64 = 2_000;
/// Maximum number of parked tags in a list.
const MAX_LISTED: i64 = 500;
/// Lifetime of the record that a CDN is configured, seconds: longer than any pause between two servers.
const ANNOUNCED_FOR_S: f64 = 24.0 * 3_600.0;

/// A leased purge: its row, its round and the number of this attempt.
#[derive(Clone, Debug, platform::FromRow)]
struct DuePurge {
    id: i64,
    tag: String,
    round: i16,
    tries: i32,
}

/// A failed purge: the pause before its retry, or why it is parked.
struct PostponedPurge {
    pause_s: f64,
    /// Set when it is parked.
    parked_why: Option<String>,
}

/// Records that a CDN is configured: from now on changes write their tags.
pub async fn announce(pg: &PgPool) -> sqlx::Result<()> {
    let sql = "INSERT INTO cdn (there, told_until) VALUES (true, now() + make_interval(secs => $1))
               ON CONFLICT (there) DO UPDATE SET told_until = EXCLUDED.told_until";
    sqlx::query(sql).bind(ANNOUNCED_FOR_S).execute(pg).await.map(drop)
}

/// Leases the due purges of at most [`MAX_TAGS`] tags, the oldest first; skips rows that another replica has locked.
async fn take_due(pg: &PgPool) -> sqlx::Result<Vec<DuePurge>> {
    let sql = "WITH wanted AS (SELECT tag FROM cdn_purges WHERE parked_why IS NULL AND run_after <= now()
                               GROUP BY tag ORDER BY min(id) LIMIT $1),
                    due AS (SELECT id FROM cdn_purges
                            WHERE parked_why IS NULL AND run_after <= now() AND tag IN (SELECT tag FROM wanted)
                            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
               UPDATE cdn_purges purge SET tries = purge.tries + 1, run_after = now() + make_interval(secs => $3)
               FROM due WHERE purge.id = due.id
               RETURNING purge.id, purge.tag, purge.round, purge.tries";
    sqlx::query_as(sql).bind_all((MAX_TAGS, MAX_ROWS, LEASE.as_secs_f64())).fetch_all(pg).await
}

/// Records a success: schedules the second round after the first, and deletes the purge after the second. Skips rows that
/// another replica has leased since.
async fn record_purged(pg: &PgPool, purges: &[DuePurge]) -> sqlx::Result<()> {
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
    .bind_all((ids, rounds, tries, AGAIN_AFTER.as_secs_f64()))
    .execute(pg)
    .await?;
    Ok(())
}

/// Records a failure: schedules the retry of each purge, or parks it.
async fn postpone(pg: &PgPool, purges: &[DuePurge], postponed: &[PostponedPurge]) -> sqlx::Result<()> {
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
    .bind(postponed.iter().map(|postponed| postponed.pause_s).collect::<Vec<_>>())
    .bind(postponed.iter().map(|postponed| postponed.parked_why.clone()).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(())
}

/// The columns that identify attempts: id, round and attempt number.
fn keys(purges: &[DuePurge]) -> (Vec<i64>, Vec<i16>, Vec<i32>) {
    let ids = purges.iter().map(|purge| purge.id).collect();
    (ids, purges.iter().map(|purge| purge.round).collect(), purges.iter().map(|purge| purge.tries).collect())
}

/// Deletes at most `limit` purges that are older than [`PURGE_LIFE`]; returns their number.
async fn delete_old(pg: &PgPool, limit: i64) -> sqlx::Result<u64> {
    let sql = "DELETE FROM cdn_purges WHERE id IN (
                   SELECT id FROM cdn_purges WHERE wanted_at < now() - make_interval(secs => $1)
                   ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let gone = sqlx::query(sql).bind_all((PURGE_LIFE.as_secs_f64(), limit)).execute(pg).await?;
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
    /// Time of the first change that purged it.
    pub since: Timestamp,
}

/// Parked tags, each once, the oldest first.
pub async fn parked(pg: &PgPool) -> sqlx::Result<Vec<ParkedPurge>> {
    let sql = "SELECT tag, max(tries), (array_agg(parked_why ORDER BY id DESC))[1], min(wanted_at)
               FROM cdn_purges WHERE parked_why IS NOT NULL GROUP BY tag ORDER BY min(id) LIMIT $1";
    let rows: Vec<(String, i32, String, DateTime<Utc>)> = sqlx::query_as(sql).bind(MAX_LISTED).fetch_all(pg).await?;
    Ok(rows.into_iter().map(|(tag, tries, why, at)| ParkedPurge { tag, tries, why, since: from_utc(at) }).collect())
}

/// The number of parked tags.
pub async fn count_parked(pg: &PgPool) -> sqlx::Result<i64> {
    let sql = "SELECT count(DISTINCT tag) FROM cdn_purges WHERE parked_why IS NOT NULL";
    sqlx::query_scalar(sql).fetch_one(pg).await
}

/// Makes all parked purges due again, with their attempts reset; returns the number of tags.
pub async fn retry_parked(pg: &PgPool) -> sqlx::Result<i64> {
    let sql = "WITH back AS (UPDATE cdn_purges SET parked_why = NULL, tries = 0, run_after = now()
                             WHERE parked_why IS NOT NULL RETURNING tag)
               SELECT count(DISTINCT tag) FROM back";
    sqlx::query_scalar(sql).fetch_one(pg).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge(tries: i32) -> DuePurge {
        DuePurge { id: 1, tag: "lists".to_owned(), round: 1, tries }
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_parking() {
        let pauses: Vec<f64> = [1, 2, 3, 8, 29].map(|tries| pause_s(&[purge(1), purge(tries)], |limit| limit)).into();
        assert_eq!(pauses, [0.5, 1.0, 2.0, 60.0, 60.0]);
        let parked = |tries| postponed_purge(&purge(tries), 1.0, &NotPurged::Refused(500)).parked_why;
        assert_eq!(parked(MAX_TRIES - 1), None);
        assert_eq!(parked(MAX_TRIES).as_deref(), Some("it answered 500"));
    }

    #[test]
    fn a_lease_lasts_longer_than_a_call() {
        assert!(LEASE > ANSWER_DEADLINE);
    }
}

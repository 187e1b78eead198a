//! Queries of `idempotency_keys`.
//!
//! `expires_at` is the end of a row's use. It is in no index, so that an answer writes no index entries. `purge_at` is set
//! by the claim, constant while it lasts, and in an index.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};

use crate::HttpState;
use platform::clock::to_utc;
use platform::cte_batch::CteBatch;
use platform::database::BindAll;
use platform::housekeeping;

#[derive(platform::FromRow)]
pub(super) struct KeyRow {
    pub(super) request_hash: Vec<u8>,
    pub(super) status: Option<i16>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) expires_at: DateTime<Utc>,
}

/// A row with its key, for callers that read many.
#[derive(platform::FromRow)]
pub(super) struct NamedKeyRow {
    pub(super) owner: String,
    pub(super) key: String,
    #[flatten]
    pub(super) row: KeyRow,
}

/// A row with its key and its position in the order of claims.
#[derive(platform::FromRow)]
pub(super) struct ClaimedKeyRow {
    pub(super) purge_at: DateTime<Utc>,
    #[flatten]
    pub(super) named: NamedKeyRow,
}

/// The row of a key that has not expired.
pub(super) async fn find(
    tx: &mut PgConnection,
    owner: &str,
    key: &str,
    now: Timestamp,
) -> sqlx::Result<Option<KeyRow>> {
    let sql = "SELECT request_hash, status, body, expires_at FROM idempotency_keys
               WHERE owner = $1 AND key = $2 AND expires_at > $3";
    sqlx::query_as(sql).bind_all((owner, key, to_utc(now))).fetch_optional(tx).await
}

/// Claims a key that is free or has expired; false if it is in use. Waits for a concurrent request with the same key.
pub(super) async fn claim(
    tx: &mut PgConnection,
    owner: &str,
    key: &str,
    request_hash: &[u8],
    now: Timestamp,
    (until, purge_at): (Timestamp, Timestamp),
) -> sqlx::Result<bool> {
    let claimed = sqlx::query(
        "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at, purge_at)
         VALUES ($1, $2, $3, 'pending', $5, $6)
         ON CONFLICT (owner, key) DO UPDATE
         SET request_hash = EXCLUDED.request_hash, state = 'pending', status = NULL, body = NULL,
             expires_at = EXCLUDED.expires_at, purge_at = EXCLUDED.purge_at
         WHERE idempotency_keys.expires_at <= $4",
    )
    .bind_all((owner, key, request_hash, to_utc(now), to_utc(until), to_utc(purge_at)))
    .execute(tx)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Stores status and body as the answer of a key that this request has claimed; false when it has not.
pub(super) async fn complete(
    tx: &mut PgConnection,
    owner: &str,
    key: &str,
    request_hash: &[u8],
    answer: (i16, &[u8]),
    until: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE idempotency_keys SET state = 'completed', status = $4, body = $5, expires_at = $6
               WHERE owner = $1 AND key = $2 AND request_hash = $3 AND state = 'pending'";
    let stored =
        sqlx::query(sql).bind_all((owner, key, request_hash, answer.0, answer.1, to_utc(until))).execute(tx).await?;
    Ok(stored.rows_affected() == 1)
}

/// Expires the claim of a dead replica now; false if there is none. A claim that expires after `max_expires_at` is too young
/// to be of the dead replica.
pub(super) async fn expire_claim(
    pg: &PgPool,
    owner: &str,
    key: &str,
    request_hash: &[u8],
    now: Timestamp,
    max_expires_at: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE idempotency_keys SET expires_at = $4
               WHERE owner = $1 AND key = $2 AND request_hash = $3 AND state = 'pending'
                 AND expires_at > $4 AND expires_at <= $5";
    let freed =
        sqlx::query(sql).bind_all((owner, key, request_hash, to_utc(now), to_utc(max_expires_at))).execute(pg).await?;
    Ok(freed.rows_affected() == 1)
}

/// A position in the order of claims.
pub(super) struct ClaimPosition {
    pub(super) purge_at: Timestamp,
    pub(super) owner: String,
    pub(super) key: String,
}

impl ClaimPosition {
    /// The position before all claims with this `purge_at`.
    pub(super) const fn before(purge_at: Timestamp) -> Self {
        Self { purge_at, owner: String::new(), key: String::new() }
    }
}

/// Keys in the order of their claims, by `purge_at`: those after `last`, up to `newest_purge_at`.
pub(super) async fn claimed_after(
    pg: &PgPool,
    last: &ClaimPosition,
    newest_purge_at: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<ClaimedKeyRow>> {
    let sql = "SELECT purge_at, owner, key, request_hash, status, body, expires_at FROM idempotency_keys
               WHERE purge_at <= $4 AND purge_at >= $1 AND (purge_at, owner, key) > ($1, $2, $3)
               ORDER BY purge_at, owner, key LIMIT $5";
    let after = (to_utc(last.purge_at), &last.owner, &last.key, to_utc(newest_purge_at), limit);
    sqlx::query_as(sql).bind_all(after).fetch_all(pg).await
}

/// The rows of those keys that have not expired, by owner and key.
pub(super) async fn find_all(
    tx: &mut PgConnection,
    names: &[(&str, &str)],
    now: Timestamp,
) -> sqlx::Result<HashMap<(String, String), KeyRow>> {
    let rows: Vec<NamedKeyRow> = sqlx::query_as(
        "SELECT known.owner, known.key, known.request_hash, known.status, known.body, known.expires_at
         FROM unnest($1::text[], $2::text[]) AS asked (owner, key)
         JOIN idempotency_keys known ON known.owner = asked.owner AND known.key = asked.key
         WHERE known.expires_at > $3",
    )
    .bind(names.iter().map(|(owner, _)| *owner).collect::<Vec<_>>())
    .bind(names.iter().map(|(_, key)| *key).collect::<Vec<_>>())
    .bind(to_utc(now))
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|named| ((named.owner, named.key), named.row)).collect())
}

/// A key to be claimed, with its answer if there is one already.
pub(super) struct ClaimRow<'a> {
    pub(super) owner: &'a str,
    pub(super) key: &'a str,
    pub(super) request_hash: &'a [u8],
    pub(super) state: &'static str,
    pub(super) status: Option<i16>,
    pub(super) body: Option<&'a [u8]>,
    pub(super) until: Timestamp,
}

macro_rules! insert_keys {
    () => {
        "INSERT INTO idempotency_keys (owner, key, request_hash, state, status, body, expires_at, purge_at)
         SELECT claim.*, $8
         FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::smallint[], $6::bytea[], $7::timestamptz[])
              AS claim"
    };
}

/// Adds a query for those of the keys that have not expired.
pub(super) fn add_lookup(cte: &mut CteBatch, names: &[(&str, &str)], now: Timestamp) -> sqlx::Result<()> {
    let statement = "SELECT known.key
         FROM unnest($1::text[], $2::text[]) AS asked (owner, key)
         JOIN idempotency_keys known ON known.owner = asked.owner AND known.key = asked.key
         WHERE known.expires_at > $3";
    cte.add("known_keys", statement, &["key"])
        .each(names.iter().map(|(owner, _)| *owner))
        .each(names.iter().map(|(_, key)| *key))
        .value(to_utc(now))
        .done()
}

/// Adds the claims of keys, in the given order. The statement claims and returns the free and expired ones. With
/// `assume_free` it claims all or fails, and returns nothing.
pub(super) fn add_claims(
    cte: &mut CteBatch,
    rows: &[ClaimRow<'_>],
    assume_free: bool,
    now: Timestamp,
    purge_at: Timestamp,
) -> sqlx::Result<()> {
    const TAKE_FREE: &str = concat!(
        insert_keys!(),
        " ON CONFLICT (owner, key) DO UPDATE
          SET request_hash = EXCLUDED.request_hash, state = EXCLUDED.state, status = EXCLUDED.status,
              body = EXCLUDED.body, expires_at = EXCLUDED.expires_at, purge_at = EXCLUDED.purge_at
          WHERE idempotency_keys.expires_at <= $9
          RETURNING owner, key"
    );
    let (statement, columns): (_, &[_]) =
        if assume_free { (insert_keys!(), &[]) } else { (TAKE_FREE, &["owner", "key"]) };
    let values = cte
        .add("claimed_keys", statement, columns)
        .each(rows.iter().map(|row| row.owner))
        .each(rows.iter().map(|row| row.key))
        .each(rows.iter().map(|row| row.request_hash))
        .each(rows.iter().map(|row| row.state))
        .each(rows.iter().map(|row| row.status))
        .each(rows.iter().map(|row| row.body))
        .each(rows.iter().map(|row| to_utc(row.until)))
        .value(to_utc(purge_at));
    if assume_free { values.done() } else { values.value(to_utc(now)).done() }
}

/// The answer of a claimed key.
pub(super) struct AnswerRow<'a> {
    pub(super) owner: &'a str,
    pub(super) key: &'a str,
    pub(super) request_hash: &'a [u8],
    pub(super) status: i16,
    pub(super) body: &'a [u8],
}

/// Adds the answers of keys that these requests have claimed.
pub(super) fn add_answers(cte: &mut CteBatch, answers: &[AnswerRow<'_>], until: Timestamp) -> sqlx::Result<()> {
    let statement = "UPDATE idempotency_keys known
         SET state = 'completed', status = answer.status, body = answer.body, expires_at = $6
         FROM unnest($1::text[], $2::text[], $3::bytea[], $4::smallint[], $5::bytea[])
              AS answer (owner, key, request_hash, status, body)
         WHERE known.owner = answer.owner AND known.key = answer.key AND known.request_hash = answer.request_hash
           AND known.state = 'pending'
         RETURNING known.key";
    cte.add("answered_keys", statement, &["key"])
        .each(answers.iter().map(|row| row.owner))
        .each(answers.iter().map(|row| row.key))
        .each(answers.iter().map(|row| row.request_hash))
        .each(answers.iter().map(|row| row.status))
        .each(answers.iter().map(|row| row.body))
        .value(to_utc(until))
        .done()
}

/// Deletes at most this many expired keys among those whose `purge_at` has passed; returns the number. A key that expires
/// later (answered late, or claimed anew by an earlier version) is skipped.
pub(super) async fn purge(pg: &PgPool, now: Timestamp, limit: i64) -> sqlx::Result<u64> {
    let sql = "DELETE FROM idempotency_keys
               WHERE (owner, key) IN (SELECT owner, key FROM idempotency_keys WHERE purge_at <= $1 AND expires_at <= $1
                                      LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let gone = sqlx::query(sql).bind_all((to_utc(now), limit)).execute(pg).await?;
    Ok(gone.rows_affected())
}

/// Interval of the deletes.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Rows per statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 10_000;

/// Deletes expired keys once per period until the server stops.
pub async fn purge_forever(state: HttpState) {
    let delete = |limit| purge(&state.pg, state.clock.now(), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "idempotency keys", MAX_AT_ONCE, delete).await;
}

//! Queries of `idempotency_keys`.

use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};

use crate::clock::to_utc;

/// What is stored for a key.
#[derive(sqlx::FromRow)]
pub(super) struct KeyRow {
    pub(super) request_hash: Vec<u8>,
    pub(super) status: Option<i16>,
    pub(super) body: Option<Vec<u8>>,
}

/// The row of a key that has not run out.
pub(super) async fn find(
    tx: &mut PgConnection,
    owner: &str,
    key: &str,
    now: Timestamp,
) -> Result<Option<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT request_hash, status, body FROM idempotency_keys
         WHERE owner = $1 AND key = $2 AND expires_at > $3",
    )
    .bind(owner)
    .bind(key)
    .bind(to_utc(now))
    .fetch_optional(tx)
    .await
}

/// Takes a key that is free or has run out; waits for a concurrent request with the same key first.
pub(super) async fn claim(
    tx: &mut PgConnection,
    owner: &str,
    key: &str,
    request_hash: &[u8],
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, sqlx::Error> {
    let claimed = sqlx::query(
        "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at)
         VALUES ($1, $2, $3, 'pending', $5)
         ON CONFLICT (owner, key) DO UPDATE
         SET request_hash = EXCLUDED.request_hash, state = 'pending', status = NULL, body = NULL,
             expires_at = EXCLUDED.expires_at
         WHERE idempotency_keys.expires_at <= $4",
    )
    .bind(owner)
    .bind(key)
    .bind(request_hash)
    .bind(to_utc(now))
    .bind(to_utc(until))
    .execute(tx)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Stores the answer of a claimed key.
pub(super) async fn complete(
    tx: &mut PgConnection,
    owner: &str,
    key: &str,
    status: i16,
    body: &[u8],
    until: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE idempotency_keys SET state = 'completed', status = $3, body = $4, expires_at = $5
         WHERE owner = $1 AND key = $2 AND state = 'pending'",
    )
    .bind(owner)
    .bind(key)
    .bind(status)
    .bind(body)
    .bind(to_utc(until))
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes keys that have run out.
pub(super) async fn purge(pg: &PgPool, now: Timestamp, limit: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM idempotency_keys
         WHERE (owner, key) IN (SELECT owner, key FROM idempotency_keys WHERE expires_at <= $1
                                LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .bind(to_utc(now))
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(())
}

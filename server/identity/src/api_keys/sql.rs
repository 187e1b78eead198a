//! Queries of `api_keys`.

use chrono::{DateTime, Utc};
use domain::api::systems::ApiKeyView;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::caller::ApiKey;
use platform::clock::{from_utc, rfc3339, to_utc};

/// Returns the key of a hash, unless it is revoked.
pub(super) async fn by_hash(pg: &PgPool, hash: &[u8; 32]) -> Result<Option<ApiKey>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, theatre_id, reads_people, last_used_at FROM api_keys WHERE secret_hash = $1 AND revoked_at IS NULL",
    )
    .bind(&hash[..])
    .fetch_optional(pg)
    .await
}

/// Records the use of a key.
pub(super) async fn record_use(pg: &PgPool, id: Uuid, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND revoked_at IS NULL")
        .bind(id)
        .bind(to_utc(now))
        .execute(pg)
        .await?;
    Ok(())
}

/// A key as shown to its theatre.
#[derive(sqlx::FromRow)]
pub(super) struct KeyRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) hint: String,
    pub(super) reads_people: bool,
    pub(super) made_at: DateTime<Utc>,
    pub(super) last_used_at: Option<DateTime<Utc>>,
    pub(super) revoked_at: Option<DateTime<Utc>>,
}

impl KeyRow {
    pub(super) fn view(self) -> ApiKeyView {
        let text = |at: DateTime<Utc>| rfc3339(from_utc(at));
        ApiKeyView {
            id: self.id,
            name: self.name,
            hint: self.hint,
            reads_people: self.reads_people,
            made_at: text(self.made_at),
            last_used_at: self.last_used_at.map(text),
            revoked_at: self.revoked_at.map(text),
        }
    }
}

/// Returns the keys of a theatre, valid ones first, then the newest.
pub(super) async fn of_theatre(pg: &PgPool, theatre: &str, limit: i64) -> Result<Vec<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, hint, reads_people, made_at, last_used_at, revoked_at FROM api_keys
         WHERE theatre_id = $1 ORDER BY revoked_at IS NOT NULL, made_at DESC, id LIMIT $2",
    )
    .bind(theatre)
    .bind(limit)
    .fetch_all(pg)
    .await
}

/// Counts the valid keys of a theatre, and blocks new ones until the transaction ends.
pub(super) async fn lock_count(tx: &mut PgConnection, theatre: &str) -> Result<i64, sqlx::Error> {
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(&mut *tx).await?;
    sqlx::query_scalar("SELECT count(*) FROM api_keys WHERE theatre_id = $1 AND revoked_at IS NULL")
        .bind(theatre)
        .fetch_one(tx)
        .await
}

/// Inserts a key.
pub(super) async fn insert(
    tx: &mut PgConnection,
    theatre: &str,
    row: &KeyRow,
    hash: &[u8; 32],
    made_by: Uuid,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO api_keys (id, theatre_id, name, hint, secret_hash, reads_people, made_by, made_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(row.id)
    .bind(theatre)
    .bind(&row.name)
    .bind(&row.hint)
    .bind(&hash[..])
    .bind(row.reads_people)
    .bind(made_by)
    .bind(row.made_at)
    .execute(tx)
    .await?;
    Ok(())
}

/// Revokes a key. `None`: the theatre has no such key; `false`: it was already revoked.
pub(super) async fn revoke(
    tx: &mut PgConnection,
    theatre: &str,
    id: Uuid,
    now: Timestamp,
) -> Result<Option<bool>, sqlx::Error> {
    let revoked =
        sqlx::query("UPDATE api_keys SET revoked_at = $3 WHERE id = $1 AND theatre_id = $2 AND revoked_at IS NULL")
            .bind(id)
            .bind(theatre)
            .bind(to_utc(now))
            .execute(&mut *tx)
            .await?;
    if revoked.rows_affected() == 1 {
        return Ok(Some(true));
    }
    let there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM api_keys WHERE id = $1 AND theatre_id = $2)")
        .bind(id)
        .bind(theatre)
        .fetch_one(tx)
        .await?;
    Ok(there.then_some(false))
}

//! Queries of `sessions` and `account_visitors`.

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::accounts::sessions::{Credential, SEEN_EVERY_MS, Session, SessionLifetime};
use platform::clock::{from_utc, to_utc};

#[derive(sqlx::FromRow)]
struct SessionRow {
    id: Uuid,
    account_id: Uuid,
    owner: String,
    kind: String,
    last_seen_at: DateTime<Utc>,
}

macro_rules! live_session {
    ($condition:literal) => {
        concat!(
            "SELECT session.id, session.account_id, session.owner, session.kind, session.last_seen_at
             FROM sessions session JOIN accounts account ON account.id = session.account_id
             WHERE session.ended_at IS NULL AND session.expires_at > $1
               AND session.last_seen_at + session.idle_ms * interval '1 millisecond' > $1
               AND account.closed_at IS NULL AND ",
            $condition
        )
    };
}

/// Returns the live session of a credential; records its use at most once a minute.
pub(in crate::accounts) async fn find(
    pg: &PgPool,
    credential: Credential,
    now: Timestamp,
) -> Result<Option<Session>, sqlx::Error> {
    let (by_cookie, by_token) = (
        live_session!("session.secret_hash = $2"),
        live_session!("session.id = $2 AND session.account_id = $3 AND session.kind = 'token'"),
    );
    let row: Option<SessionRow> = match credential {
        Credential::Cookie(hash) => {
            sqlx::query_as(by_cookie).bind(to_utc(now)).bind(&hash[..]).fetch_optional(pg).await?
        }
        Credential::Token(session, account) => {
            sqlx::query_as(by_token).bind(to_utc(now)).bind(session).bind(account).fetch_optional(pg).await?
        }
    };
    let Some(row) = row else { return Ok(None) };
    if now.since(from_utc(row.last_seen_at)) >= SEEN_EVERY_MS {
        record_use(pg, row.id, row.last_seen_at, now).await?;
    }
    let is_browser = match row.kind.as_str() {
        "browser" => true,
        "token" => false,
        other => return Err(sqlx::Error::Decode(format!("sessions({}).kind is {other:?}", row.id).into())),
    };
    Ok(Some(Session { id: row.id, account: row.account_id, owner: row.owner, is_browser }))
}

async fn record_use(pg: &PgPool, id: Uuid, seen_at: DateTime<Utc>, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE sessions SET last_seen_at = $3 WHERE id = $1 AND last_seen_at = $2 AND ended_at IS NULL")
        .bind(id)
        .bind(seen_at)
        .bind(to_utc(now))
        .execute(pg)
        .await?;
    Ok(())
}

/// Assigns a visitor to an account permanently; `false` when it belongs to another account.
pub(in crate::accounts) async fn hand_over(
    tx: &mut PgConnection,
    owner: &str,
    account: Uuid,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    sqlx::query(
        "INSERT INTO account_visitors (owner, account_id, joined_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    )
    .bind(owner)
    .bind(account)
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    let whose: Uuid = sqlx::query_scalar("SELECT account_id FROM account_visitors WHERE owner = $1")
        .bind(owner)
        .fetch_one(tx)
        .await?;
    Ok(whose == account)
}

/// Inserts a session; a browser's with the hash of its cookie.
pub(in crate::accounts) async fn insert(
    tx: &mut PgConnection,
    session: &Session,
    secret_hash: Option<[u8; 32]>,
    life: SessionLifetime,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO sessions (id, account_id, kind, secret_hash, owner, idle_ms, created_at, last_seen_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
    )
    .bind(session.id)
    .bind(session.account)
    .bind(if session.is_browser { "browser" } else { "token" })
    .bind(secret_hash.map(Vec::from))
    .bind(&session.owner)
    .bind(life.idle_ms)
    .bind(to_utc(now))
    .bind(to_utc(now.plus_ms(life.absolute_ms)))
    .execute(tx)
    .await?;
    Ok(())
}

/// Ends a session of that account.
pub(in crate::accounts) async fn end(
    tx: &mut PgConnection,
    id: Uuid,
    account: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE sessions SET ended_at = $3 WHERE id = $1 AND account_id = $2 AND ended_at IS NULL")
        .bind(id)
        .bind(account)
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    Ok(())
}

/// Ends all sessions of an account except `but`; returns their number.
pub(in crate::accounts) async fn end_all(
    tx: &mut PgConnection,
    account: Uuid,
    but: Option<Uuid>,
    now: Timestamp,
) -> Result<u64, sqlx::Error> {
    let ended = sqlx::query(
        "UPDATE sessions SET ended_at = $3
         WHERE account_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2",
    )
    .bind(account)
    .bind(but)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(ended.rows_affected())
}

/// Ends the sessions of an account except the `keep` most recently used.
pub(in crate::accounts) async fn end_oldest(
    tx: &mut PgConnection,
    account: Uuid,
    keep: i64,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE sessions SET ended_at = $3
         WHERE ended_at IS NULL AND id IN (SELECT id FROM sessions WHERE account_id = $1 AND ended_at IS NULL
                                           ORDER BY last_seen_at DESC, id OFFSET $2)",
    )
    .bind(account)
    .bind(keep)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes sessions and links that expired before `before`, at most `limit` of each; returns the total.
pub(in crate::accounts) async fn purge(pg: &PgPool, before: Timestamp, limit: i64) -> Result<u64, sqlx::Error> {
    let sessions = sqlx::query(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    let links = sqlx::query(
        "DELETE FROM account_links WHERE token_hash IN
             (SELECT token_hash FROM account_links WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    let mut deleted = 0;
    for query in [sessions, links] {
        deleted += query.bind(to_utc(before)).bind(limit).execute(pg).await?.rows_affected();
    }
    Ok(deleted)
}

//! Queries of `email_codes`.

use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::to_utc;
use platform::database::BindAll;

/// A code to be stored and mailed.
pub(super) struct NewCode<'a> {
    pub(super) id: Uuid,
    pub(super) owner: &'a str,
    pub(super) email: &'a str,
    pub(super) mail_to: &'a str,
    pub(super) language: &'a str,
    pub(super) code_digest: String,
}

/// Stores a code, replacing an earlier one. A verified address stays verified.
pub(super) async fn put(
    tx: &mut PgConnection,
    new: &NewCode<'_>,
    expires_at: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO email_codes (id, owner, email, mail_to, language, code_digest, expires_at, mail_after)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (owner, email) DO UPDATE
         SET id = EXCLUDED.id, mail_to = EXCLUDED.mail_to, language = EXCLUDED.language, tries = 0,
             code_digest = EXCLUDED.code_digest, expires_at = EXCLUDED.expires_at, mail_after = EXCLUDED.mail_after",
    )
    .bind_all((new.id, new.owner, new.email, new.mail_to))
    .bind_all((new.language, &new.code_digest, to_utc(expires_at), to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

#[derive(platform::FromRow)]
pub(super) struct Tried {
    pub(super) id: Uuid,
    pub(super) code_digest: String,
    /// The number of tries, including this one.
    pub(super) tries: i16,
}

/// Counts a try at the code of this visitor and address; `None` where there is no valid code.
pub(super) async fn take_try(
    pg: &PgPool,
    owner: &str,
    email: &str,
    max_tries: i16,
    now: Timestamp,
) -> sqlx::Result<Option<Tried>> {
    let sql = "UPDATE email_codes SET tries = tries + 1
               WHERE owner = $1 AND email = $2 AND tries < $3 AND expires_at > $4
               RETURNING id, code_digest, tries";
    sqlx::query_as(sql).bind_all((owner, email, max_tries, to_utc(now))).fetch_optional(pg).await
}

/// Marks a code as entered, with tries set to `used_up`, which is above any count of tries. `false` when it was entered
/// already, has expired, or was replaced meanwhile.
pub(super) async fn set_proven(
    tx: &mut PgConnection,
    id: Uuid,
    owner: &str,
    used_up: i16,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE email_codes SET proven_at = $4, tries = $3, mail_after = NULL
               WHERE id = $1 AND owner = $2 AND tries < $3 AND expires_at > $4";
    let proven = sqlx::query(sql).bind_all((id, owner, used_up, to_utc(now))).execute(tx).await?;
    Ok(proven.rows_affected() == 1)
}

/// Checks that this visitor has verified that address since then.
pub(super) async fn is_proven(
    connection: &mut PgConnection,
    owner: &str,
    email: &str,
    since: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM email_codes WHERE owner = $1 AND email = $2 AND proven_at > $3)";
    sqlx::query_scalar(sql).bind_all((owner, email, to_utc(since))).fetch_one(connection).await
}

#[derive(platform::FromRow)]
pub(super) struct ToSend {
    pub(super) id: Uuid,
    pub(super) mail_to: String,
    pub(super) language: String,
}

/// Leases codes that are due, until `lease_until`. Expired codes are skipped.
pub(super) async fn take(pg: &PgPool, now: Timestamp, lease_until: Timestamp, limit: i64) -> sqlx::Result<Vec<ToSend>> {
    let sql = "UPDATE email_codes code SET mail_after = $2
               FROM (SELECT id FROM email_codes WHERE mail_after <= $1 AND expires_at > $1 ORDER BY mail_after LIMIT $3
                     FOR UPDATE SKIP LOCKED) AS due
               WHERE code.id = due.id RETURNING code.id, code.mail_to, code.language";
    sqlx::query_as(sql).bind_all((to_utc(now), to_utc(lease_until), limit)).fetch_all(pg).await
}

pub(super) async fn sent(pg: &PgPool, id: Uuid) -> sqlx::Result<()> {
    sqlx::query("UPDATE email_codes SET mail_after = NULL WHERE id = $1").bind(id).execute(pg).await.map(drop)
}

pub(super) async fn postpone(pg: &PgPool, id: Uuid, at: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE email_codes SET mail_after = $2 WHERE id = $1 AND mail_after IS NOT NULL";
    sqlx::query(sql).bind_all((id, to_utc(at))).execute(pg).await.map(drop)
}

/// Deletes codes that expired before then, up to `limit`; returns their number.
pub(super) async fn purge(pg: &PgPool, before: Timestamp, limit: i64) -> sqlx::Result<u64> {
    let sql = "DELETE FROM email_codes WHERE id IN
             (SELECT id FROM email_codes WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let gone = sqlx::query(sql).bind_all((to_utc(before), limit)).execute(pg).await?;
    Ok(gone.rows_affected())
}

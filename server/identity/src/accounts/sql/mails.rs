//! Queries of `account_mails` and `account_links`.

use domain::VariantName;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::accounts::links::Purpose;
use platform::clock::to_utc;

/// A mail to be sent.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(in crate::accounts) struct MailRow {
    pub(in crate::accounts) id: Uuid,
    pub(in crate::accounts) kind: String,
    pub(in crate::accounts) email: String,
    pub(in crate::accounts) tries: i32,
}

/// Inserts a mail to be sent.
pub(in crate::accounts) async fn enqueue(
    tx: &mut PgConnection,
    id: Uuid,
    kind: &str,
    email: &str,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO account_mails (id, kind, email, run_after, created_at) VALUES ($1, $2, $3, $4, $4)")
        .bind(id)
        .bind(kind)
        .bind(email)
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    Ok(())
}

/// Leases one due mail until `lease_until`.
pub(in crate::accounts) async fn take(
    pg: &PgPool,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<MailRow>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE account_mails mail SET run_after = $2, tries = mail.tries + 1
         FROM (SELECT id FROM account_mails WHERE run_after <= $1 ORDER BY run_after LIMIT 1
               FOR UPDATE SKIP LOCKED) AS due
         WHERE mail.id = due.id RETURNING mail.id, mail.kind, mail.email, mail.tries",
    )
    .bind(to_utc(now))
    .bind(to_utc(lease_until))
    .fetch_optional(pg)
    .await
}

/// Deletes a mail that was sent, has no recipient, or has used its last retry.
pub(in crate::accounts) async fn done(pg: &PgPool, id: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM account_mails WHERE id = $1").bind(id).execute(pg).await?;
    Ok(())
}

/// Postpones a failed mail to `at`.
pub(in crate::accounts) async fn postpone(pg: &PgPool, mail: &MailRow, at: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE account_mails SET run_after = $3 WHERE id = $1 AND tries = $2")
        .bind(mail.id)
        .bind(mail.tries)
        .bind(to_utc(at))
        .execute(pg)
        .await?;
    Ok(())
}

/// Inserts a link before it is mailed.
pub(in crate::accounts) async fn insert_link(
    pg: &PgPool,
    token_hash: [u8; 32],
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO account_links (token_hash, account_id, purpose, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(&token_hash[..])
    .bind(account)
    .bind(purpose.as_str())
    .bind(to_utc(now))
    .bind(to_utc(now.plus_ms(purpose.life_ms())))
    .execute(pg)
    .await?;
    Ok(())
}

/// Returns the account of a link that is usable now.
pub(in crate::accounts) async fn whose_link(
    tx: &mut PgConnection,
    token_hash: [u8; 32],
    purpose: Purpose,
    now: Timestamp,
) -> Result<Option<Uuid>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT account_id FROM account_links
         WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3",
    )
    .bind(&token_hash[..])
    .bind(purpose.as_str())
    .bind(to_utc(now))
    .fetch_optional(tx)
    .await
}

/// Redeems a link once and voids the account's other links of its purpose; `false` when it is not usable.
pub(in crate::accounts) async fn use_link(
    tx: &mut PgConnection,
    token_hash: [u8; 32],
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let used = sqlx::query(
        "UPDATE account_links SET used_at = $4
         WHERE token_hash = $1 AND account_id = $2 AND purpose = $3 AND used_at IS NULL AND expires_at > $4",
    )
    .bind(&token_hash[..])
    .bind(account)
    .bind(purpose.as_str())
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    if used.rows_affected() != 1 {
        return Ok(false);
    }
    end_links(tx, account, purpose, now).await?;
    Ok(true)
}

/// Voids the unused links of an account with that purpose.
pub(in crate::accounts) async fn end_links(
    tx: &mut PgConnection,
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE account_links SET used_at = $3 WHERE account_id = $1 AND purpose = $2 AND used_at IS NULL")
        .bind(account)
        .bind(purpose.as_str())
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    Ok(())
}

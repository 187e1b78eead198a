//! Accounts as stored and as shown. Every update repeats the conditions it was decided on.

use chrono::{DateTime, Utc};
use domain::api::accounts::{AccountView, GrantView};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::grants;
use crate::IdentityState;
use http::ApiResult;
use platform::clock::to_utc;
use platform::database::BindAll;

/// An account as stored.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct AccountRow {
    pub(super) id: Uuid,
    pub(super) email: String,
    pub(super) name: String,
    pub(super) password_hash: String,
    pub(super) version: i32,
    pub(super) email_proven_at: Option<DateTime<Utc>>,
}

macro_rules! open_account {
    ($condition:literal) => {
        concat!(
            "SELECT id, email, name, password_hash, version, email_proven_at FROM accounts
             WHERE closed_at IS NULL AND ",
            $condition
        )
    };
}

/// Returns the open account of an address, ignoring case.
pub(super) async fn by_email(tx: &mut PgConnection, email: &str) -> sqlx::Result<Option<AccountRow>> {
    sqlx::query_as(open_account!(r#"lower(email COLLATE "C") = lower($1 COLLATE "C")"#))
        .bind(email)
        .fetch_optional(tx)
        .await
}

pub(super) async fn by_id(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AccountRow>> {
    sqlx::query_as(open_account!("id = $1")).bind(id).fetch_optional(tx).await
}

/// Returns the open account of an id, locked until the transaction ends: blocks updates but not foreign-key references.
pub(super) async fn lock(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AccountRow>> {
    sqlx::query_as(open_account!("id = $1 FOR NO KEY UPDATE")).bind(id).fetch_optional(tx).await
}

/// Inserts an account; `false` when the address has one, open or closed.
pub(super) async fn insert(
    tx: &mut PgConnection,
    id: Uuid,
    (email, name): (&str, &str),
    password_hash: &str,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "INSERT INTO accounts (id, email, name, password_hash, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING";
    let inserted = sqlx::query(sql).bind_all((id, email, name, password_hash, to_utc(now))).execute(tx).await?;
    Ok(inserted.rows_affected() == 1)
}

/// Sets the password; `false` when the version differs.
pub(super) async fn set_password(
    tx: &mut PgConnection,
    account: &AccountRow,
    password_hash: &str,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE accounts SET password_hash = $3, version = version + 1, updated_at = $4
               WHERE id = $1 AND version = $2 AND closed_at IS NULL";
    let changed =
        sqlx::query(sql).bind_all((account.id, account.version, password_hash, to_utc(now))).execute(tx).await?;
    Ok(changed.rows_affected() == 1)
}

/// Marks the address as proven; later proofs change nothing.
pub(super) async fn set_proven(tx: &mut PgConnection, account: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE accounts SET email_proven_at = $2, version = version + 1, updated_at = $2
               WHERE id = $1 AND email_proven_at IS NULL AND closed_at IS NULL";
    sqlx::query(sql).bind_all((account, to_utc(now))).execute(tx).await.map(drop)
}

/// Closes an account; `None` when no open account has this address.
pub(super) async fn close(tx: &mut PgConnection, email: &str, now: Timestamp) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar(
        r#"UPDATE accounts SET closed_at = $2, version = version + 1, updated_at = $2
           WHERE lower(email COLLATE "C") = lower($1 COLLATE "C") AND closed_at IS NULL RETURNING id"#,
    )
    .bind_all((email, to_utc(now)))
    .fetch_optional(tx)
    .await
}

/// Returns the account of an id; `None` when it is closed.
pub async fn of_account(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AccountView>> {
    let Some(account) = by_id(tx, id).await? else { return Ok(None) };
    let grants = grants::roles_of(tx, id).await?;
    Ok(Some(AccountView {
        id,
        name: account.name,
        email: account.email,
        email_proven: account.email_proven_at.is_some(),
        grants: grants.into_iter().map(|(theatre, role)| GrantView { theatre, role }).collect(),
    }))
}

/// Returns the name and address of the signed-in account, to prefill forms.
pub async fn name_and_address(state: &IdentityState, account: Option<Uuid>) -> ApiResult<Option<(String, String)>> {
    let Some(id) = account else { return Ok(None) };
    let found = by_id(&mut *state.pg.acquire().await?, id).await?;
    Ok(found.map(|account| (account.name, account.email)))
}

/// Returns `true` when this account is open and its address is proven.
pub async fn has_proven_address(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<bool> {
    Ok(by_id(tx, id).await?.is_some_and(|account| account.email_proven_at.is_some()))
}

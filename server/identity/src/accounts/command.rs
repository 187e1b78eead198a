//! Account commands of the server's command line: create a manager, close an account.

use domain::VariantName;
use domain::api::Person;
use domain::api::accounts::Password;
use domain::roles::Role;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::hashing::Hashing;
use super::links::{self, Purpose};
use super::person::check as check_person;
use super::register::check_new;
use super::{account, grants, sessions};
use crate::audit::{self, AuditEntry};
use http::{ApiResult, Problem};
use platform::ids;

/// The result of [`create_manager`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    /// The account.
    pub account: Uuid,
    /// The account existed before.
    pub was_there: bool,
    /// The account has the given password. An existing account with a proven address keeps its own.
    pub has_password: bool,
}

/// Creates an account, or takes the existing one, and makes it a manager of these theatres. If the address of an
/// existing account is not proven, any person may have registered it: its password is replaced and its sessions end.
///
/// # Errors
/// 400 for an invalid name, address or password.
pub async fn create_manager(
    pg: &PgPool,
    person: &Person,
    password: &Password,
    theatres: &[String],
    now: Timestamp,
) -> ApiResult<Created> {
    let (name, email) = check_person("manager", person)?;
    check_new(password)?;
    let hash = Hashing::new().hash(password).await?;
    let mut tx = pg.begin().await?;
    let is_new = account::insert(&mut tx, ids::new_id(), (&email, &name), &hash, now).await?;
    let account = account::by_email(&mut tx, &email).await?.ok_or_else(|| Problem::not_found("open account"))?.id;
    let has_password = is_new || replace_unproven_password(&mut tx, account, &hash, now).await?;
    for theatre in theatres {
        if grants::give(&mut tx, account, theatre, Role::Manager, now).await? {
            let subject = format!("{} as {}", audit::account(account), Role::Manager.as_str());
            let reason = "At the server's command line.";
            let entry = AuditEntry { actor: None, theatre: Some(theatre), act: "role_given", subject, reason };
            audit::record(&mut tx, &entry, now).await?;
        }
    }
    tx.commit().await?;
    Ok(Created { account, was_there: !is_new, has_password })
}

/// Sets the password of an account with an unproven address and ends its sessions and reset links. Returns `false` and
/// changes nothing when the address is proven.
async fn replace_unproven_password(
    tx: &mut PgConnection,
    account: Uuid,
    hash: &str,
    now: Timestamp,
) -> ApiResult<bool> {
    let row = account::lock(tx, account).await?.ok_or_else(|| Problem::not_found("open account"))?;
    if row.email_proven_at.is_some() {
        return Ok(false);
    }
    if !account::set_password(tx, &row, hash, now).await? {
        return Err(Problem::internal(&"an account changed while it was locked"));
    }
    sessions::end_all(tx, account, None, now).await?;
    links::void_links(tx, account, Purpose::Reset, now).await?;
    let (subject, reason) = (audit::account(account), "At the server's command line.");
    audit::record(tx, &AuditEntry { actor: None, theatre: None, act: "password_set", subject, reason }, now).await?;
    Ok(true)
}

/// Closes an account: sign-in is refused, and all its sessions end.
///
/// # Errors
/// 404 when no open account has this address, 400 for an invalid reason.
pub async fn close(pg: &PgPool, email: &str, reason: &str, now: Timestamp) -> ApiResult<Uuid> {
    let reason = grants::reason_of(reason)?;
    let mut tx = pg.begin().await?;
    let account =
        account::close(&mut tx, email.trim(), now).await?.ok_or_else(|| Problem::not_found("open account"))?;
    sessions::end_all(&mut tx, account, None, now).await?;
    let subject = audit::account(account);
    audit::record(&mut tx, &AuditEntry { actor: None, theatre: None, act: "account_closed", subject, reason }, now)
        .await?;
    tx.commit().await?;
    Ok(account)
}

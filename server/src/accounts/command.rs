//! What is done to accounts at the server's command line: a first manager, and closing an account.

use domain::api::Person;
use domain::api_accounts::Password;
use domain::roles::Role;
use domain::time::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use super::hashing::Hashing;
use super::register::check_new;
use super::{grants, sql};
use crate::audit::{self, Entry};
use crate::web::Problem;
use crate::{bookings, ids};

/// What became of [`create_manager`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    /// The account.
    pub account: Uuid,
    /// Whether it was there before, with a password that stays.
    pub was_there: bool,
}

/// Makes an account, or takes the one of that address, and makes it a manager of these theatres.
///
/// # Errors
/// 400 when name, address or password cannot be used.
pub async fn create_manager(
    pg: &PgPool,
    person: &Person,
    password: &Password,
    theatres: &[String],
    now: Timestamp,
) -> Result<Created, Problem> {
    let (name, email) = bookings::check_person("manager", person)?;
    check_new(password)?;
    let hash = Hashing::new().map_err(|cause| Problem::internal(&cause))?.hash(password).await?;
    let mut tx = pg.begin().await?;
    let is_new = sql::insert(&mut tx, ids::new_id(), (&email, &name), &hash, now).await?;
    let account = sql::by_email(&mut tx, &email).await?.ok_or_else(|| Problem::not_found("open account"))?.id;
    for theatre in theatres {
        if grants::give(&mut tx, account, theatre, Role::Manager, now).await? {
            let subject = format!("{} as {}", audit::account(account), Role::Manager.as_str());
            let reason = "At the server's command line.";
            let entry = Entry { actor: None, theatre: Some(theatre), act: "role_given", subject, reason };
            audit::record(&mut tx, &entry, now).await?;
        }
    }
    tx.commit().await?;
    Ok(Created { account, was_there: !is_new })
}

/// Closes an account: nobody signs in any more, and whoever is signed in is not from now on.
///
/// # Errors
/// 404 when there is none that is open, 400 for a reason that cannot be used.
pub async fn close(pg: &PgPool, email: &str, reason: &str, now: Timestamp) -> Result<Uuid, Problem> {
    let reason = grants::reason_of(reason)?;
    let mut tx = pg.begin().await?;
    let account = sql::close(&mut tx, email.trim(), now).await?.ok_or_else(|| Problem::not_found("open account"))?;
    sql::sessions::end_all(&mut tx, account, None, now).await?;
    let subject = audit::account(account);
    audit::record(&mut tx, &Entry { actor: None, theatre: None, act: "account_closed", subject, reason }, now).await?;
    tx.commit().await?;
    Ok(account)
}

//! Queries of `staff_grants`.

use domain::roles::Role;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use platform::clock::to_utc;

/// Returns the roles of an account by theatre, sorted.
pub(in crate::accounts) async fn of_account(
    tx: &mut PgConnection,
    account: Uuid,
) -> Result<Vec<(String, Role)>, sqlx::Error> {
    let rows: Vec<(String, String)> =
        sqlx::query_as("SELECT theatre_id, role FROM staff_grants WHERE account_id = $1 ORDER BY theatre_id, role")
            .bind(account)
            .fetch_all(tx)
            .await?;
    rows.into_iter().map(|(theatre, role)| Ok((theatre, parse_role(&role)?))).collect()
}

/// An invalid stored value is an error that names it, never a default.
pub(in crate::accounts) fn parse_role(role: &str) -> Result<Role, sqlx::Error> {
    Role::parse(role).ok_or_else(|| sqlx::Error::Decode(format!("staff_grants.role is {role:?}").into()))
}

/// A member of staff with one role.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(in crate::accounts) struct StaffRow {
    pub(in crate::accounts) id: Uuid,
    pub(in crate::accounts) name: String,
    pub(in crate::accounts) email: String,
    pub(in crate::accounts) role: String,
}

/// Returns the staff of a theatre by name, one row per role.
pub(in crate::accounts) async fn of_theatre(
    tx: &mut PgConnection,
    theatre: &str,
    limit: i64,
) -> Result<Vec<StaffRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT account.id, account.name, account.email, staff.role
         FROM staff_grants staff JOIN accounts account ON account.id = staff.account_id
         WHERE staff.theatre_id = $1 AND account.closed_at IS NULL
         ORDER BY account.name, account.id, staff.role LIMIT $2",
    )
    .bind(theatre)
    .bind(limit)
    .fetch_all(tx)
    .await
}

/// Gives a role; `false` when the account already has it.
pub(in crate::accounts) async fn give(
    tx: &mut PgConnection,
    account: Uuid,
    theatre: &str,
    role: Role,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let given = sqlx::query(
        "INSERT INTO staff_grants (account_id, theatre_id, role, granted_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
    )
    .bind(account)
    .bind(theatre)
    .bind(role.as_str())
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(given.rows_affected() == 1)
}

/// Takes a role; `false` when the account does not have it.
pub(in crate::accounts) async fn take(
    tx: &mut PgConnection,
    account: Uuid,
    theatre: &str,
    role: Role,
) -> Result<bool, sqlx::Error> {
    let taken = sqlx::query("DELETE FROM staff_grants WHERE account_id = $1 AND theatre_id = $2 AND role = $3")
        .bind(account)
        .bind(theatre)
        .bind(role.as_str())
        .execute(tx)
        .await?;
    Ok(taken.rows_affected() == 1)
}

/// Returns `true` when an account manages all theatres, and at least one exists.
pub(in crate::accounts) async fn require_manager_of_all(
    tx: &mut PgConnection,
    account: Uuid,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM theatres)
            AND NOT EXISTS (SELECT 1 FROM theatres theatre
                            WHERE NOT EXISTS (SELECT 1 FROM staff_grants
                                              WHERE account_id = $1 AND theatre_id = theatre.id AND role = 'manager'))",
    )
    .bind(account)
    .fetch_one(tx)
    .await
}

/// Returns the managers of a theatre with an open account, in the order of their ids, locked: two of them cannot remove
/// each other concurrently.
pub(in crate::accounts) async fn lock_managers(tx: &mut PgConnection, theatre: &str) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query("SELECT 1 FROM staff_grants WHERE theatre_id = $1 AND role = 'manager' ORDER BY account_id FOR UPDATE")
        .bind(theatre)
        .execute(&mut *tx)
        .await?;
    // In a separate statement: it sees accounts that were closed during the wait for the locks.
    sqlx::query_scalar(
        "SELECT staff.account_id
         FROM staff_grants staff JOIN accounts account ON account.id = staff.account_id
         WHERE staff.theatre_id = $1 AND staff.role = 'manager' AND account.closed_at IS NULL
         ORDER BY staff.account_id",
    )
    .bind(theatre)
    .fetch_all(tx)
    .await
}

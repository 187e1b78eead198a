//! The staff of a theatre and their roles, which its managers change. A change of roles ends the account's sessions,
//! because roles decide the lifetime of a session.

use domain::VariantName;
use domain::api::accounts::{GrantRequest, StaffView};
use domain::api::systems::{MAX_REASON_CHARS, one_line};
use domain::roles::Role;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::limits::GRANTS_MANAGER;
use super::staff::Staff;
use super::{account, person, sessions};
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use platform::clock::to_utc;
use platform::database::BindAll;

/// Maximum number of grants in an answer.
const MAX_STAFF: i64 = 1_000;

/// Returns the staff of a theatre, by name.
pub async fn list(state: &IdentityState, theatre: &str) -> ApiResult<Vec<StaffView>> {
    let mut people: Vec<StaffView> = Vec::new();
    for (account, name, email, role) in load_staff(&mut *state.pg.acquire().await?, theatre).await? {
        let role = parse_role(&role)?;
        match people.last_mut().filter(|last| last.account == account) {
            Some(last) => last.roles.push(role),
            None => people.push(StaffView { account, name, email, roles: vec![role] }),
        }
    }
    people.iter_mut().for_each(|person| person.roles.sort_unstable());
    Ok(people)
}

/// Gives or takes a role in a theatre. A request without effect writes no audit entry.
///
/// # Errors
/// 404 without an account of that address. 409 while its address is not proven, and for the last manager. 400 without a
/// reason.
pub async fn change(
    state: &IdentityState,
    staff: &Staff,
    theatre: &str,
    request: &GrantRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let who = staff.session.account.to_string();
    state.rate_limits.take(&GRANTS_MANAGER, &who).await?;
    let reason = reason_of(&request.reason)?;
    let email = person::email_of(&request.email)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let found = account::by_email(&mut tx, email).await?.ok_or_else(|| Problem::not_found("account"))?;
    if request.granted && found.email_proven_at.is_none() {
        // Any person can register an address and wait for its owner to be hired.
        let detail = "They must confirm their address first: by the link that was mailed to them.";
        return Err(Problem::new(Code::EmailUnproven, detail));
    }
    let account = found.id;
    let (act, is_change) = if request.granted {
        ("role_given", give(&mut tx, account, theatre, request.role, now).await?)
    } else {
        ("role_taken", take(&mut tx, account, theatre, request.role, now).await?)
    };
    if is_change {
        let subject = format!("{} as {}", audit::account(account), request.role.as_str());
        let entry = AuditEntry::by(staff.session.account, act, subject, reason).at(theatre);
        audit::record(&mut tx, &entry, now).await?;
    }
    let answer = Answer::no_content();
    let answer = intent.commit(tx, answer, now).await?;
    state.accounts.sessions.invalidate_all();
    Ok(answer)
}

/// Gives a role; `false` when the account already has it.
pub(super) async fn give(
    tx: &mut PgConnection,
    account: Uuid,
    theatre: &str,
    role: Role,
    now: Timestamp,
) -> ApiResult<bool> {
    // The lock blocks concurrent sign-ins.
    account::lock(tx, account).await?.ok_or_else(|| Problem::not_found("account"))?;
    let is_new = insert(tx, account, theatre, role, now).await?;
    if is_new {
        sessions::end_all(tx, account, None, now).await?;
    }
    Ok(is_new)
}

/// Fails unless the account manages all theatres.
///
/// # Errors
/// 403 when it does not.
pub async fn require_manager_of_all(state: &IdentityState, staff: &Staff) -> ApiResult<()> {
    if manages_all(&mut *state.pg.acquire().await?, staff.session.account).await? {
        return Ok(());
    }
    Err(Problem::new(Code::NotAllowed, "This is for managers of all theatres."))
}

/// Makes the creator of a theatre its manager. Their sessions stay: they have a manager's lifetime already.
pub async fn make_manager(tx: &mut PgConnection, staff: &Staff, theatre: &str, now: Timestamp) -> sqlx::Result<()> {
    insert(tx, staff.session.account, theatre, Role::Manager, now).await.map(|_| ())
}

async fn take(tx: &mut PgConnection, account: Uuid, theatre: &str, role: Role, now: Timestamp) -> ApiResult<bool> {
    account::lock(tx, account).await?.ok_or_else(|| Problem::not_found("account"))?;
    if role == Role::Manager && lock_managers(tx, theatre).await? == [account] {
        let detail = "A theatre needs a manager. Make someone else a manager first.";
        return Err(Problem::new(Code::LastManager, detail));
    }
    let was_so = delete(tx, account, theatre, role).await?;
    if was_so {
        sessions::end_all(tx, account, None, now).await?;
    }
    Ok(was_so)
}

/// Validates the reason of an action.
///
/// # Errors
/// 400 when it is missing or too long.
pub fn reason_of(text: &str) -> ApiResult<&str> {
    let detail = || format!("Say why, in one line of up to {MAX_REASON_CHARS} characters.");
    one_line(text, MAX_REASON_CHARS).ok_or_else(|| Problem::new(Code::Malformed, detail()))
}

/// Returns the roles of an account by theatre, sorted.
pub(super) async fn roles_of(tx: &mut PgConnection, account: Uuid) -> sqlx::Result<Vec<(String, Role)>> {
    let sql = "SELECT theatre_id, role FROM staff_grants WHERE account_id = $1 ORDER BY theatre_id, role";
    let rows: Vec<(String, String)> = sqlx::query_as(sql).bind(account).fetch_all(tx).await?;
    rows.into_iter().map(|(theatre, role)| Ok((theatre, parse_role(&role)?))).collect()
}

/// Parses a stored role; an invalid value is an error that names it, never a default.
fn parse_role(role: &str) -> sqlx::Result<Role> {
    role.parse().map_err(|_| sqlx::Error::Decode(format!("staff_grants.role is {role:?}").into()))
}

/// Returns the staff of a theatre by name, one row per role.
async fn load_staff(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<Vec<(Uuid, String, String, String)>> {
    let sql = "SELECT account.id, account.name, account.email, staff.role
               FROM staff_grants staff JOIN accounts account ON account.id = staff.account_id
               WHERE staff.theatre_id = $1 AND account.closed_at IS NULL
               ORDER BY account.name, account.id, staff.role LIMIT $2";
    sqlx::query_as(sql).bind_all((theatre, MAX_STAFF)).fetch_all(tx).await
}

/// Gives a role; `false` when the account already has it.
async fn insert(tx: &mut PgConnection, account: Uuid, theatre: &str, role: Role, now: Timestamp) -> sqlx::Result<bool> {
    let sql = "INSERT INTO staff_grants (account_id, theatre_id, role, granted_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT DO NOTHING";
    let given = sqlx::query(sql).bind_all((account, theatre, role.as_str(), to_utc(now))).execute(tx).await?;
    Ok(given.rows_affected() == 1)
}

/// Takes a role; `false` when the account does not have it.
async fn delete(tx: &mut PgConnection, account: Uuid, theatre: &str, role: Role) -> sqlx::Result<bool> {
    let sql = "DELETE FROM staff_grants WHERE account_id = $1 AND theatre_id = $2 AND role = $3";
    let taken = sqlx::query(sql).bind_all((account, theatre, role.as_str())).execute(tx).await?;
    Ok(taken.rows_affected() == 1)
}

/// Returns `true` when an account manages all theatres, and at least one exists.
async fn manages_all(tx: &mut PgConnection, account: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM theatres)
            AND NOT EXISTS (SELECT 1 FROM theatres theatre
                            WHERE NOT EXISTS (SELECT 1 FROM staff_grants
                                              WHERE account_id = $1 AND theatre_id = theatre.id AND role = 'manager'))";
    sqlx::query_scalar(sql).bind(account).fetch_one(tx).await
}

/// Returns the managers of a theatre with an open account, in the order of their ids, locked: two of them cannot remove
/// each other concurrently.
async fn lock_managers(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT 1 FROM staff_grants WHERE theatre_id = $1 AND role = 'manager' ORDER BY account_id FOR UPDATE";
    sqlx::query(sql).bind(theatre).execute(&mut *tx).await?;
    // In a separate statement: it sees accounts that were closed during the wait for the locks.
    let sql = "SELECT staff.account_id
               FROM staff_grants staff JOIN accounts account ON account.id = staff.account_id
               WHERE staff.theatre_id = $1 AND staff.role = 'manager' AND account.closed_at IS NULL
               ORDER BY staff.account_id";
    sqlx::query_scalar(sql).bind(theatre).fetch_all(tx).await
}

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
use super::{person, sql};
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};

/// Maximum number of grants in an answer.
const MAX_STAFF: i64 = 1_000;

/// Returns the staff of a theatre, by name.
pub async fn list(state: &IdentityState, theatre: &str) -> Result<Vec<StaffView>, Problem> {
    let mut people: Vec<StaffView> = Vec::new();
    for row in sql::grants::of_theatre(&mut *state.pg.acquire().await?, theatre, MAX_STAFF).await? {
        let role = sql::grants::parse_role(&row.role)?;
        match people.last_mut().filter(|last| last.account == row.id) {
            Some(last) => last.roles.push(role),
            None => {
                people.push(StaffView { account: row.id, name: row.name, email: row.email, roles: vec![role] });
            }
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
) -> Result<Answer, Problem> {
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
    let found = sql::by_email(&mut tx, email).await?.ok_or_else(|| Problem::not_found("account"))?;
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
) -> Result<bool, Problem> {
    // The lock blocks concurrent sign-ins.
    sql::lock(tx, account).await?.ok_or_else(|| Problem::not_found("account"))?;
    let is_new = sql::grants::give(tx, account, theatre, role, now).await?;
    if is_new {
        sql::sessions::end_all(tx, account, None, now).await?;
    }
    Ok(is_new)
}

/// Fails unless the account manages all theatres.
///
/// # Errors
/// 403 when it does not.
pub async fn require_manager_of_all(state: &IdentityState, staff: &Staff) -> Result<(), Problem> {
    if sql::grants::require_manager_of_all(&mut *state.pg.acquire().await?, staff.session.account).await? {
        return Ok(());
    }
    Err(Problem::new(Code::NotAllowed, "This is for managers of all theatres."))
}

/// Makes the creator of a theatre its manager. Their sessions stay: they have a manager's lifetime already.
pub async fn make_manager(
    tx: &mut PgConnection,
    staff: &Staff,
    theatre: &str,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sql::grants::give(tx, staff.session.account, theatre, Role::Manager, now).await.map(|_| ())
}

async fn take(
    tx: &mut PgConnection,
    account: Uuid,
    theatre: &str,
    role: Role,
    now: Timestamp,
) -> Result<bool, Problem> {
    sql::lock(tx, account).await?.ok_or_else(|| Problem::not_found("account"))?;
    if role == Role::Manager && sql::grants::lock_managers(tx, theatre).await? == [account] {
        let detail = "A theatre needs a manager. Make someone else a manager first.";
        return Err(Problem::new(Code::LastManager, detail));
    }
    let was_so = sql::grants::take(tx, account, theatre, role).await?;
    if was_so {
        sql::sessions::end_all(tx, account, None, now).await?;
    }
    Ok(was_so)
}

/// Validates the reason of an action.
///
/// # Errors
/// 400 when it is missing or too long.
pub fn reason_of(text: &str) -> Result<&str, Problem> {
    let detail = || format!("Say why, in one line of up to {MAX_REASON_CHARS} characters.");
    one_line(text, MAX_REASON_CHARS).ok_or_else(|| Problem::new(Code::Malformed, detail()))
}

//! PINs of managers: a few digits with which a manager approves a colleague's action at the counter.
//!
//! A PIN is short, so attempts are limited: per account that enters it, per account and manager, and, with a much
//! higher limit, per manager for all accounts. A colleague who enters wrong PINs locks out only themselves.

use domain::api::accounts::Password;
use domain::api::box_office::{ManagerView, PinRequest};
use domain::roles::Role;
use domain::time::Timestamp;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::limits::{PIN, PIN_MANAGER, PIN_PAIR};
use super::staff::Staff;
use super::{account, grants};
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use platform::clock::to_utc;
use platform::database::BindAll;

/// Minimum and maximum number of digits.
const DIGITS: std::ops::RangeInclusive<usize> = 6..=12;
/// Maximum number of managers in an answer.
const MAX_MANAGERS: i64 = 100;

/// The fields of a new PIN that identify a duplicate: a keyed digest.
#[derive(Serialize)]
pub struct PinIntent {
    pin: String,
}

impl PinIntent {
    /// Builds the intent of this request.
    #[must_use]
    pub fn of(state: &IdentityState, request: &PinRequest) -> Self {
        Self { pin: state.accounts.tokens.digest(request.pin.as_bytes()) }
    }
}

/// Sets the caller's own PIN. It requires the password, so that an unattended till gives no PIN away.
///
/// # Errors
/// 400 for an invalid PIN, 401 for a wrong password, 429 after too many attempts.
pub async fn set_pin(
    state: &IdentityState,
    staff: &Staff,
    theatre: &str,
    request: &PinRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let account = staff.session.account;
    check_digits(&request.pin)?;
    state.rate_limits.take(&PIN, &account.to_string()).await?;
    let found = account::by_id(&mut *state.pg.acquire().await?, account).await?;
    let stored = found.map(|found| found.password_hash);
    if !state.accounts.hashing.verify_password(&request.password, stored.as_deref()).await? {
        return Err(Problem::new(Code::LoginFailed, "This is not your password."));
    }
    let hash = state.accounts.hashing.hash(&request.pin).await?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    put(&mut tx, account, &hash, now).await?;
    let entry = AuditEntry::by(account, "pin_set", audit::account(account), "By its owner.").at(theatre);
    audit::record(&mut tx, &entry, now).await?;
    let answer = Answer::no_content();
    intent.commit(tx, answer, now).await
}

fn check_digits(pin: &Password) -> ApiResult<()> {
    let digits = pin.as_bytes();
    let is_pin = DIGITS.contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    // 111111 is the first guess of an attacker.
    let is_one_digit = digits.windows(2).all(|pair| pair[0] == pair[1]);
    if is_pin && !is_one_digit {
        return Ok(());
    }
    let detail = format!("A PIN has {} to {} digits, and not the same one throughout.", DIGITS.start(), DIGITS.end());
    Err(Problem::new(Code::PasswordUnusable, detail))
}

/// Checks the PIN of a manager of this theatre, entered at a colleague's till.
///
/// # Errors
/// 422 for a wrong PIN, a manager of other theatres, or a manager without a PIN; 429 after too many attempts.
pub async fn check_pin(
    state: &IdentityState,
    staff: &Staff,
    theatre: &str,
    manager: Uuid,
    pin: &Password,
) -> ApiResult<()> {
    let typist = staff.session.account;
    // The narrow limits first: an account that has used them up takes nothing from the manager's limit.
    let tries = [
        (&PIN, format!("by {typist}")),
        (&PIN_PAIR, format!("by {typist} of {manager}")),
        (&PIN_MANAGER, format!("of {manager}")),
    ];
    for (limit, whose) in &tries {
        state.rate_limits.take(limit, whose).await?;
    }
    let mut connection = state.pg.acquire().await?;
    let is_manager = grants::roles_of(&mut connection, manager)
        .await?
        .iter()
        .any(|(at, role)| at == theatre && *role == Role::Manager);
    let is_open = account::by_id(&mut connection, manager).await?.is_some();
    let stored = if is_manager && is_open { hash_of(&mut connection, manager).await? } else { None };
    drop(connection);
    // A text longer than any PIN is not hashed.
    let is_short = pin.as_bytes().len() <= *DIGITS.end();
    if is_short && state.accounts.hashing.verify_password(pin, stored.as_deref()).await? {
        for (limit, whose) in &tries {
            state.rate_limits.give_back(limit, whose).await;
        }
        return Ok(());
    }
    Err(Problem::new(Code::PinWrong, "Manager and PIN do not go together. Nothing was done."))
}

/// Returns the managers of a theatre who have a PIN, by name.
pub async fn managers_with_pin(state: &IdentityState, theatre: &str) -> sqlx::Result<Vec<ManagerView>> {
    let sql = "SELECT account.id, account.name
               FROM staff_grants staff
               JOIN accounts account ON account.id = staff.account_id
               JOIN manager_pins pin ON pin.account_id = account.id
               WHERE staff.theatre_id = $1 AND staff.role = 'manager' AND account.closed_at IS NULL
               ORDER BY account.name, account.id LIMIT $2";
    let rows: Vec<(Uuid, String)> = sqlx::query_as(sql).bind_all((theatre, MAX_MANAGERS)).fetch_all(&state.pg).await?;
    Ok(rows.into_iter().map(|(account, name)| ManagerView { account, name }).collect())
}

async fn put(tx: &mut PgConnection, account: Uuid, hash: &str, now: Timestamp) -> sqlx::Result<()> {
    let sql = "INSERT INTO manager_pins (account_id, pin_hash, set_at) VALUES ($1, $2, $3)
               ON CONFLICT (account_id) DO UPDATE SET pin_hash = EXCLUDED.pin_hash, set_at = EXCLUDED.set_at";
    sqlx::query(sql).bind_all((account, hash, to_utc(now))).execute(tx).await.map(drop)
}

async fn hash_of(tx: &mut PgConnection, account: Uuid) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT pin_hash FROM manager_pins WHERE account_id = $1").bind(account).fetch_optional(tx).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_has_six_to_twelve_digits_that_differ() {
        let is_pin = |text: &str| check_digits(&Password::new(text.to_owned())).is_ok();
        for valid in ["274951", "000001", "123456789012"] {
            assert!(is_pin(valid), "{valid}");
        }
        for bad in ["", "12345", "1234567890123", "12345a", "１２３４５６", "111111", " 274951"] {
            assert!(!is_pin(bad), "{bad}");
        }
    }
}

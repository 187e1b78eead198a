//! A new account. The answer is the same for an address that has one; its owner is told by mail.
//!
//! Signing in afterwards goes well only where the account is new, so whoever tries does learn whether an address had
//! one: at the price of a mail to its owner for each address asked about, and no faster than the limits allow.

use axum::http::StatusCode;
use domain::api::Person;
use domain::api::accounts::{MIN_PASSWORD_CHARS, NextStep, Password, RegisterRequest};

use super::limits::{self, MAIL_PERSON, REGISTER_ADDRESS};
use super::mails::{self, Kind};
use super::{person, sql};
use crate::IdentityState;
use http::idempotency::{Answer, Intent};
use http::{ClientAddress, Code, Problem};
use platform::ids;

/// Makes an account, or tells the owner of the one there is.
///
/// # Errors
/// 400 for a name, address or password that cannot be used, 429 for too many from one address, 503 when too many
/// passwords are being hashed.
pub async fn register(
    state: &IdentityState,
    address: &ClientAddress,
    request: &RegisterRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let wanted = Person { name: request.name.clone(), email: request.email.clone() };
    let (name, email) = person::check("account", &wanted)?;
    check_new(&request.password)?;
    limits::of_address(state, &REGISTER_ADDRESS, address).await?;
    // Also where there is an account: it takes as long.
    let hash = state.accounts.hashing.hash(&request.password).await?;
    let may_mail = state.rate_limits.take(&MAIL_PERSON, &person::known_as(&email)).await.is_ok();

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let is_new = sql::insert(&mut tx, ids::new_id(), (&email, &name), &hash, now).await?;
    if may_mail {
        let kind = if is_new { Kind::Prove } else { Kind::RegisteredAgain };
        mails::enqueue(&mut tx, kind, &email, now).await?;
    }
    let answer = Answer::json(StatusCode::CREATED, &NextStep::log_in(email))?;
    let answer = intent.commit(tx, answer, now).await?;
    mails::wake(state);
    Ok(answer)
}

/// # Errors
/// 400 when nobody may choose it.
pub(super) fn check_new(password: &Password) -> Result<(), Problem> {
    if password.is_acceptable() {
        return Ok(());
    }
    let detail = format!(
        "Choose at least {MIN_PASSWORD_CHARS} characters, for example a few words. Very long ones have an end too."
    );
    Err(Problem::new(Code::PasswordUnusable, detail))
}

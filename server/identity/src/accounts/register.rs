//! Creates accounts. The answer is the same for an address that has one; its owner gets a mail.
//!
//! A sign-in with the new password succeeds only if the account is new, so an attacker can find out whether an address
//! has an account. Each attempt sends a mail to the address's owner and is rate-limited.

use axum::http::StatusCode;
use domain::api::Person;
use domain::api::accounts::{MIN_PASSWORD_CHARS, NextStep, Password, RegisterRequest};

use super::limits::{self, MAIL_PERSON, REGISTER_ADDRESS};
use super::mails::{self, MailKind};
use super::{account, person};
use crate::IdentityState;
use http::idempotency::{Answer, Intent};
use http::{ClientAddress, Code, Problem};
use platform::ids;

/// Creates an account, or mails the owner of the existing one.
///
/// # Errors
/// 400 for an invalid name, address or password. 429 for too many registrations from one address. 503 when the hashing
/// queue is full.
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
    // Hashed for an existing account as well, so that the timing is the same.
    let hash = state.accounts.hashing.hash(&request.password).await?;
    let may_mail = state.rate_limits.take(&MAIL_PERSON, &person::normalise_address(&email)).await.is_ok();

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let is_new = account::insert(&mut tx, ids::new_id(), (&email, &name), &hash, now).await?;
    if may_mail {
        let kind = if is_new { MailKind::Prove } else { MailKind::RegisteredAgain };
        mails::enqueue(&mut tx, kind, &email, now).await?;
    }
    let answer = Answer::json(StatusCode::CREATED, &NextStep::log_in(email))?;
    let answer = intent.commit(tx, answer, now).await?;
    mails::wake(state);
    Ok(answer)
}

/// Checks that a new password is acceptable. 400 when it is not.
pub(super) fn check_new(password: &Password) -> Result<(), Problem> {
    if password.is_acceptable() {
        return Ok(());
    }
    let detail = format!(
        "Choose at least {MIN_PASSWORD_CHARS} characters, for example a few words. Very long ones have an end too."
    );
    Err(Problem::new(Code::PasswordUnusable, detail))
}

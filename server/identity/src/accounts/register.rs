//! Creates accounts, and proves that their owners receive mail at their addresses.
//!
//! The answer to a registration is the same for an address that has an account; its owner gets a mail. A sign-in with the
//! new password succeeds only if the account is new, so an attacker can find out whether an address has an account. Each
//! attempt sends a mail to the address's owner and is rate-limited.
//!
//! Guest bookings with an address join the account that has proven it. The link alone proves nothing: any person may
//! register any address, and a mailbox's owner may open any link. Only a signed-in user who also has the mail is proven to
//! be the owner.

use axum::http::StatusCode;
use domain::api::Person;
use domain::api::accounts::{MIN_PASSWORD_CHARS, NextStep, Password, ProofRequest, RegisterRequest};

use super::limits::{self, MAIL_ADDRESS, REGISTER_ADDRESS};
use super::links::{self, Purpose};
use super::mails::{self, MailKind};
use super::sessions::Session;
use super::{account, person};
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{ApiResult, ClientAddress, Code, Problem};
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
) -> ApiResult<Answer> {
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
    let may_mail = limits::count_mail(state, &email, address).await.is_ok();

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

/// Checks that a new password is acceptable.
///
/// # Errors
/// 400 when it is not.
pub(super) fn check_new(password: &Password) -> ApiResult<()> {
    if password.is_acceptable() {
        return Ok(());
    }
    let detail = format!(
        "Choose at least {MIN_PASSWORD_CHARS} characters, for example a few words. Very long ones have an end too."
    );
    Err(Problem::new(Code::PasswordUnusable, detail))
}

/// Mails the link to the signed-in user.
///
/// # Errors
/// 429 after several requests in a row.
pub async fn send_proof(
    state: &IdentityState,
    session: &Session,
    address: &ClientAddress,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    limits::of_address(state, &MAIL_ADDRESS, address).await?;
    let account = account::by_id(&mut *state.pg.acquire().await?, session.account).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    mails::enqueue_requested(state, MailKind::Prove, &account.email, address, intent, now).await
}

/// Redeems the link for the signed-in user.
///
/// # Errors
/// 410 when it belongs to another account, was used, or has expired.
pub async fn prove(
    state: &IdentityState,
    session: &Session,
    address: &ClientAddress,
    request: &ProofRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    limits::of_address(state, &MAIL_ADDRESS, address).await?;
    let hash = links::read(&request.token)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    if !links::redeem_link(&mut tx, hash, session.account, Purpose::Prove, now).await? {
        return Err(links::invalid());
    }
    account::set_proven(&mut tx, session.account, now).await?;
    let entry =
        AuditEntry::by(session.account, "email_proven", audit::account(session.account), "By a link in a mail.");
    audit::record(&mut tx, &entry, now).await?;
    let account = account::of_account(&mut tx, session.account).await?.ok_or_else(|| Problem::not_found("account"))?;
    let answer = Answer::json(StatusCode::OK, &account)?;
    intent.commit(tx, answer, now).await
}

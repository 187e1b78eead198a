//! Changes a password, with the old one or by a mailed link. Both end all sessions.

use domain::api::accounts::{ForgottenRequest, PasswordChange, ResetRequest};
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::account::{self, AccountRow};
use super::limits::{self, LoginLimits, MAIL_ADDRESS};
use super::links::{self, Purpose};
use super::login::{self, LoggedIn};
use super::mails::{self, MailKind};
use super::person;
use super::register::check_new;
use super::sessions::{self, Session};
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{ApiResult, ClientAddress, Code, Problem};

/// Changes the password of the signed-in user. All other sessions end; this browser gets a new session and cookie.
///
/// # Errors
/// 401 for a wrong old password, 400 for an unacceptable new one, 429 after too many attempts.
pub async fn change(
    state: &IdentityState,
    session: &Session,
    address: &ClientAddress,
    request: &PasswordChange,
) -> ApiResult<LoggedIn> {
    check_new(&request.new)?;
    state.accounts.hashing.check_capacity()?;
    let now = state.clock.now();
    let account = account::by_id(&mut *state.pg.acquire().await?, session.account).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    // A session is of a browser or an API client that knew the password.
    let tries = LoginLimits::of(&account.email, address, true);
    tries.take(state).await?;
    let verified = state.accounts.hashing.verify_password(&request.current, Some(&account.password_hash)).await;
    if verified.is_err() {
        tries.give_back(state).await;
    }
    if !verified? {
        return Err(Problem::new(Code::LoginFailed, "That is not your password as it is now."));
    }
    tries.give_back(state).await;
    let hash = state.accounts.hashing.hash(&request.new).await?;

    let mut tx = state.pg.begin().await?;
    replace(&mut tx, &account, &hash, "password_changed", now).await?;
    let logged_in = login::renew_session(&mut tx, state, session, now).await?;
    tx.commit().await?;
    end_cached_sessions(state);
    Ok(logged_in)
}

/// Mails a link for a new password if the address has an account. The answer does not reveal it.
///
/// # Errors
/// 400 for an invalid address, 429 after several requests in a row.
pub async fn forgotten(
    state: &IdentityState,
    address: &ClientAddress,
    request: &ForgottenRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let email = person::email_of(&request.email)?;
    limits::of_address(state, &MAIL_ADDRESS, address).await?;
    // The limit depends on the typed address, so it reveals no accounts either.
    mails::enqueue_requested(state, MailKind::Reset, email, address, intent, now).await
}

/// Sets a new password by a mailed link, which also proves the address.
///
/// # Errors
/// 410 for a used, expired or unknown link; 400 for an unacceptable password.
pub async fn reset(
    state: &IdentityState,
    address: &ClientAddress,
    request: &ResetRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    limits::of_address(state, &MAIL_ADDRESS, address).await?;
    check_new(&request.password)?;
    let link = links::read(&request.token)?;
    // The link is checked before the hashing, so that requests without one cost no CPU.
    let mut connection = state.pg.acquire().await?;
    let whose = links::account_of_link(&mut connection, link, Purpose::Reset, now).await?;
    drop(connection);
    let whose = whose.ok_or_else(links::invalid)?;
    let hash = state.accounts.hashing.hash(&request.password).await?;

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let account = account::lock(&mut tx, whose).await?.ok_or_else(links::invalid)?;
    if !links::redeem_link(&mut tx, link, whose, Purpose::Reset, now).await? {
        return Err(links::invalid());
    }
    replace(&mut tx, &account, &hash, "password_reset", now).await?;
    account::set_proven(&mut tx, whose, now).await?;
    sessions::end_all(&mut tx, whose, None, now).await?;
    let answer = Answer::no_content();
    let answer = intent.commit(tx, answer, now).await?;
    LoginLimits::of(&account.email, address, false).clear(state).await;
    end_cached_sessions(state);
    Ok(answer)
}

async fn replace(
    tx: &mut PgConnection,
    account: &AccountRow,
    hash: &str,
    act: &'static str,
    now: Timestamp,
) -> ApiResult<()> {
    if !account::set_password(tx, account, hash, now).await? {
        let detail = "Your account was changed somewhere else at this moment. Please try again.";
        return Err(Problem::new(Code::Overloaded, detail));
    }
    // Links mailed before may be in the hands of the previous password's or mailbox's user: they are voided.
    links::void_links(tx, account.id, Purpose::Reset, now).await?;
    let entry = AuditEntry::by(account.id, act, audit::account(account.id), "By its owner.");
    audit::record(tx, &entry, now).await?;
    mails::enqueue(tx, MailKind::PasswordChanged, &account.email, now).await?;
    Ok(())
}

/// Clears the session cache and wakes the mail worker, after a commit.
fn end_cached_sessions(state: &IdentityState) {
    state.accounts.sessions.invalidate_all();
    mails::wake(state);
}

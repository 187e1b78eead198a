//! Proves that an account's owner receives mail at its address. Guest bookings with that address then join the account.
//!
//! The link alone proves nothing: any person may register any address, and a mailbox's owner may open any link. Only a
//! signed-in user who also has the mail is proven to be the owner.

use axum::http::StatusCode;
use domain::api::accounts::ProofRequest;

use super::account;
use super::limits::{self, MAIL_ADDRESS};
use super::links::{self, Purpose};
use super::mails::{self, MailKind};
use super::sessions::Session;
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{ClientAddress, Problem};

/// Mails the link to the signed-in user.
///
/// # Errors
/// 429 after several requests in a row.
pub async fn send_proof(
    state: &IdentityState,
    session: &Session,
    address: &ClientAddress,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    limits::of_address(state, &MAIL_ADDRESS, address).await?;
    let account = account::by_id(&mut *state.pg.acquire().await?, session.account).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    mails::enqueue_requested(state, MailKind::Prove, &account.email, intent, now).await
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
) -> Result<Answer, Problem> {
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
    if !links::use_link(&mut tx, hash, session.account, Purpose::Prove, now).await? {
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

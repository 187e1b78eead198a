//! Mails of accounts. Delivery is at least once; the message id hides duplicates.
//!
//! A request only enqueues a mail. The worker looks up the account and builds the mail, so the response time reveals no
//! customers.

use axum::http::StatusCode;
use domain::VariantName;
use domain::api::accounts::NextStep;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use strum::{EnumString, IntoStaticStr};
use tokio::time::timeout;
use uuid::Uuid;

use super::account;
use super::limits;
use super::links::{self, Purpose};
use crate::IdentityState;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, ClientAddress};
use platform::clock::to_utc;
use platform::database::BindAll;
use platform::ids;
use tickets::{AccountMail, MAIL_LEASE_MS, MailError, MailLane, SEND_WITHIN};

/// Maximum number of attempts: with the pauses below about an hour on average.
const MAX_TRIES: i32 = 30;
/// First pause after a failure, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;
/// Maximum pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "snake_case")]
pub(super) enum MailKind {
    /// A link for a new password.
    Reset,
    /// A link that proves that the account's owner receives the mail.
    Prove,
    /// A registration with the address of an existing account.
    RegisteredAgain,
    /// The password was changed.
    PasswordChanged,
}

/// Enqueues a mail in the caller's transaction. Call [`wake`] after the commit.
pub(super) async fn enqueue(tx: &mut PgConnection, kind: MailKind, email: &str, now: Timestamp) -> sqlx::Result<()> {
    insert(tx, ids::new_id(), kind.as_str(), email, now).await
}

/// Enqueues a mail requested from this network address and answers that it must be read. The rate limit of the e-mail
/// address is the same whether it has an account or not.
pub(super) async fn enqueue_requested(
    state: &IdentityState,
    kind: MailKind,
    email: &str,
    address: &ClientAddress,
    intent: &Intent,
    now: Timestamp,
) -> ApiResult<Answer> {
    limits::count_mail(state, email, address).await?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    enqueue(&mut tx, kind, email, now).await?;
    let answer = Answer::json(StatusCode::ACCEPTED, &NextStep::read_mail(email.to_owned()))?;
    let answer = intent.commit(tx, answer, now).await?;
    wake(state);
    Ok(answer)
}

pub(super) fn wake(state: &IdentityState) {
    state.accounts.mail_wake.notify_one();
}

/// Sends due mails until the server stops; finishes the mails it has taken.
pub async fn send_forever(state: IdentityState) {
    let state = &state;
    let lane = MailLane { what: "mails of accounts", stop: &state.stop, wake: &state.accounts.mail_wake };
    lane.send_forever(move || take(state), move |row| send(state, row)).await;
}

async fn take(state: &IdentityState) -> sqlx::Result<Option<MailRow>> {
    let now = state.clock.now();
    lease_due(&state.pg, now, now.plus_ms(MAIL_LEASE_MS)).await
}

async fn send(state: &IdentityState, row: MailRow) {
    let sent = timeout(SEND_WITHIN, build_and_send(state, &row)).await;
    let noted = match sent.unwrap_or_else(|_| Err(MailError::TooLate.to_string())) {
        Ok(()) => delete(&state.pg, row.id).await,
        Err(cause) if row.tries >= MAX_TRIES => {
            tracing::error!(mail = %row.id, kind = row.kind, %cause, "dropped account mail {} after the last retry", row.id);
            delete(&state.pg, row.id).await
        }
        Err(cause) => {
            tracing::warn!(mail = %row.id, kind = row.kind, %cause, "send account mail {} failed; it is retried", row.id);
            let pause = ids::backoff_ms(FIRST_PAUSE_MS, row.tries, LONGEST_PAUSE_MS);
            postpone(&state.pg, &row, state.clock.now().plus_ms(pause)).await
        }
    };
    if let Err(cause) = noted {
        tracing::warn!(mail = %row.id, %cause, "record the outcome of account mail {} failed", row.id);
    }
}

/// Builds and sends a mail; the error is the text of the mail server or the database.
async fn build_and_send(state: &IdentityState, row: &MailRow) -> Result<(), String> {
    match build_mail(state, row, state.clock.now()).await {
        Ok(Some(mail)) => state.mailer.send_account(&mail).await.map_err(|cause| cause.to_string()),
        Ok(None) => Ok(()),
        Err(cause) => Err(cause.to_string()),
    }
}

/// Builds the mail; `None` when it has no recipient.
async fn build_mail(state: &IdentityState, row: &MailRow, now: Timestamp) -> sqlx::Result<Option<AccountMail>> {
    let corrupt = |_| sqlx::Error::Decode(format!("account_mails({}).kind is {:?}", row.id, row.kind).into());
    let kind = row.kind.parse::<MailKind>().map_err(corrupt)?;
    let mut connection = state.pg.acquire().await?;
    let Some(account) = account::by_email(&mut connection, &row.email).await? else { return Ok(None) };
    drop(connection);
    let public_url = state.site.public_url.trim_end_matches('/');
    let url = match kind {
        MailKind::Prove if account.email_proven_at.is_some() => return Ok(None),
        MailKind::Prove => links::make(&state.pg, public_url, account.id, Purpose::Prove, now).await?,
        MailKind::Reset => links::make(&state.pg, public_url, account.id, Purpose::Reset, now).await?,
        MailKind::RegisteredAgain => format!("{public_url}/login"),
        MailKind::PasswordChanged => format!("{public_url}/reset"),
    };
    let (subject, words) = subject_and_text(kind);
    Ok(Some(AccountMail {
        id: row.id,
        // A name of an unproven address may be a stranger's text: the mail leaves it out.
        to_name: if account.email_proven_at.is_some() { account.name } else { String::new() },
        // The stored address, not the typed one.
        to_email: account.email,
        subject: subject.to_owned(),
        words: words.to_owned(),
        url,
        at: now,
    }))
}

const fn subject_and_text(kind: MailKind) -> (&'static str, &'static str) {
    match kind {
        MailKind::Reset => (
            "A new password",
            "Someone asked for a new password for your account. Choose it here within the hour; the link works once. \
             If it was not you, you can ignore this e-mail: nothing has changed.",
        ),
        MailKind::Prove => (
            "Please confirm your address",
            "Open this link within a day, where you are signed in. Then what you bought with this address as a guest \
             joins your account. If you did not register, you can ignore this e-mail: without your confirmation, \
             no one sees your bookings.",
        ),
        MailKind::RegisteredAgain => (
            "You already have an account",
            "Someone registered with your address. It has an account, which stays as it is: sign in, or ask for a new \
             password there if you have forgotten it. If it was not you, you can ignore this e-mail.",
        ),
        MailKind::PasswordChanged => (
            "Your password was changed",
            "Every device that was signed in to your account has to sign in again with the new password. If it was not \
             you, choose another one here immediately.",
        ),
    }
}

#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct MailRow {
    pub(super) id: Uuid,
    pub(super) kind: String,
    pub(super) email: String,
    pub(super) tries: i32,
}

async fn insert(tx: &mut PgConnection, id: Uuid, kind: &str, email: &str, now: Timestamp) -> sqlx::Result<()> {
    let sql = "INSERT INTO account_mails (id, kind, email, run_after, created_at) VALUES ($1, $2, $3, $4, $4)";
    sqlx::query(sql).bind_all((id, kind, email, to_utc(now))).execute(tx).await.map(drop)
}

/// Leases one due mail until `lease_until`.
async fn lease_due(pg: &PgPool, now: Timestamp, lease_until: Timestamp) -> sqlx::Result<Option<MailRow>> {
    let sql = "UPDATE account_mails mail SET run_after = $2, tries = mail.tries + 1
               FROM (SELECT id FROM account_mails WHERE run_after <= $1 ORDER BY run_after LIMIT 1
                     FOR UPDATE SKIP LOCKED) AS due
               WHERE mail.id = due.id RETURNING mail.id, mail.kind, mail.email, mail.tries";
    sqlx::query_as(sql).bind_all((to_utc(now), to_utc(lease_until))).fetch_optional(pg).await
}

/// Deletes a mail that was sent, has no recipient, or has used its last retry.
async fn delete(pg: &PgPool, id: Uuid) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM account_mails WHERE id = $1").bind(id).execute(pg).await.map(drop)
}

/// Postpones a failed mail to `at`.
async fn postpone(pg: &PgPool, mail: &MailRow, at: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE account_mails SET run_after = $3 WHERE id = $1 AND tries = $2";
    sqlx::query(sql).bind_all((mail.id, mail.tries, to_utc(at))).execute(pg).await.map(drop)
}

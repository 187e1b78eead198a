//! Sends codes, at least once each; a duplicate has the same content.
//!
//! A request only stores the code: a slow mail server delays no checkout, and a code
//! survives a crash of the replica that stored it.

use std::time::Duration;

use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use language::{Language, say};

use super::sql::{self, ToSend};
use super::{CODE_LIFE_MS, Message, service};
use crate::SellingState;
use platform::background::wait_for_wake;
use platform::ids;

/// Poll interval without a wake.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Codes sent in one round, concurrently: visitors wait for them.
const MAX_PER_ROUND: i64 = 16;
/// Lease of a code, milliseconds: longer than sending one may take. After it another replica may send
/// the code.
const LEASE_MS: i64 = 30 * SECOND_MS;
/// Maximum pause before a retry, milliseconds, with full jitter. Retries end when the code expires.
const PAUSE_MS: u64 = 10_000;

/// Sends codes until the server stops.
pub async fn send_forever(state: SellingState) {
    while !state.stop.is_cancelled() {
        match send_due(&state).await {
            Ok(sent) if sent == MAX_PER_ROUND as usize => continue,
            Ok(_) => {}
            Err(cause) => tracing::warn!(%cause, "read due codes failed"),
        }
        if !wait_for_wake(&state.stop, &state.email_codes.wake, LOOK_EVERY).await {
            return;
        }
    }
}

async fn send_due(state: &SellingState) -> sqlx::Result<usize> {
    let now = state.clock.now();
    let due = sql::take(&state.pg, now, now.plus_ms(LEASE_MS), MAX_PER_ROUND).await?;
    let sent = due.iter().map(|code| send(state, code, now));
    futures::future::join_all(sent).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(due.len())
}

async fn send(state: &SellingState, due: &ToSend, now: Timestamp) -> sqlx::Result<()> {
    match state.email_codes.messenger.send(&compose(state, due, now)).await {
        Ok(()) => sql::sent(&state.pg, due.id).await,
        Err(not_sent) => {
            let cause = &not_sent.cause;
            tracing::warn!(code = %due.id, carrier = not_sent.carrier, %cause, "send a code failed; it is retried");
            sql::postpone(&state.pg, due.id, now.plus_ms(ids::jitter(PAUSE_MS).cast_signed())).await
        }
    }
}

fn compose(state: &SellingState, due: &ToSend, now: Timestamp) -> Message {
    let language = Language::of_tag(&due.language).unwrap_or_default();
    let code = service::code_of(state, due.id);
    let minutes = CODE_LIFE_MS / MINUTE_MS;
    Message {
        id: due.id,
        to: due.mail_to.clone(),
        subject: say!(in language, "code_mail.subject"),
        // A separate line: easy to find, to copy, and to read aloud.
        text: format!(
            "{}\n\n{code}\n\n{}\n",
            say!(in language, "code_mail.lead"),
            say!(in language, "code_mail.rest", minutes = minutes),
        ),
        at: now,
    }
}

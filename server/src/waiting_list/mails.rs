//! Mails that tell people what is held for them. At least once each; sent twice, it is shown once.
//!
//! They have a loop of their own beside the rounds in which offers are made: a mail server that hangs keeps nobody
//! waiting but those whose mails are on their way to it.

use std::time::Duration;

use domain::time::SECOND_MS;
use futures::{StreamExt, stream};
use tokio::time::timeout;

use super::sql::{self, Entry};
use crate::background::woken;
use crate::clock::from_utc;
use crate::tickets::{MailError, OfferMail};
use crate::{AppState, ids};

/// Looked at this often even if nobody says so: what was postponed, and what another replica left.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Mails on their way at the same time. The next one is taken when one of them is done: none waits, taken, behind
/// another until its lease is over.
const SIDE_BY_SIDE: usize = 8;
/// Writing a mail and handing it over may take so long: a little more than the mailer itself gives a mail server.
const SEND_WITHIN: Duration = Duration::from_secs(25);
/// A mail taken by a replica that died is free for another after this long, milliseconds: longer than sending it and
/// noting that may take.
const LEASE_MS: i64 = 45 * SECOND_MS;
const _: () = assert!(LEASE_MS as u128 > SEND_WITHIN.as_millis(), "a mail on its way is nobody else's");
/// Tries before the mail is given up: the offer is over by then.
const MAX_TRIES: i32 = 10;
/// Longest pause before another try, milliseconds, with full jitter.
const PAUSE_MS: u64 = 30_000;

/// Tells the mails of this replica that an offer was made.
pub(super) fn wake(state: &AppState) {
    state.offer_mails_wake.notify_one();
}

/// Sends them until the server stops; what it has taken it finishes.
pub async fn send_forever(state: AppState) {
    let due = stream::unfold(state.clone(), |state| async move {
        let entry = next_due(&state).await;
        entry.map(|entry| (entry, state))
    });
    due.for_each_concurrent(SIDE_BY_SIDE, |entry| send(&state, entry)).await;
}

/// Waits for a mail that is due, and takes it. `None`: the server stops.
async fn next_due(state: &AppState) -> Option<Entry> {
    while !state.stop.is_cancelled() {
        let now = state.locks.now();
        match sql::take_mail(&state.pg, now, now.plus_ms(LEASE_MS), MAX_TRIES).await {
            Ok(Some(entry)) => return Some(entry),
            Ok(None) => {}
            Err(cause) => tracing::warn!(%cause, "mails about offers could not be looked at"),
        }
        if !woken(&state.stop, &state.offer_mails_wake, LOOK_EVERY).await {
            return None;
        }
    }
    None
}

async fn send(state: &AppState, entry: Entry) {
    let sent = match timeout(SEND_WITHIN, hand_over(state, &entry)).await {
        Ok(Some(sent)) => sent,
        // The lease ends, and it is tried again.
        Ok(None) => return,
        Err(_) => Err(MailError::TooLate),
    };
    let noted = match sent {
        Ok(()) => sql::note_mailed(&state.pg, &entry).await,
        Err(cause) => {
            tracing::warn!(entry = %entry.id, %cause, "the mail about an offer will be tried again");
            let pause = ids::jitter(PAUSE_MS).cast_signed();
            sql::postpone_mail(&state.pg, &entry, state.locks.now().plus_ms(pause)).await
        }
    };
    if let Err(cause) = noted {
        tracing::warn!(entry = %entry.id, %cause, "what became of the mail about an offer could not be noted");
    }
}

/// `None`: there is nothing to be handed over now.
async fn hand_over(state: &AppState, entry: &Entry) -> Option<Result<(), MailError>> {
    let mail = mail(state, entry).await?;
    Some(state.mailer.send_offer(&mail).await)
}

/// `None`: the show cannot be read now.
async fn mail(state: &AppState, entry: &Entry) -> Option<OfferMail> {
    let show = state.catalogue.known_show(entry.show_id).await.ok()?;
    let seats = entry.seats().into_iter().filter(|seat| show.has(*seat)).map(|seat| show.label_of(seat));
    let places = entry.places().map(|places| format!("{} × {}", places.count, show.area_label(places.area)));
    Some(OfferMail {
        hold: entry.offer_hold?,
        to_email: entry.email.clone(),
        film: show.film.clone(),
        place: format!("{}, {}", show.theatre, show.screen),
        starts: show.starts_local.clone(),
        what: seats.chain(places).collect(),
        until: show.local_time(from_utc(entry.offer_until?)),
        url: format!("{}/shows/{}", state.config.public_url, show.id),
        at: state.locks.now(),
    })
}

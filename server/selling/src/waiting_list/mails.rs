//! Mails about offers. Sent at least once each; a duplicate has the same id and is displayed once.
//!
//! They run beside the rounds in which offers are made: a hanging mail server delays no offer.

use tokio::time::timeout;

use super::hand_over;
use super::sql::{self, ListEntry};
use crate::SellingState;
use platform::clock::from_utc;
use platform::ids;
use tickets::{MAIL_LEASE_MS, MailError, MailLane, OfferMail, SEND_WITHIN};

/// First pause after a failure, milliseconds; doubles, with full jitter. Retries end when the offer does.
const FIRST_PAUSE_MS: u64 = 500;
/// Maximum pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 30_000;

pub(super) fn wake(state: &SellingState) {
    state.offer_mails_wake.notify_one();
}

/// Sends mails until the server stops; leased mails are finished first.
pub async fn send_forever(state: SellingState) {
    let state = &state;
    let lane = MailLane { what: "mails about offers", stop: &state.stop, wake: &state.offer_mails_wake };
    lane.send_forever(move || take(state), move |entry| send(state, entry)).await;
}

async fn take(state: &SellingState) -> sqlx::Result<Option<ListEntry>> {
    let now = state.clock.now();
    sql::take_mail(&state.pg, now, now.plus_ms(MAIL_LEASE_MS)).await
}

async fn send(state: &SellingState, entry: ListEntry) {
    let sent = match timeout(SEND_WITHIN, hand_over(state, &entry)).await {
        Ok(Some(sent)) => sent,
        // The lease expires, and the mail is retried.
        Ok(None) => return,
        Err(_) => Err(MailError::TooLate),
    };
    let noted = match sent {
        Ok(()) => sql::note_mailed(&state.pg, &entry).await,
        Err(cause) => {
            let pause = ids::backoff_ms(FIRST_PAUSE_MS, entry.mail_tries, LONGEST_PAUSE_MS);
            let retry_at = state.clock.now().plus_ms(pause);
            if entry.offer_until.is_some_and(|until| from_utc(until) <= retry_at) {
                tracing::error!(entry = %entry.id, %cause, "sending an offer mail failed until the offer ended");
            } else {
                tracing::warn!(entry = %entry.id, %cause, "sending an offer mail failed; it is retried");
            }
            sql::postpone_mail(&state.pg, &entry, retry_at).await
        }
    };
    if let Err(cause) = noted {
        tracing::warn!(entry = %entry.id, %cause, "recording the result of an offer mail failed");
    }
}

/// Sends the mail. `None`: there is nothing to send now.
async fn hand_over(state: &SellingState, entry: &ListEntry) -> Option<Result<(), MailError>> {
    let mail = mail(state, entry).await?;
    Some(state.mailer.send_offer(&mail).await)
}

/// Builds the mail. `None`: the show cannot be read now.
async fn mail(state: &SellingState, entry: &ListEntry) -> Option<OfferMail> {
    let show = state.catalogue.find_show(entry.show_id).await.ok()?;
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
        url: hand_over::url(&state.site.public_url, entry.id, from_utc(entry.offer_until?)),
        at: state.clock.now(),
    })
}

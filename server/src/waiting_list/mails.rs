//! Mails that tell people what is held for them. At least once each; sent twice, it is shown once.

use domain::time::SECOND_MS;

use super::sql::{self, Entry};
use crate::clock::from_utc;
use crate::tickets::OfferMail;
use crate::{AppState, ids};

/// Mails sent in one round.
const MAX_PER_ROUND: i64 = 32;
/// A mail taken by a replica that died is free for another after this long, milliseconds: longer than
/// handing one over may take.
const LEASE_MS: i64 = 30 * SECOND_MS;
/// Tries before the mail is given up: the offer is over by then.
const MAX_TRIES: i32 = 10;
/// Longest pause before another try, milliseconds, with full jitter.
const PAUSE_MS: u64 = 30_000;

/// Sends what is due.
pub(super) async fn send_due(state: &AppState) -> Result<(), sqlx::Error> {
    let now = state.locks.now();
    for entry in sql::take_mails(&state.pg, now, now.plus_ms(LEASE_MS), MAX_TRIES, MAX_PER_ROUND).await? {
        let sent = match mail(state, &entry).await {
            Some(mail) => state.mailer.send_offer(&mail).await,
            None => continue,
        };
        match sent {
            Ok(()) => sql::note_mailed(&state.pg, &entry).await?,
            Err(cause) => {
                tracing::warn!(entry = %entry.id, %cause, "the mail about an offer will be tried again");
                let pause = ids::jitter(PAUSE_MS).cast_signed();
                sql::postpone_mail(&state.pg, &entry, now.plus_ms(pause)).await?;
            }
        }
    }
    Ok(())
}

/// `None`: the show cannot be read now; the lease ends and it is tried again.
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

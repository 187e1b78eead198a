//! Mails buyers about a move: their new places, or the choice they have. Delivery is at least once; the message id
//! hides duplicates.
//!
//! The mails have a separate worker beside the rounds of moves: a hanging mail server keeps no show closed.

use domain::booking::BookingState;
use domain::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::sql::{self, DueMail};
use crate::BackofficeState;
use http::ApiResult;
use platform::clock::from_utc;
use platform::ids;
use selling::bookings;
use tickets::{MAIL_LEASE_MS, MailError, MailLane, NoticeMail, SEND_WITHIN};

/// Maximum number of attempts, about a week of the longest pauses. Retries also end with [`deadline`].
const MAX_TRIES: i32 = 2_000;
/// Maximum number of attempts when the mailbox is refused permanently, about two hours: a server rarely accepts it
/// later, and may block a sender who does not stop.
const MAX_TRIES_TO_REFUSED: i32 = 30;
/// First pause after a failure, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;
/// Maximum pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 600_000;
/// First number of these notices; refund notices are numbered from 0.
const FIRST_NUMBER: u32 = 10_000;

/// Sends due mails until the server stops; finishes the mails it has taken.
pub async fn send_forever(state: BackofficeState) {
    let state = &state;
    // The worker polls: no code wakes it, because mails about a move are not urgent.
    let never_notified = Notify::new();
    let lane = MailLane { what: "mails about moves", stop: &state.stop, wake: &never_notified };
    lane.send_forever(move || take(state), move |due| send(state, due)).await;
}

async fn take(state: &BackofficeState) -> sqlx::Result<Option<DueMail>> {
    let now = state.clock.now();
    sql::take_mail(&state.pg, now, now.plus_ms(MAIL_LEASE_MS)).await
}

/// The reason why a mail was not sent, and the attempts after which it is given up.
struct SendFailure {
    cause: String,
    max_tries: i32,
}

impl From<MailError> for SendFailure {
    fn from(error: MailError) -> Self {
        let is_refused = matches!(error, MailError::MailboxRefused(_));
        let max_tries = if is_refused { MAX_TRIES_TO_REFUSED } else { MAX_TRIES };
        Self { cause: error.to_string(), max_tries }
    }
}

async fn send(state: &BackofficeState, due: DueMail) {
    let (booking, tries) = (due.booking_id, due.mail_tries);
    let sent = if deadline(&due) <= state.clock.now() {
        Err(SendFailure { cause: "the offer has ended, or the show has started".to_owned(), max_tries: 0 })
    } else {
        timeout(SEND_WITHIN, build_and_send(state, &due)).await.unwrap_or_else(|_| Err(MailError::TooLate.into()))
    };
    let noted = match sent {
        Ok(()) => sql::mark_mailed(&state.pg, &due, state.clock.now()).await,
        Err(SendFailure { cause, max_tries }) if tries >= max_tries => {
            tracing::error!(%booking, tries, %cause, "gave up the mail about the move of {booking}");
            sql::mark_mailed(&state.pg, &due, state.clock.now()).await
        }
        Err(SendFailure { cause, .. }) => {
            tracing::warn!(%booking, %cause, "sending the mail about the move of {booking} failed; it is retried");
            let pause = ids::backoff_ms(FIRST_PAUSE_MS, tries, LONGEST_PAUSE_MS);
            sql::postpone_mail(&state.pg, &due, state.clock.now().plus_ms(pause)).await
        }
    };
    if let Err(cause) = noted {
        tracing::warn!(%booking, %cause, "recording the delivery of the mail about the move of {booking} failed");
    }
}

/// Returns the time after which the mail is of no use: the end of the offer, or the start of the show.
fn deadline(due: &DueMail) -> Timestamp {
    from_utc(due.answer_until.filter(|_| due.state == "offered").unwrap_or(due.starts_at))
}

/// Builds and sends a mail.
async fn build_and_send(state: &BackofficeState, due: &DueMail) -> Result<(), SendFailure> {
    match mail(state, due).await {
        Ok(Some(mail)) => state.mailer.send_notice(&mail).await.map_err(SendFailure::from),
        Ok(None) => Ok(()),
        Err(problem) => Err(SendFailure { cause: format!("{problem:?}"), max_tries: MAX_TRIES }),
    }
}

/// Builds the mail; `None` when the booking has no address or is no longer confirmed.
async fn mail(state: &BackofficeState, due: &DueMail) -> ApiResult<Option<NoticeMail>> {
    let found = bookings::find(&mut *state.pg.acquire().await?, due.booking_id).await?;
    let can_be_mailed =
        |row: &bookings::BookingRow| row.machine.state == BookingState::Confirmed && !row.buyer.1.is_empty();
    let Some(row) = found.filter(can_be_mailed) else { return Ok(None) };
    let show = state.catalogue.find_show(row.show_id).await?;
    let until = due.answer_until.map(|until| show.local_time(from_utc(until)));
    let link = if due.state == "offered" { bookings::answer_url } else { bookings::page_url };
    Ok(Some(NoticeMail {
        booking: row.id,
        number: FIRST_NUMBER + u32::try_from(due.ordinal).unwrap_or(0),
        reference: row.reference.clone(),
        to_name: row.buyer.0.clone(),
        to_email: row.buyer.1.clone(),
        headline: format!("Your show has moved to {}", due.to_name),
        paragraphs: paragraphs(due, until.as_deref()),
        film: show.film.clone(),
        show: format!("{}, {}, {}", show.starts_local, show.theatre, show.screen),
        booking_url: link(&state.site.public_url, row.id, state.clock.now()),
        at: state.clock.now(),
    }))
}

/// Returns the paragraphs of the mail; `until` is the deadline of an offer.
fn paragraphs(due: &DueMail, until: Option<&str>) -> Vec<String> {
    let (before, after) = (due.before.join(", "), due.after.join(", "));
    let moved = format!("The show has moved from {} to {}. {}", due.from_name, due.to_name, due.reason);
    let rest = match until.filter(|_| due.state == "offered") {
        None => vec![format!("Your places are {after}. The tickets you have remain valid.")],
        Some(until) => vec![
            format!(
                "There are no places like yours ({before}) there. We are holding these for you, as good or better and at no extra cost: {after}."
            ),
            format!("On the page of your booking, choose by {until}: take them, or get a full refund."),
            "If we do not hear from you, you get a full refund.".to_owned(),
        ],
    };
    std::iter::once(moved).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    fn due(state: &str) -> DueMail {
        DueMail {
            move_id: Uuid::nil(),
            booking_id: Uuid::nil(),
            state: state.to_owned(),
            before: vec!["C7".to_owned(), "C8".to_owned()],
            after: vec!["D1".to_owned(), "D2".to_owned()],
            answer_until: None,
            reason: "The projector is broken.".to_owned(),
            from_name: "Screen 1".to_owned(),
            to_name: "Screen 2".to_owned(),
            ordinal: 1,
            starts_at: DateTime::UNIX_EPOCH,
            mail_tries: 1,
        }
    }

    #[test]
    fn kept_places_are_named_and_offers_state_their_deadline() {
        let same = paragraphs(&due("same"), None).join(" ");
        assert!(same.contains("D1, D2") && same.contains("remain valid") && same.contains("projector"), "{same}");
        let offered = paragraphs(&due("offered"), Some("Sat 21 Nov, 20:15")).join(" ");
        for part in ["C7, C8", "D1, D2", "Sat 21 Nov, 20:15", "full refund", "Screen 2"] {
            assert!(offered.contains(part), "{part}: {offered}");
        }
        // The offer was answered before the mail was sent.
        assert!(!paragraphs(&due("taken"), Some("Sat 21 Nov, 20:15")).join(" ").contains("refund"));
    }

    #[test]
    fn a_refused_mailbox_gets_fewer_attempts_than_a_server_that_fails() {
        let tries = |error: MailError| SendFailure::from(error).max_tries;
        assert_eq!(tries(MailError::MailboxRefused("550 no such mailbox".into())), MAX_TRIES_TO_REFUSED);
        assert_eq!(tries(MailError::NotDelivered("451 try again later".into())), MAX_TRIES);
        assert_eq!(tries(MailError::TooLate), MAX_TRIES);
    }

    #[test]
    fn mails_are_retried_until_the_offer_ends_or_the_show_starts() {
        let answer_until = DateTime::from_timestamp_millis(5);
        let until = |state| deadline(&DueMail { answer_until, ..due(state) });
        assert_eq!([until("offered"), until("same"), until("taken")], [Timestamp(5), Timestamp(0), Timestamp(0)]);
    }
}

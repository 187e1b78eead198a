//! Mails that tell buyers where they sit now, or what they may choose. At least once each; sent twice, one is shown
//! once.

use domain::booking::BookingState;
use domain::time::SECOND_MS;

use super::sql::{self, DueMail};
use crate::bookings::sql as bookings;
use crate::clock::from_utc;
use crate::tickets::NoticeMail;
use crate::web::Problem;
use crate::{AppState, ids};

/// Mails sent in one round.
const MAX_PER_ROUND: i64 = 64;
/// A mail taken by a replica that died is free for another after this long, milliseconds: longer than handing one over
/// may take.
const LEASE_MS: i64 = 30 * SECOND_MS;
/// Tries before it is given up; the page of the booking says the same.
const MAX_TRIES: i32 = 20;
/// Longest pause before another try, milliseconds, with full jitter.
const PAUSE_MS: u64 = 60_000;
/// Notices about refunds are numbered from 0; these from here, by the move.
const FIRST_NUMBER: u32 = 10_000;

/// Sends what is due.
pub(super) async fn send_due(state: &AppState) -> Result<(), Problem> {
    let now = state.locks.now();
    for due in sql::take_mails(&state.pg, now, now.plus_ms(LEASE_MS), MAX_TRIES, MAX_PER_ROUND).await? {
        let sent = match mail(state, &due).await? {
            Some(mail) => state.mailer.send_notice(&mail).await,
            None => Ok(()),
        };
        match sent {
            Ok(()) => sql::note_mailed(&state.pg, &due, now).await?,
            Err(cause) => {
                let booking = due.booking_id;
                tracing::warn!(%booking, %cause, "the mail about the move of {booking} will be tried again");
                let pause = ids::jitter(PAUSE_MS).cast_signed();
                sql::postpone_mail(&state.pg, &due, now.plus_ms(pause)).await?;
            }
        }
    }
    Ok(())
}

/// `None`: there is nobody to tell, or they were told something later.
async fn mail(state: &AppState, due: &DueMail) -> Result<Option<NoticeMail>, Problem> {
    let found = bookings::find(&mut *state.pg.acquire().await?, due.booking_id).await?;
    let stands = |row: &bookings::BookingRow| row.machine.state == BookingState::Confirmed && !row.buyer.1.is_empty();
    let Some(row) = found.filter(stands) else { return Ok(None) };
    let show = state.catalogue.known_show(row.show_id).await?;
    let until = due.answer_until.map(|until| show.local_time(from_utc(until)));
    Ok(Some(NoticeMail {
        booking: row.id,
        number: FIRST_NUMBER + u32::try_from(due.ordinal).unwrap_or(0),
        reference: row.reference.clone(),
        to_name: row.buyer.0.clone(),
        to_email: row.buyer.1.clone(),
        headline: format!("Your show moves to {}", due.to_name),
        paragraphs: words(due, until.as_deref()),
        film: show.film.clone(),
        show: format!("{}, {}, {}", show.starts_local, show.theatre, show.screen),
        booking_url: format!("{}/bookings/{}", state.config.public_url, row.id),
        at: state.locks.now(),
    }))
}

/// What it means, a paragraph each; `until` when they may choose.
fn words(due: &DueMail, until: Option<&str>) -> Vec<String> {
    let (before, after) = (due.before.join(", "), due.after.join(", "));
    let moved = format!("The show moves from {} to {}. {}", due.from_name, due.to_name, due.reason);
    let rest = match until.filter(|_| due.state == "offered") {
        None => vec![format!("Your places are {after}. The tickets you have stay good.")],
        Some(until) => vec![
            format!(
                "There are no places like yours ({before}) there. We keep these for you, no worse and at no extra price: {after}."
            ),
            format!(
                "On the page of your booking, say until {until} whether you take them, or have all of your money back."
            ),
            "If we hear nothing from you, the money comes back by itself.".to_owned(),
        ],
    };
    std::iter::once(moved).chain(rest).collect()
}

#[cfg(test)]
mod tests {
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
        }
    }

    #[test]
    fn whoever_keeps_a_place_is_told_which_and_whoever_may_choose_until_when() {
        let same = words(&due("same"), None).join(" ");
        assert!(same.contains("D1, D2") && same.contains("stay good") && same.contains("projector"), "{same}");
        let offered = words(&due("offered"), Some("Sat 21 Nov, 20:15")).join(" ");
        for told in ["C7, C8", "D1, D2", "Sat 21 Nov, 20:15", "money back", "Screen 2"] {
            assert!(offered.contains(told), "{told}: {offered}");
        }
        // Answered before the mail went out.
        assert!(!words(&due("taken"), Some("Sat 21 Nov, 20:15")).join(" ").contains("money"));
    }
}

//! The mails of a sale: one to the buyer, and one with the tickets to the friend they are for.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::booking::BookingState;
use domain::seats::{MAX_SEATS_PER_PERSON, put_as_read};
use domain::time::{SECOND_MS, Timestamp};

use crate::AppState;
use crate::bookings::effects::EffectError;
use crate::bookings::places;
use crate::bookings::sql::BookingRow;
use crate::catalogue::Show;
use crate::tickets::calendar::Entry;
use crate::tickets::pdf::Sheet;
use crate::tickets::{self, Addressee, Papers, Ticket, TicketMail};

/// Sends them, for these seats: name and category each. Twice does no harm: each has an id that follows from the booking.
pub(in crate::bookings) async fn send(
    state: &AppState,
    show: &Show,
    row: &BookingRow,
    seats: Vec<(String, String)>,
) -> Result<(), EffectError> {
    if !is_mailed(row) {
        return Ok(());
    }
    let tickets = tickets::of_booking(&state.pg, row.id).await?;
    state.mailer.send_ticket(&to_buyer(state, show, row, seats, &tickets).await?).await?;
    // Read as late as that: it may have been cancelled meanwhile.
    if let Some(mail) = to_friend(state, show, row).await? {
        state.mailer.send_ticket(&mail).await?;
    }
    Ok(())
}

/// The mails of a sale, in the order they go out, for a caller that sends those of many sales together.
pub(in crate::bookings) async fn of_sale(
    state: &AppState,
    show: &Show,
    row: &BookingRow,
    seats: Vec<(String, String)>,
    tickets: &[Ticket],
) -> Result<Vec<TicketMail>, EffectError> {
    if !is_mailed(row) {
        return Ok(Vec::new());
    }
    let mut mails = vec![to_buyer(state, show, row, seats, tickets).await?];
    mails.extend(to_friend(state, show, row).await?);
    Ok(mails)
}

/// Not what was cancelled before the mail went out: a ticket for it would mislead. Nor what was sold at the counter to
/// somebody who wants it on paper.
fn is_mailed(row: &BookingRow) -> bool {
    row.machine.state == BookingState::Confirmed && !row.buyer.1.is_empty()
}

/// Whether the holder's address is another than the buyer's.
fn is_for_a_friend(row: &BookingRow) -> bool {
    !row.holder.1.eq_ignore_ascii_case(&row.buyer.1)
}

async fn to_buyer(
    state: &AppState,
    show: &Show,
    row: &BookingRow,
    mut seats: Vec<(String, String)>,
    tickets: &[Ticket],
) -> Result<TicketMail, EffectError> {
    put_as_read(&mut seats, |(label, _)| label.as_str());
    let places = if row.places.is_empty() {
        Vec::new()
    } else {
        // Boxed: connecting takes kilobytes, which the many mails that go out together would carry along.
        let mut connection = Box::pin(state.pg.acquire()).await?;
        places::of_booking(&mut connection, row, row.machine.total.currency).await?
    };
    let places = places.into_iter().map(|line| match line.quantity {
        1 => (line.label, line.category),
        count => (format!("{count} × {}", line.label), line.category),
    });
    // Opens anywhere: the booking's own page is for the browser that bought it, and mails are read on phones.
    let ticket_url = format!("{}/tickets/{}", state.config.public_url, tickets::links::key_of(row.id));
    let papers = papers(state, show, row, tickets, &ticket_url);
    let addressee = Addressee::Buyer { total: row.machine.total, ticket_url };
    Ok(mail(state, show, row, addressee, (seats.into_iter().chain(places).collect(), papers)))
}

/// The booking's page is the buyer's own, so each ticket has an address that opens by its code.
async fn to_friend(state: &AppState, show: &Show, row: &BookingRow) -> Result<Option<TicketMail>, EffectError> {
    if !is_for_a_friend(row) {
        return Ok(None);
    }
    let tickets = tickets::of_booking(&state.pg, row.id).await?;
    // Cancelled a moment ago: nothing is left that would open a door.
    if tickets.is_empty() {
        return Ok(None);
    }
    let links = tickets.iter().map(|ticket| format!("{}/tickets/{}", state.config.public_url, ticket.code));
    let links: Vec<String> = links.collect();
    let papers = papers(state, show, row, &tickets, links.first().map_or("", String::as_str));
    let addressee = Addressee::Holder { from: row.buyer.0.clone(), links };
    let seats = tickets.into_iter().map(|ticket| (ticket.label, ticket.category));
    Ok(Some(mail(state, show, row, addressee, (seats.collect(), papers))))
}

/// Mails with attachments in one second, of this replica. Beyond is a rush: sales need the processors more, and the links
/// in the mail open the same.
const PAPERS_PER_S: u64 = 40;
/// Bits of the count in [`PAPERS`].
const COUNT_BITS: u32 = 16;

/// The second of the last mail with attachments; in its lowest bits, how many there were in it.
static PAPERS: AtomicU64 = AtomicU64::new(0);

/// Counts one more mail with attachments; `false` in a rush.
fn take_papers(now: Timestamp) -> bool {
    let second = now.0.unsigned_abs() / SECOND_MS.unsigned_abs();
    PAPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |seen| one_more(seen, second)).is_ok()
}

fn one_more(seen: u64, second: u64) -> Option<u64> {
    if seen >> COUNT_BITS != second {
        return Some(second << COUNT_BITS | 1);
    }
    (seen & ((1 << COUNT_BITS) - 1) < PAPERS_PER_S).then_some(seen + 1)
}

/// The attachments of a mail; none where the tickets are gone, or are more than one file is for, and in a rush.
fn papers(state: &AppState, show: &Show, row: &BookingRow, tickets: &[Ticket], url: &str) -> Option<Papers> {
    if tickets.is_empty() || tickets.len() > MAX_SEATS_PER_PERSON || !take_papers(state.locks.now()) {
        return None;
    }
    let labels: Vec<&str> = tickets.iter().map(|ticket| ticket.label.as_str()).collect();
    let entry = Entry {
        booking: row.id,
        title: show.film.clone(),
        place: place(show),
        notes: vec![labels.join(", "), row.reference.clone()],
        url: url.to_owned(),
        starts_at: show.starts_at,
        running_minutes: show.running_minutes,
        written_at: state.locks.now(),
    };
    let sheet = Sheet {
        reference: row.reference.clone(),
        holder: row.holder.0.clone(),
        film: show.film.clone(),
        hue: show.hue,
        starts: show.starts_local.clone(),
        theatre: show.theatre.clone(),
        address: show.postal_address(),
        screen: show.screen.clone(),
        format: format!("{}, {}", show.format, show.language),
        tickets: tickets.to_vec(),
    };
    Some(Papers { sheet, entry })
}

/// Theatre, screen and address.
fn place(show: &Show) -> String {
    format!("{}, {}, {}", show.theatre, show.screen, show.postal_address())
}

fn mail(
    state: &AppState,
    show: &Show,
    row: &BookingRow,
    addressee: Addressee,
    (seats, papers): (Vec<(String, String)>, Option<Papers>),
) -> TicketMail {
    let to = if addressee.is_buyer() { row.buyer.clone() } else { row.holder.clone() };
    TicketMail {
        addressee,
        booking: row.id,
        reference: row.reference.clone(),
        to_name: to.0,
        to_email: to.1,
        holder_name: row.holder.0.clone(),
        film: show.film.clone(),
        place: place(show),
        starts: show.starts_local.clone(),
        seats,
        papers,
        at: state.locks.now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_mails_of_a_second_carry_attachments_and_the_next_second_counts_anew() {
        let mut seen = 0;
        for number in 1..=PAPERS_PER_S {
            seen = one_more(seen, 7).unwrap_or_else(|| panic!("{number} are allowed"));
        }
        assert_eq!(one_more(seen, 7), None);
        assert_eq!(one_more(seen, 8), Some(8 << COUNT_BITS | 1));
    }
}

//! The mails of a sale: one to the buyer, and one with the tickets to the friend who holds them.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::api::{Receipt, SeatLine};
use domain::booking::BookingState;
use domain::seats::{MAX_SEATS_PER_PERSON, sort_for_display};
use domain::time::{SECOND_MS, Timestamp};
use uuid::Uuid;

use crate::bookings::effects::EffectError;
use crate::bookings::places;
use crate::bookings::sql::BookingRow;
use crate::{SellingState, outbox};
use catalogue::Show;
use tickets::calendar::CalendarEntry;
use tickets::pdf::Sheet;
use tickets::{Addressee, Attachments, MailError, Ticket, TicketMail};

/// Sends the mails for these seats. Repeats are harmless: each mail has an id derived from the booking.
///
/// The buyer's mail is first, so no friend's mailbox delays it; the outbox records that it was handed over, so retries
/// of the friend's mail do not repeat it.
pub(crate) async fn send(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    seats: Vec<SeatLine>,
) -> Result<(), EffectError> {
    if !is_mailed(row) {
        return Ok(());
    }
    let is_buyer_mailed = is_for_a_friend(row) && outbox::is_buyer_mailed(&state.pg, row.id).await?;
    if !is_buyer_mailed {
        let tickets = tickets::of_booking(&state.pg, row.id).await?;
        state.mailer.send_ticket(&to_buyer(state, show, row, seats, &tickets).await?).await?;
    }
    let sent = send_to_friend(state, show, row).await;
    if sent.is_err() && !is_buyer_mailed {
        outbox::mark_buyer_mailed(&state.pg, row.id).await?;
    }
    sent
}

/// Sends the friend's mail, if there is one. A refused mailbox ends it.
async fn send_to_friend(state: &SellingState, show: &Show, row: &BookingRow) -> Result<(), EffectError> {
    // Read as late as possible: the booking may have been cancelled meanwhile.
    let Some(mail) = to_friend(state, show, row).await? else { return Ok(()) };
    match state.mailer.send_ticket(&mail).await {
        Err(cause) if cause.is_undeliverable() => {
            log_refused_friend(row.id, &cause);
            Ok(())
        }
        sent => sent.map_err(EffectError::from),
    }
}

/// Logs that the friend gets no mail. The buyer's mail has all tickets, and an address that opens them.
pub(crate) fn log_refused_friend(booking: Uuid, cause: &MailError) {
    tracing::warn!(%booking, %cause, "the friend's mail of {booking} cannot be delivered; the buyer has the tickets");
}

/// Returns the mails of a sale, in sending order, for a caller that sends the mails of many sales together.
pub(crate) async fn of_sale(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    seats: Vec<SeatLine>,
    tickets: &[Ticket],
) -> Result<Vec<TicketMail>, EffectError> {
    if !is_mailed(row) {
        return Ok(Vec::new());
    }
    let mut mails = vec![to_buyer(state, show, row, seats, tickets).await?];
    mails.extend(to_friend(state, show, row).await?);
    Ok(mails)
}

/// Checks that the tickets are mailed. A booking cancelled before its mail gets none: a ticket for it would mislead.
/// Nor does a counter sale without an address, whose tickets are on paper.
fn is_mailed(row: &BookingRow) -> bool {
    row.machine.state == BookingState::Confirmed && !row.buyer.1.is_empty()
}

/// Checks that the holder's address differs from the buyer's.
fn is_for_a_friend(row: &BookingRow) -> bool {
    !row.holder.1.eq_ignore_ascii_case(&row.buyer.1)
}

async fn to_buyer(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    mut seats: Vec<SeatLine>,
    tickets: &[Ticket],
) -> Result<TicketMail, EffectError> {
    sort_for_display(&mut seats, |line| line.label.as_str());
    let places = if row.places.is_empty() {
        Vec::new()
    } else {
        // Boxed: connecting takes kilobytes, which the many mails that go out together would carry along.
        let mut connection = Box::pin(state.pg.acquire()).await?;
        places::of_booking(&mut connection, row, row.machine.total.currency).await?
    };
    let receipt = Receipt { breakdown: show.breakdown(&seats, &places), seats, places };
    // A link that opens anywhere: the booking's own page is for the browser that bought it, and mails are read on
    // phones.
    let ticket_url = format!("{}/tickets/{}", state.site.public_url, tickets::links::key_of(row.id));
    let attachments = attachments(state, show, row, tickets, Some(&receipt), &ticket_url);
    Ok(mail(state, show, row, Addressee::Buyer { receipt, ticket_url }, attachments))
}

/// Builds the friend's mail. The booking's page is the buyer's own, so each ticket has a link that opens by its code.
async fn to_friend(state: &SellingState, show: &Show, row: &BookingRow) -> Result<Option<TicketMail>, EffectError> {
    if !is_for_a_friend(row) {
        return Ok(None);
    }
    let tickets = tickets::of_booking(&state.pg, row.id).await?;
    // Cancelled a moment ago: no valid ticket is left.
    if tickets.is_empty() {
        return Ok(None);
    }
    let links = tickets.iter().map(|ticket| format!("{}/tickets/{}", state.site.public_url, ticket.code));
    let links: Vec<String> = links.collect();
    let first = links.first().map_or("", String::as_str);
    let attachments = attachments(state, show, row, &tickets, None, first);
    let seats = tickets.into_iter().map(|ticket| (ticket.label, ticket.category)).collect();
    let addressee = Addressee::Holder { from: row.buyer.0.clone(), seats, links };
    Ok(Some(mail(state, show, row, addressee, attachments)))
}

/// Returns the attachments of a mail; `None` where no tickets are left, where they exceed one file, and under high
/// load. Only the buyer's have a receipt.
fn attachments(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    tickets: &[Ticket],
    receipt: Option<&Receipt>,
    url: &str,
) -> Option<Attachments> {
    if tickets.is_empty() || tickets.len() > MAX_SEATS_PER_PERSON || !try_count(state.clock.now()) {
        return None;
    }
    let labels: Vec<&str> = tickets.iter().map(|ticket| ticket.label.as_str()).collect();
    let entry = CalendarEntry {
        booking: row.id,
        title: show.film.clone(),
        place: place(show),
        notes: vec![labels.join(", "), row.reference.clone()],
        url: url.to_owned(),
        starts_at: show.starts_at,
        running_minutes: show.running_minutes,
        written_at: state.clock.now(),
    };
    let sheet = ticket_sheet(show, row.reference.clone(), row.holder.0.clone(), tickets.to_vec(), receipt.cloned());
    Some(Attachments { sheet, entry })
}

fn place(show: &Show) -> String {
    format!("{}, {}, {}", show.theatre, show.screen, show.postal_address())
}

fn mail(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    addressee: Addressee,
    attachments: Option<Attachments>,
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
        attachments,
        at: state.clock.now(),
    }
}

/// Maximum mails with attachments of this replica in one second. Above it load is high: sales need the processors more,
/// and the links in the mail open the same tickets.
const MAX_PER_S: u64 = 40;
/// Bits of the count in [`COUNTED`].
const COUNT_BITS: u32 = 16;

/// The second of the last mail with attachments; in its lowest bits, the number of them in that second.
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Counts one more mail with attachments; `false` where the rate is used up, and nothing is counted.
fn try_count(now: Timestamp) -> bool {
    let second = now.0.unsigned_abs() / SECOND_MS.unsigned_abs();
    COUNTED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |counted| one_more(counted, second)).is_ok()
}

fn one_more(counted: u64, second: u64) -> Option<u64> {
    if counted >> COUNT_BITS != second {
        return Some(second << COUNT_BITS | 1);
    }
    (counted & ((1 << COUNT_BITS) - 1) < MAX_PER_S).then_some(counted + 1)
}

/// Builds the sheet of these tickets for `holder`, with a receipt if it is for the buyer.
#[must_use]
pub fn ticket_sheet(
    show: &Show,
    reference: String,
    holder: String,
    tickets: Vec<Ticket>,
    receipt: Option<Receipt>,
) -> Sheet {
    Sheet {
        reference,
        holder,
        film: show.film.clone(),
        hue: show.hue,
        starts: show.starts_local.clone(),
        theatre: show.theatre.clone(),
        address: show.postal_address(),
        screen: show.screen.clone(),
        format: format!("{}, {}", show.format, show.language),
        tickets,
        receipt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_with_attachments_are_limited_per_second() {
        let mut counted = 0;
        for number in 1..=MAX_PER_S {
            counted = one_more(counted, 7).unwrap_or_else(|| panic!("{number} are allowed"));
        }
        assert_eq!(one_more(counted, 7), None);
        assert_eq!(one_more(counted, 8), Some(8 << COUNT_BITS | 1));
    }
}

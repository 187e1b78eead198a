//! The mails of a sale: one to the buyer, and one with the tickets to the friend who holds them.

use domain::booking::BookingState;
use domain::seats::{MAX_SEATS_PER_PERSON, sort_for_display};

use super::attachment_rate;
use crate::SellingState;
use crate::bookings::effects::EffectError;
use crate::bookings::places;
use crate::bookings::sql::BookingRow;
use crate::bookings::ticket_sheet::ticket_sheet;
use catalogue::Show;
use tickets::calendar::CalendarEntry;
use tickets::{Addressee, Attachments, Ticket, TicketMail};

/// Sends the mails for these seats, given as label and category. Repeats are harmless: each mail has an id derived
/// from the booking.
pub(crate) async fn send(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    seats: Vec<(String, String)>,
) -> Result<(), EffectError> {
    if !is_mailed(row) {
        return Ok(());
    }
    let tickets = tickets::of_booking(&state.pg, row.id).await?;
    state.mailer.send_ticket(&to_buyer(state, show, row, seats, &tickets).await?).await?;
    // Read as late as possible: the booking may have been cancelled meanwhile.
    if let Some(mail) = to_friend(state, show, row).await? {
        state.mailer.send_ticket(&mail).await?;
    }
    Ok(())
}

/// Returns the mails of a sale, in sending order, for a caller that sends the mails of many sales together.
pub(crate) async fn of_sale(
    state: &SellingState,
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
    mut seats: Vec<(String, String)>,
    tickets: &[Ticket],
) -> Result<TicketMail, EffectError> {
    sort_for_display(&mut seats, |(label, _)| label.as_str());
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
    // A link that opens anywhere: the booking's own page is for the browser that bought it, and mails are read on
    // phones.
    let ticket_url = format!("{}/tickets/{}", state.site.public_url, tickets::links::key_of(row.id));
    let attachments = attachments(state, show, row, tickets, &ticket_url);
    let addressee = Addressee::Buyer { total: row.machine.total, ticket_url };
    Ok(mail(state, show, row, addressee, (seats.into_iter().chain(places).collect(), attachments)))
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
    let attachments = attachments(state, show, row, &tickets, links.first().map_or("", String::as_str));
    let addressee = Addressee::Holder { from: row.buyer.0.clone(), links };
    let seats = tickets.into_iter().map(|ticket| (ticket.label, ticket.category));
    Ok(Some(mail(state, show, row, addressee, (seats.collect(), attachments))))
}

/// Returns the attachments of a mail; `None` where no tickets are left, where they exceed one file, and under high
/// load.
fn attachments(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    tickets: &[Ticket],
    url: &str,
) -> Option<Attachments> {
    if tickets.is_empty() || tickets.len() > MAX_SEATS_PER_PERSON || !attachment_rate::try_count(state.clock.now()) {
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
    let sheet = ticket_sheet(show, row.reference.clone(), row.holder.0.clone(), tickets.to_vec());
    Some(Attachments { sheet, entry })
}

/// Returns theatre, screen and address.
fn place(show: &Show) -> String {
    format!("{}, {}, {}", show.theatre, show.screen, show.postal_address())
}

fn mail(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    addressee: Addressee,
    (seats, attachments): (Vec<(String, String)>, Option<Attachments>),
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
        attachments,
        at: state.clock.now(),
    }
}

//! The mails of a sale: one to the buyer, and one with the tickets to the friend they are for.

use domain::booking::BookingState;
use domain::seats::put_as_read;

use crate::AppState;
use crate::bookings::effects::EffectError;
use crate::bookings::places;
use crate::bookings::sql::BookingRow;
use crate::catalogue::Show;
use crate::tickets::{self, Addressee, TicketMail};

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
    state.mailer.send_ticket(&to_buyer(state, show, row, seats).await?).await?;
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
) -> Result<Vec<TicketMail>, EffectError> {
    if !is_mailed(row) {
        return Ok(Vec::new());
    }
    let mut mails = vec![to_buyer(state, show, row, seats).await?];
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
    let addressee = Addressee::Buyer { total: row.machine.total, ticket_url };
    Ok(mail(state, show, row, addressee, seats.into_iter().chain(places).collect()))
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
    let addressee = Addressee::Holder { from: row.buyer.0.clone(), links: links.collect() };
    let seats = tickets.into_iter().map(|ticket| (ticket.label, ticket.category));
    Ok(Some(mail(state, show, row, addressee, seats.collect())))
}

fn mail(
    state: &AppState,
    show: &Show,
    row: &BookingRow,
    addressee: Addressee,
    seats: Vec<(String, String)>,
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
        place: format!("{}, {}", show.theatre, show.screen),
        starts: show.starts_local.clone(),
        seats,
        at: state.locks.now(),
    }
}

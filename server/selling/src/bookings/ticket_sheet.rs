//! The printed tickets of a booking, with film, time and place of its show.

use catalogue::Show;
use tickets::Ticket;
use tickets::pdf::Sheet;

/// Builds the sheet of these tickets for `holder`.
#[must_use]
pub fn ticket_sheet(show: &Show, reference: String, holder: String, tickets: Vec<Ticket>) -> Sheet {
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
    }
}

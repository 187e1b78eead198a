//! The pages of a booking, for its visitor or its account; and tickets as a page, a PDF and a calendar entry, for them and for
//! holders of a ticket's code or of the key in the buyer's mail.

use std::sync::Arc;

use app::pages::booking::BookingPage;
use app::pages::ticket::{GroupTicket, SeatTicket, ShowFacts, TicketsPage};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::api::{BookingView, Receipt, SUBMITTED_QUERY};
use domain::booking::BookingState;
use language::say;
use uuid::Uuid;

use super::{Page, PageError, PagePath, PageResult, private_page, start_in_words};
use crate::AppState;
use crate::web::budget::NEVER;
use catalogue::Show;
use http::caching::PRIVATE;
use http::page_locale;
use identity::Visitor;
use selling::account_bookings;
use selling::bookings;
use tickets::calendar::CalendarEntry;
use tickets::{Ticket, code, pdf, qr};

pub(super) fn pages() -> [Page; 7] {
    [
        ("/bookings/{id}", get(booking), NEVER),
        ("/bookings/{id}/ticket", get(ticket), NEVER),
        ("/bookings/{id}/ticket.ics", get(calendar), NEVER),
        ("/bookings/{id}/ticket.pdf", get(pdf_of_booking), NEVER),
        ("/tickets/{code}", get(with_code), NEVER),
        ("/tickets/{code}/ticket.ics", get(calendar_with_code), NEVER),
        ("/tickets/{code}/ticket.pdf", get(pdf_with_code), NEVER),
    ]
}

async fn booking(
    State(state): State<AppState>,
    visitor: Visitor,
    PagePath(id): PagePath<Uuid>,
    RawQuery(query): RawQuery,
) -> PageResult {
    let (booking, show) = load(&state, &visitor, id).await?;
    if booking.state == BookingState::PaymentPending
        && let Err(cause) = bookings::make_payment_due(&state, booking.id).await
    {
        tracing::debug!(booking = %booking.id, %cause, "ask the gateway about {} failed; the reconciler retries", booking.id);
    }
    let is_submitted = query.is_some_and(|query| query.split('&').any(|part| part == SUBMITTED_QUERY));
    Ok(private_page(BookingPage { booking, show: facts(&show), is_submitted }))
}

async fn ticket(State(state): State<AppState>, visitor: Visitor, PagePath(id): PagePath<Uuid>) -> PageResult {
    let (booking, show) = load(&state, &visitor, id).await?;
    let address = format!("/bookings/{}", booking.id);
    let tickets = tickets::of_booking(&state.pg, booking.id).await?;
    if booking.state != BookingState::Confirmed || tickets.is_empty() {
        // The booking's page shows the reason, or waits for them.
        return Ok(Redirect::to(&address).into_response());
    }
    let receipt = Some(booking.receipt());
    let holder = booking.holder.name;
    let group = group(&tickets, &holder)?;
    let (file, calendar) = (format!("{address}/ticket.pdf"), format!("{address}/ticket.ics"));
    let seats = tickets.into_iter().map(|ticket| drawn(ticket, &holder)).collect::<Result<_, _>>()?;
    let (reference, booking, show) = (booking.reference, Some(address), facts(&show));
    Ok(private_page(TicketsPage { reference, booking, file, calendar, holder, show, group, seats, receipt }))
}

/// The ticket of a code, or all tickets of a booking's signed key. No session is needed: a code is 128 random bits and a
/// key has a signature of as many.
async fn with_code(State(state): State<AppState>, PagePath(code): PagePath<String>) -> PageResult {
    let OpenedTickets { reference, holder, show, tickets, receipt, .. } = opened(&state, &code).await?;
    let (file, calendar) = (format!("/tickets/{code}/ticket.pdf"), format!("/tickets/{code}/ticket.ics"));
    let (group, show) = (group(&tickets, &holder)?, facts(&show));
    let seats = tickets.into_iter().map(|ticket| drawn(ticket, &holder)).collect::<Result<_, _>>()?;
    Ok(private_page(TicketsPage { reference, booking: None, file, calendar, holder, show, group, seats, receipt }))
}

/// The tickets of a code or key, at least one, with their booking and show.
struct OpenedTickets {
    booking: Uuid,
    reference: String,
    holder: String,
    show: Arc<Show>,
    tickets: Vec<Ticket>,
    /// The receipt, for the buyer's key. A single ticket may be a friend's.
    receipt: Option<Receipt>,
}

/// Finds the ticket of a code, or all tickets of a booking's key, while they are valid.
async fn opened(state: &AppState, code: &str) -> Result<OpenedTickets, PageError> {
    let whole = tickets::links::booking_of(code);
    let booking = match whole {
        Some(booking) => booking,
        None => tickets::booking_of_code(&state.pg, code).await?.ok_or(PageError::NotFound)?,
    };
    let facts = bookings::ticket_facts(state, booking).await?.ok_or(PageError::NotFound)?;
    let show = state.catalogue.show(facts.show).await?.ok_or(PageError::NotFound)?;
    let mut tickets = tickets::of_booking(&state.pg, booking).await?;
    tickets.retain(|ticket| whole.is_some() || ticket.code == code);
    if tickets.is_empty() {
        return Err(PageError::NotFound);
    }
    let receipt = if whole.is_some() { bookings::receipt(state, &show, booking).await? } else { None };
    Ok(OpenedTickets { booking, reference: facts.reference, holder: facts.holder, show, tickets, receipt })
}

/// The show as a calendar entry, for the holder of a ticket's code or a booking's key.
async fn calendar_with_code(State(state): State<AppState>, PagePath(code): PagePath<String>) -> PageResult {
    let OpenedTickets { booking, reference, show, tickets, .. } = opened(&state, &code).await?;
    let seats = tickets.into_iter().map(|ticket| ticket.label).collect::<Vec<_>>().join(", ");
    Ok(entry(&state, &show, (booking, reference), seats, &format!("/tickets/{code}")))
}

/// The show as a calendar entry, for the owner of the booking.
async fn calendar(State(state): State<AppState>, visitor: Visitor, PagePath(id): PagePath<Uuid>) -> PageResult {
    let (booking, show) = load_confirmed(&state, &visitor, id).await?;
    let seats = booking.seats.iter().map(|line| line.label.clone());
    let places = booking.places.iter().map(|line| format!("{} × {}", line.quantity, line.label));
    let seats = seats.chain(places).collect::<Vec<_>>().join(", ");
    let address = format!("/bookings/{}/ticket", booking.id);
    Ok(entry(&state, &show, (booking.id, booking.reference), seats, &address))
}

/// Writes the calendar file with a booking's id, reference and seats, and the address of its tickets.
fn entry(
    state: &AppState,
    show: &Show,
    (booking, reference): (Uuid, String),
    seats: String,
    address: &str,
) -> Response {
    let entry = CalendarEntry {
        booking,
        title: show.film.clone(),
        place: format!("{}, {}, {}", show.theatre, show.screen, show.postal_address()),
        notes: vec![seats, reference],
        url: format!("{}{address}", state.config.site.public_url),
        starts_at: show.starts_at,
        running_minutes: show.running_minutes,
        written_at: state.clock.now(),
    };
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/calendar; charset=utf-8"))];
    let cache = [(header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE))];
    (kind, cache, tickets::calendar::file(&entry)).into_response()
}

/// Loads the caller's booking and its show. 404 for another's booking.
async fn load(state: &AppState, visitor: &Visitor, id: Uuid) -> Result<(BookingView, Arc<Show>), PageError> {
    let owner = account_bookings::owner_for(state, visitor, id).await?;
    let booking = bookings::view(state, &owner, id).await?.ok_or(PageError::NotFound)?;
    let show = state.catalogue.show(booking.show).await?.ok_or(PageError::NotFound)?;
    Ok((booking, show))
}

/// As [`load`]; 404 unless the booking is confirmed.
async fn load_confirmed(state: &AppState, visitor: &Visitor, id: Uuid) -> Result<(BookingView, Arc<Show>), PageError> {
    let (booking, show) = load(state, visitor, id).await?;
    if booking.state == BookingState::Confirmed { Ok((booking, show)) } else { Err(PageError::NotFound) }
}

async fn pdf_of_booking(State(state): State<AppState>, visitor: Visitor, PagePath(id): PagePath<Uuid>) -> PageResult {
    let (booking, show) = load_confirmed(&state, &visitor, id).await?;
    let tickets = tickets::of_booking(&state.pg, booking.id).await?;
    let receipt = Some(booking.receipt());
    pdf_file(&show, booking.reference, booking.holder.name, tickets, receipt).await
}

async fn pdf_with_code(State(state): State<AppState>, PagePath(code): PagePath<String>) -> PageResult {
    let OpenedTickets { reference, holder, show, tickets, receipt, .. } = opened(&state, &code).await?;
    pdf_file(&show, reference, holder, tickets, receipt).await
}

async fn pdf_file(
    show: &Show,
    reference: String,
    holder: String,
    tickets: Vec<Ticket>,
    receipt: Option<Receipt>,
) -> PageResult {
    if tickets.is_empty() {
        return Err(PageError::NotFound);
    }
    // A reference is letters, digits and dashes: safe in a header.
    let name = format!("attachment; filename=\"rowlock-{reference}.pdf\"");
    let sheet = bookings::ticket_sheet(show, reference, holder, tickets, receipt);
    let file = pdf::file(sheet).await.map_err(|cause| {
        tracing::error!(%cause, "write a ticket PDF failed");
        PageError::Fault
    })?;
    let name = HeaderValue::try_from(name).map_err(|_| PageError::Fault)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/pdf")),
        (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE)),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, file).into_response())
}

pub(super) fn facts(show: &Show) -> ShowFacts {
    ShowFacts {
        film: show.film.clone(),
        hue: show.hue,
        theatre: show.theatre.clone(),
        address: show.postal_address(),
        screen: show.screen.clone(),
        starts: start_in_words(show),
        format: format!("{}, {}", show.format, show.language),
    }
}

/// One code for a party of several; nothing for a single guest.
fn group(tickets: &[Ticket], holder: &str) -> Result<Option<GroupTicket>, PageError> {
    if tickets.len() < 2 {
        return Ok(None);
    }
    let codes: Vec<&str> = tickets.iter().map(|ticket| ticket.code.as_str()).collect();
    let labels = tickets.iter().map(|ticket| ticket.label.clone()).collect();
    let label = say!(in page_locale::language(), "ticket.code_for_all", tickets = tickets.len());
    let qr_svg = qr::svg(&code::group_qr_text(&codes, holder), &label).map_err(|cause| {
        tracing::error!(%cause, tickets = tickets.len(), "draw the QR code of a party failed");
        PageError::Fault
    })?;
    Ok(Some(GroupTicket { labels, qr_svg }))
}

pub(super) fn drawn(ticket: Ticket, holder: &str) -> Result<SeatTicket, PageError> {
    let text = code::qr_text(&ticket.code, &ticket.label, holder);
    let qr_svg = qr::svg(&text, &say!(in page_locale::language(), "ticket.code_for", seat = &ticket.label)).map_err(
        |cause| {
            tracing::error!(%cause, seat = ticket.label, "draw the QR code of a ticket failed");
            PageError::Fault
        },
    )?;
    Ok(SeatTicket { label: ticket.label, category: ticket.category, qr_svg, code: ticket.code })
}

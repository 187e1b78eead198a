//! Tickets as a PDF: for the visitor who bought them, and for holders of a ticket's code or of the booking's key.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;
use domain::booking::BookingState;
use uuid::Uuid;

use super::booking::{OpenedTickets, opened, passing_or_fault};
use super::{PRIVATE_CACHE, PageError};
use crate::AppState;
use crate::web::pages::{PageResult, PathResult};
use catalogue::Show;
use identity::Visitor;
use selling::account_bookings;
use selling::bookings;
use tickets::{Ticket, pdf};

/// The files.
pub fn routes() -> Router<AppState> {
    Router::new().route("/bookings/{id}/ticket.pdf", get(of_booking)).route("/tickets/{code}/ticket.pdf", get(of_code))
}

async fn of_booking(State(state): State<AppState>, visitor: Visitor, id: PathResult<Uuid>) -> PageResult {
    let Path(id) = id?;
    let owner = account_bookings::owner_for(&state, &visitor, id).await.map_err(passing_or_fault)?;
    let booking = bookings::view(&state, &owner, id).await.map_err(passing_or_fault)?;
    let booking = booking.filter(|booking| booking.state == BookingState::Confirmed).ok_or(PageError::NotFound)?;
    let show = state.catalogue.show(booking.show).await?.ok_or(PageError::NotFound)?;
    let tickets = tickets::of_booking(&state.pg, booking.id).await?;
    answer(&show, booking.reference, booking.holder.name, tickets).await
}

async fn of_code(State(state): State<AppState>, code: PathResult<String>) -> PageResult {
    let Path(code) = code?;
    let OpenedTickets { reference, holder, show, tickets, .. } = opened(&state, &code).await?;
    answer(&show, reference, holder, tickets).await
}

async fn answer(show: &Show, reference: String, holder: String, tickets: Vec<Ticket>) -> PageResult {
    if tickets.is_empty() {
        return Err(PageError::NotFound);
    }
    // A reference is letters, digits and dashes: safe in a header.
    let name = format!("attachment; filename=\"rowlock-{reference}.pdf\"");
    let sheet = bookings::ticket_sheet(show, reference, holder, tickets);
    let file = pdf::file(sheet).await.map_err(|cause| {
        tracing::error!(%cause, "write a ticket PDF failed");
        PageError::Fault
    })?;
    let name = HeaderValue::try_from(name).map_err(|_| PageError::Fault)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/pdf")),
        (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE)),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, file).into_response())
}

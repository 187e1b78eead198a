//! Pages of bookings that open without the buyer's cookie: the signed address, "Find my booking", and cancelling.

use app::pages::booking_by_mail::{CancelByMail, FindBooking, MailedBooking};
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Form, Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use domain::booking::BookingState;
use serde::Deserialize;

use super::accounts::{FormResult, once_more};
use super::booking::facts;
use super::{Page, PageError, private, see};
use crate::AppState;
use http::{ClientAddress, reader};
use selling::bookings::{self, OpenedByMail};

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 2 * 1024;

type Key = Result<Path<String>, PathRejection>;
type PageResult = Result<Response, PageError>;

/// The pages.
pub(super) fn pages() -> impl Iterator<Item = Page> {
    let pages = [
        ("/bookings/find", get(ask).post(find)),
        ("/bookings/by-mail/{key}", get(opened)),
        ("/bookings/by-mail/{key}/cancel", post(ask_to_cancel)),
        ("/bookings/cancel/{key}", get(look).post(cancel)),
    ];
    pages.into_iter().map(|(address, handlers)| (address, handlers.layer(DefaultBodyLimit::max(MAX_FORM_BYTES))))
}

async fn ask() -> Response {
    private(FindBooking::Ask { reference: String::new(), email: String::new(), trouble: None })
}

#[derive(Deserialize)]
struct FindForm {
    reference: String,
    email: String,
}

async fn find(State(state): State<AppState>, address: ClientAddress, form: FormResult<FindForm>) -> PageResult {
    let Form(FindForm { reference, email }) = form?;
    Ok(match bookings::find_by_mail(&state, &address, (&reference, &email), reader::language()).await {
        Ok(()) => private(FindBooking::Sent),
        Err(problem) => {
            once_more(problem, |trouble| private(FindBooking::Ask { reference, email, trouble: Some(trouble) }))
        }
    })
}

async fn opened(State(state): State<AppState>, key: Key) -> PageResult {
    let Path(key) = key?;
    let opened = bookings::open_by_mail(&state, &key).await?;
    Ok(private(page(opened, &key)))
}

fn page(OpenedByMail { booking, show }: OpenedByMail, key: &str) -> MailedBooking {
    let is_sold = booking.state == BookingState::Confirmed;
    MailedBooking {
        tickets: is_sold.then(|| format!("/tickets/{}", tickets::links::key_of(booking.id))),
        cancel: booking.cancel_until_ms.map(|_| format!("/bookings/by-mail/{key}/cancel")),
        show: facts(&show),
        booking,
        is_mailed_to: None,
        trouble: None,
    }
}

async fn ask_to_cancel(State(state): State<AppState>, key: Key) -> PageResult {
    let Path(key) = key?;
    let asked = bookings::ask_to_cancel(&state, &key, reader::language()).await;
    let opened = bookings::open_by_mail(&state, &key).await?;
    let page = page(opened, &key);
    Ok(match asked {
        Ok(email) => private(MailedBooking { is_mailed_to: Some(email), ..page }),
        Err(problem) => once_more(problem, |trouble| private(MailedBooking { trouble: Some(trouble), ..page })),
    })
}

async fn look(State(state): State<AppState>, key: Key) -> PageResult {
    let Path(key) = key?;
    let opened = bookings::open_to_cancel(&state, &key).await?;
    Ok(private(question(opened, &key)))
}

fn question(OpenedByMail { booking, show }: OpenedByMail, key: &str) -> CancelByMail {
    let action = booking.cancel_until_ms.map(|_| format!("/bookings/cancel/{key}"));
    CancelByMail { action, show: facts(&show), booking, trouble: None }
}

async fn cancel(State(state): State<AppState>, key: Key) -> PageResult {
    let Path(key) = key?;
    let opened = bookings::open_to_cancel(&state, &key).await?;
    Ok(match bookings::cancel_by_mail(&state, &key).await {
        Ok(page) => see(&format!("/bookings/by-mail/{page}")),
        Err(problem) => {
            let question = question(opened, &key);
            once_more(problem, |trouble| private(CancelByMail { trouble: Some(trouble), ..question }))
        }
    })
}

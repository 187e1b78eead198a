//! Pages of bookings that open without the buyer's cookie: the signed address, "Find my booking", and cancelling.

use app::pages::booking::{CancelByMailPage, FindBookingPage, MailedBookingPage};
use axum::extract::{DefaultBodyLimit, Form, Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use domain::booking::BookingState;
use serde::Deserialize;

use super::accounts::once_more;
use super::booking::facts;
use super::{FormResult, Page, PageResult, PathResult, private, see};
use crate::AppState;
use crate::web::budget::NEVER;
use http::{ClientAddress, page_locale};
use selling::bookings::{self, OpenedByMail};

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 2 * 1024;

/// The pages.
pub(super) fn pages() -> impl Iterator<Item = Page> {
    let pages = [
        ("/bookings/find", get(ask).post(find)),
        ("/bookings/by-mail/{key}", get(opened)),
        ("/bookings/by-mail/{key}/cancel", post(ask_to_cancel)),
        ("/bookings/cancel/{key}", get(show_page).post(cancel)),
    ];
    pages.into_iter().map(|(address, handlers)| (address, handlers.layer(DefaultBodyLimit::max(MAX_FORM_BYTES)), NEVER))
}

async fn ask() -> Response {
    private(FindBookingPage::Ask { reference: String::new(), email: String::new(), trouble: None })
}

#[derive(Deserialize)]
struct FindForm {
    reference: String,
    email: String,
}

async fn find(State(state): State<AppState>, address: ClientAddress, form: FormResult<FindForm>) -> PageResult {
    let Form(FindForm { reference, email }) = form?;
    Ok(match bookings::find_by_mail(&state, &address, (&reference, &email), page_locale::language()).await {
        Ok(()) => private(FindBookingPage::Sent),
        Err(problem) => {
            once_more(problem, |trouble| private(FindBookingPage::Ask { reference, email, trouble: Some(trouble) }))
        }
    })
}

async fn opened(State(state): State<AppState>, key: PathResult<String>) -> PageResult {
    let Path(key) = key?;
    let opened = bookings::open_by_mail(&state, &key).await?;
    Ok(private(page(opened, &key)))
}

fn page(OpenedByMail { booking, show }: OpenedByMail, key: &str) -> MailedBookingPage {
    let is_sold = booking.state == BookingState::Confirmed;
    MailedBookingPage {
        tickets: is_sold.then(|| format!("/tickets/{}", tickets::links::key_of(booking.id))),
        cancel: booking.cancel_until_ms.map(|_| format!("/bookings/by-mail/{key}/cancel")),
        show: facts(&show),
        booking,
        is_mailed_to: None,
        trouble: None,
    }
}

async fn ask_to_cancel(State(state): State<AppState>, key: PathResult<String>) -> PageResult {
    let Path(key) = key?;
    let asked = bookings::ask_to_cancel(&state, &key, page_locale::language()).await;
    let opened = bookings::open_by_mail(&state, &key).await?;
    let page = page(opened, &key);
    Ok(match asked {
        Ok(email) => private(MailedBookingPage { is_mailed_to: Some(email), ..page }),
        Err(problem) => once_more(problem, |trouble| private(MailedBookingPage { trouble: Some(trouble), ..page })),
    })
}

async fn show_page(State(state): State<AppState>, key: PathResult<String>) -> PageResult {
    let Path(key) = key?;
    let opened = bookings::open_to_cancel(&state, &key).await?;
    Ok(private(question(opened, &key)))
}

fn question(OpenedByMail { booking, show }: OpenedByMail, key: &str) -> CancelByMailPage {
    let action = booking.cancel_until_ms.map(|_| format!("/bookings/cancel/{key}"));
    CancelByMailPage { action, show: facts(&show), booking, trouble: None }
}

async fn cancel(State(state): State<AppState>, key: PathResult<String>) -> PageResult {
    let Path(key) = key?;
    let opened = bookings::open_to_cancel(&state, &key).await?;
    Ok(match bookings::cancel_by_mail(&state, &key).await {
        Ok(page) => see(&format!("/bookings/by-mail/{page}")),
        Err(problem) => {
            let question = question(opened, &key);
            once_more(problem, |trouble| private(CancelByMailPage { trouble: Some(trouble), ..question }))
        }
    })
}

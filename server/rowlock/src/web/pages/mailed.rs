//! Pages that mails open: of bookings, without the buyer's cookie, with "Find my booking", the answer to an offer of other
//! seats, and cancelling; and of an offer of a waiting list.

use app::pages::booking::{CancelByMailPage, FindBookingPage, MailedBookingPage};
use app::pages::offer::OfferPage;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::api::BookingView;
use domain::booking::BookingState;
use domain::time::Timestamp;
use serde::Deserialize;

use super::accounts::{form_with_error, new_key};
use super::booking::facts;
use super::{Page, PageError, PageForm, PagePath, PageQuery, PageResult, in_words, private_page, redirect_to};
use crate::AppState;
use crate::web::budget::NEVER;
use http::{ClientAddress, page_locale};
use identity::Visitor;
use selling::account_bookings;
use selling::bookings::{self, OpenedByMail};
use selling::waiting_list::{self, OpenedOffer};

const MAX_FORM_BYTES: usize = 2 * 1024;

pub(super) fn pages() -> impl Iterator<Item = Page> {
    let pages = [
        ("/bookings/find", get(ask).post(find)),
        ("/bookings/by-mail/{key}", get(opened)),
        ("/bookings/by-mail/{key}/seat-offer", post(answer_offer)),
        ("/bookings/by-mail/{key}/cancel", post(ask_to_cancel)),
        ("/bookings/cancel/{key}", get(show_page).post(cancel)),
    ];
    let of_bookings = pages
        .into_iter()
        .map(|(address, handlers)| (address, handlers.layer(DefaultBodyLimit::max(MAX_FORM_BYTES)), NEVER));
    of_bookings.chain([("/waiting-list/{key}", get(open_offer).post(take_offer), NEVER)])
}

async fn ask() -> Response {
    private_page(FindBookingPage::Ask { reference: String::new(), email: String::new(), error: None })
}

#[derive(Deserialize)]
struct FindForm {
    reference: String,
    email: String,
}

async fn find(State(state): State<AppState>, address: ClientAddress, PageForm(form): PageForm<FindForm>) -> PageResult {
    let FindForm { reference, email } = form;
    Ok(match bookings::find_by_mail(&state, &address, (&reference, &email), page_locale::language()).await {
        Ok(()) => private_page(FindBookingPage::Sent),
        Err(problem) => form_with_error(problem, |error| {
            private_page(FindBookingPage::Ask { reference, email, error: Some(error) })
        }),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MailedQuery {
    /// True after the cancelling mail was requested.
    mailed: bool,
}

/// The booking of a mailed key; its owner is redirected to the booking's own page, which can do more.
async fn opened(
    State(state): State<AppState>,
    visitor: Visitor,
    PagePath(key): PagePath<String>,
    PageQuery(query): PageQuery<MailedQuery>,
) -> PageResult {
    let opened = bookings::open_by_mail(&state, &key).await?;
    let id = opened.booking.id;
    if account_bookings::owner_for(&state, &visitor, id).await.is_ok_and(|owner| owner == opened.owner) {
        return Ok(redirect_to(&format!("/bookings/{id}")));
    }
    let page = page(opened, &key);
    let is_mailed = query.mailed && page.cancel.is_some();
    Ok(private_page(MailedBookingPage { is_mailed, ..page }))
}

fn page(OpenedByMail { booking, show, may_answer, .. }: OpenedByMail, key: &str) -> MailedBookingPage {
    let is_sold = booking.state == BookingState::Confirmed;
    MailedBookingPage {
        tickets: is_sold.then(|| format!("/tickets/{}", tickets::links::key_of(booking.id))),
        answer: may_answer.then(|| (format!("/bookings/by-mail/{key}/seat-offer"), new_key())),
        cancel: can_cancel(&booking).then(|| format!("/bookings/by-mail/{key}/cancel")),
        show: facts(&show),
        booking,
        is_mailed: false,
        error: None,
    }
}

/// False while an offer of other seats is open: refusing it refunds in full, and a cancellation would cost a fee.
fn can_cancel(booking: &BookingView) -> bool {
    booking.cancel_until_ms.is_some() && booking.seat_offer.is_none()
}

#[derive(Deserialize)]
struct SeatOfferForm {
    take: bool,
    key: String,
}

async fn answer_offer(
    State(state): State<AppState>,
    PagePath(key): PagePath<String>,
    PageForm(form): PageForm<SeatOfferForm>,
) -> PageResult {
    let opened = bookings::open_by_mail(&state, &key).await?;
    if !opened.may_answer {
        return Err(PageError::NotFound);
    }
    Ok(match bookings::answer_by_mail(&state, &key, &form.key, form.take).await {
        Ok(()) => redirect_to(&format!("/bookings/by-mail/{key}")),
        Err(problem) => form_with_error(problem, |error| {
            private_page(MailedBookingPage { error: Some(error), ..page(opened, &key) })
        }),
    })
}

async fn ask_to_cancel(State(state): State<AppState>, PagePath(key): PagePath<String>) -> PageResult {
    let opened = bookings::open_by_mail(&state, &key).await?;
    Ok(match bookings::ask_to_cancel(&state, &key, page_locale::language()).await {
        Ok(()) => redirect_to(&format!("/bookings/by-mail/{key}?mailed=true")),
        Err(problem) => form_with_error(problem, |error| {
            private_page(MailedBookingPage { error: Some(error), ..page(opened, &key) })
        }),
    })
}

async fn show_page(State(state): State<AppState>, PagePath(key): PagePath<String>) -> PageResult {
    let opened = bookings::open_to_cancel(&state, &key).await?;
    Ok(private_page(question(opened, &key)))
}

fn question(OpenedByMail { booking, show, .. }: OpenedByMail, key: &str) -> CancelByMailPage {
    let action = can_cancel(&booking).then(|| format!("/bookings/cancel/{key}"));
    CancelByMailPage { action, show: facts(&show), booking, error: None }
}

async fn cancel(State(state): State<AppState>, PagePath(key): PagePath<String>) -> PageResult {
    let opened = bookings::open_to_cancel(&state, &key).await?;
    Ok(match bookings::cancel_by_mail(&state, &key).await {
        Ok(page) => redirect_to(&format!("/bookings/by-mail/{page}")),
        Err(problem) => {
            let question = question(opened, &key);
            form_with_error(problem, |error| private_page(CancelByMailPage { error: Some(error), ..question }))
        }
    })
}

async fn open_offer(State(state): State<AppState>, visitor: Visitor, PagePath(key): PagePath<String>) -> PageResult {
    let opened = waiting_list::open_offer(&state, &visitor, &key).await?;
    if opened.is_own && opened.can_be_taken() {
        return Ok(redirect_to(&format!("/shows/{}", opened.show.id)));
    }
    Ok(private_page(offer_page(opened, &key)))
}

fn offer_page(opened: OpenedOffer, key: &str) -> OfferPage {
    let OpenedOffer { place, show, .. } = opened;
    let until = place.offer.as_ref().map(|offer| in_words(&show, Timestamp(offer.expires_at_ms)));
    OfferPage {
        until: until.unwrap_or_default(),
        offer: place.offer,
        show: facts(&show),
        show_path: format!("/shows/{}", show.id),
        action: format!("/waiting-list/{key}"),
        error: None,
    }
}

/// Takes the offer. The redirect sets the cookie of a new device: the offer is its visitor's then.
async fn take_offer(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    PagePath(key): PagePath<String>,
) -> PageResult {
    let problem = match waiting_list::take_offer(&state, &visitor, &address, &key).await {
        Ok(show) => return Ok((visitor, redirect_to(&format!("/shows/{show}"))).into_response()),
        Err(problem) => problem,
    };
    let opened = waiting_list::open_offer(&state, &visitor, &key).await?;
    let page = offer_page(opened, &key);
    Ok(form_with_error(problem, |error| private_page(OfferPage { error: Some(error), ..page })))
}

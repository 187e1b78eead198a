//! Pages for people: load through a capability, fill a struct of `app`, render.
//!
//! Not here: the API, and what pages look like.

use app::language::{self, Moment};
use app::pages::not_found::NotFoundPage;
use app::pages::problems::{ProblemEntry, ProblemsPage};
use axum::Router;
use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::extract::{Form, Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use domain::time::Timestamp;

use crate::AppState;
use catalogue::{InvalidSearch, Show};
use http::cache_tags::CacheTags;
use http::caching::{CachePolicy, PRIVATE};
use http::{Code, Problem, describe_rejection, page_locale};

mod accounts;
mod booking;
mod booking_by_mail;
pub mod browse;
mod offer;
mod show;
mod staff;
mod ticket_pdf;

/// For pages of one visitor, and for errors.
pub const PRIVATE_CACHE: &str = PRIVATE;

/// Addresses of pages, as metrics name them.
pub const ADDRESSES: [&str; 74] = [
    "/",
    "/cities/{id}",
    "/theatres/{id}",
    "/films/{id}",
    "/search",
    "/shows/{id}",
    "/shows/{id}/place/{ticket}",
    "/bookings/{id}",
    "/bookings/{id}/ticket",
    "/bookings/{id}/ticket.ics",
    "/bookings/{id}/ticket.pdf",
    "/bookings/find",
    "/bookings/by-mail/{key}",
    "/bookings/by-mail/{key}/cancel",
    "/bookings/cancel/{key}",
    "/waiting-list/{key}",
    "/tickets/{code}",
    "/tickets/{code}/ticket.ics",
    "/tickets/{code}/ticket.pdf",
    "/docs/problems",
    "/login",
    "/register",
    "/reset",
    "/reset/new",
    "/confirm-email",
    "/account",
    "/account/password",
    "/account/email-link",
    "/account/logout",
    "/account/logout-everywhere",
    "/staff",
    "/staff/theatres",
    "/staff/{theatre}/theatre",
    "/staff/{theatre}/door",
    "/staff/{theatre}/door/{show}",
    "/staff/{theatre}/reports",
    "/staff/{theatre}/unusual",
    "/staff/{theatre}/unusual/{flag}/dismiss",
    "/staff/{theatre}/parked",
    "/staff/{theatre}/parked/{parked}/{decision}",
    "/staff/{theatre}/systems",
    "/staff/{theatre}/systems/keys",
    "/staff/{theatre}/systems/keys/{key}/revoke",
    "/staff/{theatre}/systems/webhooks",
    "/staff/{theatre}/systems/webhooks/{endpoint}/secret",
    "/staff/{theatre}/systems/webhooks/{endpoint}/state",
    "/staff/{theatre}/systems/webhooks/{endpoint}/deliveries/{delivery}/replay",
    "/staff/{theatre}/shows",
    "/staff/{theatre}/shows/plan",
    "/staff/{theatre}/shows/{show}",
    "/staff/{theatre}/shows/{show}/terms",
    "/staff/{theatre}/shows/{show}/cancel",
    "/staff/{theatre}/shows/{show}/defective-seats",
    "/staff/{theatre}/shows/{show}/move",
    "/staff/{theatre}/shows/{show}/waiting-room",
    "/staff/{theatre}/shows/{show}/waiting-room/terms",
    "/staff/{theatre}/shows/{show}/waiting-room/off",
    "/staff/{theatre}/screens",
    "/staff/{theatre}/screens/layout",
    "/staff/{theatre}/layouts",
    "/staff/{theatre}/layouts/new",
    "/staff/{theatre}/layouts/{layout}",
    "/staff/{theatre}/layouts/{layout}/edit",
    "/staff/{theatre}/prices",
    "/staff/{theatre}/films",
    "/staff/{theatre}/box-office",
    "/staff/{theatre}/box-office/till/{act}",
    "/staff/{theatre}/box-office/day-close",
    "/staff/{theatre}/box-office/pin",
    "/staff/{theatre}/box-office/shows/{show}",
    "/staff/{theatre}/box-office/bookings",
    "/staff/{theatre}/box-office/bookings/{booking}",
    "/staff/{theatre}/box-office/bookings/{booking}/exchange",
    "/staff/{theatre}/box-office/bookings/{booking}/{act}",
];

/// All pages.
pub fn routes() -> Router<AppState> {
    Router::new()
        .merge(browse::routes())
        .merge(show::routes())
        .merge(booking::routes())
        .merge(booking_by_mail::routes())
        .merge(offer::routes())
        .merge(ticket_pdf::routes())
        .merge(accounts::routes())
        .merge(staff::routes())
        .route("/docs/problems", get(problems))
}

/// The page to which the `type` of every problem leads.
async fn problems() -> Response {
    let entries = Code::ALL.into_iter().map(|code| {
        let (status, name, title) = code.describe();
        ProblemEntry { code: name.to_owned(), status: status.as_u16(), title: title.to_owned() }
    });
    for_all(ProblemsPage { entries: entries.collect() }, CachePolicy::with_tags(CacheTags::default()))
}

/// A page as an answer in its reader's language, with how long it may be kept.
pub fn html(page: impl app::Page, cache: &'static str) -> Response {
    ([(header::CACHE_CONTROL, cache)], Html(document(page))).into_response()
}

/// A public page, the same for all readers of its language.
pub fn for_all(page: impl app::Page, kept: CachePolicy) -> Response {
    (kept, Html(document(page))).into_response()
}

fn document(page: impl app::Page) -> String {
    let reader = page_locale::current();
    app::render_in(reader.language, |other| reader.address_in(other), page)
}

/// When a show starts, on its theatre's clocks and in its reader's language: `Sat 21 Nov, 20:15`.
pub fn start_in_words(show: &Show) -> String {
    let start = Moment::parse(&show.local_iso(show.starts_at));
    start.map_or_else(|| show.starts_local.clone(), |start| start.in_words(page_locale::language()))
}

/// The problem's message in the reader's language.
pub fn words(problem: &Problem) -> String {
    language::with_language(page_locale::language(), || language::problem_in_words(&problem.view()))
}

/// Another instant on the clocks of a show's theatre, in the reader's language.
pub fn in_words(show: &Show, at: Timestamp) -> String {
    Moment::parse(&show.local_iso(at)).map_or_else(|| show.local_time(at), |at| at.in_words(page_locale::language()))
}

/// A page, or an error page.
pub type PageResult = Result<Response, PageError>;
/// The variables of a page's address.
type PathResult<T> = Result<Path<T>, PathRejection>;
/// The query of a page's address.
type QueryResult<T> = Result<Query<T>, QueryRejection>;
/// A form that a page sends.
type FormResult<T> = Result<Form<T>, FormRejection>;

/// Why a page cannot be shown.
#[derive(Debug)]
pub enum PageError {
    /// The address does not exist, or belongs to another visitor.
    NotFound,
    /// The address has an invalid query or path; the text explains it.
    Unreadable(String),
    /// The database is unavailable for a moment.
    Busy,
    /// An internal error, logged already.
    Fault,
}

impl From<sqlx::Error> for PageError {
    fn from(cause: sqlx::Error) -> Self {
        match cause {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => {
                tracing::warn!(%cause, "database unavailable");
                Self::Busy
            }
            other => {
                tracing::error!(cause = %other, "page failed by an internal error");
                Self::Fault
            }
        }
    }
}

impl From<InvalidSearch> for PageError {
    fn from(why: InvalidSearch) -> Self {
        Self::Unreadable(why.to_string())
    }
}

impl From<PathRejection> for PageError {
    fn from(_: PathRejection) -> Self {
        Self::NotFound
    }
}

impl From<QueryRejection> for PageError {
    fn from(rejection: QueryRejection) -> Self {
        Self::Unreadable(describe_rejection(&rejection.body_text()))
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let language = page_locale::language();
        let (status, page) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, NotFoundPage::nothing_here(language)),
            Self::Unreadable(why) => (StatusCode::BAD_REQUEST, NotFoundPage::unreadable(language, why)),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, NotFoundPage::trouble(language)),
            Self::Fault => (StatusCode::INTERNAL_SERVER_ERROR, NotFoundPage::trouble(language)),
        };
        let mut response = (status, html(page, PRIVATE_CACHE)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}

/// `Retry-After` of temporary failures, seconds.
const RETRY_AFTER_S: u32 = 5;

/// The fallback for unknown addresses.
pub async fn nothing_here() -> PageError {
    PageError::NotFound
}

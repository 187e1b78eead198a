//! Pages of accounts: forms without a script, answered by a page or by the way on.
//!
//! They do what the API does, through the same services. Nothing of them is kept by a cache.

mod forms;
mod own;

use app::pages::accounts::Notice;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;

use super::{PRIVATE_CACHE, PageError, html, words};
use crate::AppState;
use http::idempotency::IdempotencyKey;
use http::{Code, Problem, describe_rejection};
use platform::ids;

/// Largest form, bytes: an address, a name and two passwords are far below.
const MAX_FORM_BYTES: usize = 8 * 1024;
/// Longest way on, bytes.
const MAX_NEXT_BYTES: usize = 512;

/// The pages.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/login", get(forms::login).post(forms::log_in))
        .route("/register", get(forms::register).post(forms::make))
        .route("/reset", get(forms::reset).post(forms::ask))
        .route("/reset/new", post(forms::set))
        .route("/confirm-email", get(own::confirm).post(own::prove))
        .route("/account", get(own::account))
        .route("/account/password", post(own::password))
        .route("/account/email-link", post(own::send_link))
        .route("/account/logout", post(own::log_out))
        .route("/account/logout-everywhere", post(own::log_out_everywhere))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

/// The query of these pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AccountQuery {
    next: String,
    notice: String,
    after: String,
    token: String,
}

impl AccountQuery {
    fn notice(&self) -> Option<Notice> {
        Notice::parse(&self.notice)
    }
}

impl From<FormRejection> for PageError {
    fn from(rejection: FormRejection) -> Self {
        Self::Unreadable(describe_rejection(&rejection.body_text()))
    }
}

/// The page to go to afterwards: a path of this site only. A redirection to another site would make us vouch for it.
fn way_on(next: &str) -> Option<&str> {
    let is_ours = next.len() <= MAX_NEXT_BYTES
        && next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>&#".contains(&byte));
    is_ours.then_some(next)
}

/// The way on after a form, as browsers take it: with GET.
pub(super) fn see(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, location);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE));
    response
}

/// The same with something to say there.
fn see_with(path: &str, notice: Notice) -> Response {
    see(&format!("{path}?notice={}", notice.as_str()))
}

/// The form again, with the problem; internal errors have their own page.
pub(super) fn once_more(problem: Problem, page: impl FnOnce(String) -> Response) -> Response {
    match problem.code() {
        Code::Internal => return PageError::Fault.into_response(),
        Code::DatabaseUnavailable => return PageError::Busy.into_response(),
        _ => {}
    }
    let mut response = page(words(&problem));
    let refusal = problem.into_response();
    *response.status_mut() = refusal.status();
    for (name, value) in refusal.headers() {
        if [header::RETRY_AFTER, header::HeaderName::from_static("ratelimit")].contains(name) {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    response
}

/// The key of a form.
///
/// # Errors
/// 400 without one: it is not our form.
fn key_of(text: &str) -> Result<IdempotencyKey, Problem> {
    IdempotencyKey::of_form(text)
}

/// A key for a form that is shown.
fn new_key() -> String {
    ids::new_id().to_string()
}

/// A page that is never cached.
pub(super) fn private(page: impl app::Page) -> Response {
    html(page, PRIVATE_CACHE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_always_on_our_site() {
        for ours in ["/", "/account", "/shows/00000000-0000-0000-0000-000000000007", "/confirm-email?token=0a"] {
            assert_eq!(way_on(ours), Some(ours));
        }
        for others in [
            "",
            "account",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a b",
            "/a\r\nset-cookie: x=y",
            "/\u{202E}",
            "/a&b=c",
        ] {
            assert_eq!(way_on(others), None, "{others:?}");
        }
        assert_eq!(way_on(&format!("/{}", "x".repeat(MAX_NEXT_BYTES))), None);
    }
}

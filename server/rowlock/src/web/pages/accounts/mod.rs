//! Pages of accounts: forms without a script, answered by a page or by the way on.
//!
//! They do what the API does, through the same services. Nothing of them is kept by a cache.

mod forms;
mod own;

use app::pages::accounts::Notice;
use axum::extract::DefaultBodyLimit;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::VariantName;
use serde::Deserialize;

use super::{Page, PageError, private, see, words};
use crate::web::budget::NEVER;
use http::{Code, Problem};
use platform::ids;

/// Largest form, bytes: an address, a name and two passwords are far below.
const MAX_FORM_BYTES: usize = 8 * 1024;
const MAX_NEXT_BYTES: usize = 512;

pub(super) fn pages() -> impl Iterator<Item = Page> {
    let pages = [
        ("/login", get(forms::login).post(forms::log_in)),
        ("/register", get(forms::register).post(forms::make)),
        ("/reset", get(forms::reset).post(forms::ask)),
        ("/reset/new", post(forms::set)),
        ("/confirm-email", get(own::confirm).post(own::prove)),
        ("/account", get(own::account)),
        ("/account/password", post(own::password)),
        ("/account/email-link", post(own::send_link)),
        ("/account/logout", post(own::log_out)),
        ("/account/logout-everywhere", post(own::log_out_everywhere)),
    ];
    pages.into_iter().map(|(address, handlers)| (address, handlers.layer(DefaultBodyLimit::max(MAX_FORM_BYTES)), NEVER))
}

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
        self.notice.parse().ok()
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

/// Redirects to a page with something to say there.
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

/// A key for a form that is shown.
fn new_key() -> String {
    ids::new_id().to_string()
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

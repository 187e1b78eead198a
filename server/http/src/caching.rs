//! Which answers may be kept, by whom and for how long. Here is the one table of it; what has no row, or another method
//! than GET, nobody keeps.
//!
//! A handler says what its answer shows ([`Kept`]), and this room writes the headers. Whatever depends on who asks, or
//! decides anything, is nobody's to keep: the seat map, holds, bookings, the box office, errors.

use std::time::{Duration, Instant};

use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::{IntoResponseParts, Response, ResponseParts};

use crate::cache_tags::Tags;

/// For answers that are one visitor's, decide anything, or are errors.
pub const PRIVATE: &str = "private, no-store";
/// For what is the same for everybody: seats left on it age with it. A browser, which nobody can purge, shows what it
/// has for fifteen seconds at most, while it asks; a CDN has it for thirty, and for fifteen more while it asks.
pub const SHARED: &str = "public, max-age=0, s-maxage=30, stale-while-revalidate=15";
/// For what has prices in it, or is a file whose name stays when it changes: kept, and asked about before each use.
pub const REVALIDATED: &str = "public, no-cache";
/// For what never changes under its address: a year is as long as caches believe.
pub const FOREVER: &str = "public, max-age=31536000, immutable";

/// What an answer for everybody says must have been asked for within this time, or nobody keeps it. With the lag of a
/// standby that is how old a page can be when a CDN gets it, so how long after a change it is to be purged once more
/// (`cdn`). Answers usually take milliseconds; searches are shared for two seconds.
pub const KEPT_WITHIN: Duration = Duration::from_secs(4);

/// What it shows, as most CDNs and caches read it: parted by commas.
const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
/// The same, as Fastly and Varnish read it: parted by spaces.
const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

/// How a route's answers may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// By a CDN, for a while, under tags; or not, as its handler says.
    Shared,
    /// By whoever asks before each use.
    Revalidated,
    /// By anybody, for good, if it is what its address names; else by nobody.
    Immutable,
    /// By nobody.
    Never,
}

/// Routes by template. GET stands for HEAD as well.
pub type Row = (&'static str, Class);

use Class::{Immutable, Never, Revalidated, Shared};

/// Every route that is the same for everybody, and every page. Of the API, whatever is not for everybody is
/// [`Class::Never`] without a row.
pub const TABLE: &[Row] = &[
    ("/", Shared),
    ("/cities/{id}", Shared),
    ("/theatres/{id}", Shared),
    ("/films/{id}", Shared),
    ("/search", Shared),
    ("/docs/problems", Shared),
    ("/api/v1/cities", Shared),
    ("/api/v1/cities/{id}/theatres", Shared),
    ("/api/v1/theatres/{id}/shows", Shared),
    ("/api/v1/shows", Shared),
    ("/api/v1/shows/{id}", Shared),
    // With prices.
    ("/api/v1/shows/{id}/plan", Revalidated),
    // Without them; for good under the address of a room.
    ("/api/v1/shows/{id}/dots", Revalidated),
    // The seat map: a visitor who chooses is never shown a stale one.
    ("/api/v1/shows/{show}/seats", Never),
    ("/api/v1/shows/{show}/best", Never),
    // It knows its visitor, and who waits in front of it.
    ("/shows/{id}", Never),
    ("/shows/{id}/place/{ticket}", Never),
    ("/login", Never),
    ("/register", Never),
    ("/reset", Never),
    ("/reset/new", Never),
    ("/confirm-email", Never),
    ("/waiting-list/{key}", Never),
    ("/api/openapi.json", Never),
    // The address names what is in it.
    ("/site/{version}/{*file}", Immutable),
    ("/pkg/{*file}", Revalidated),
    ("/fonts/{*file}", Revalidated),
    ("/style/{*file}", Revalidated),
    ("/favicon.svg", Revalidated),
    ("/ticket-worker.js", Revalidated),
    ("/door-worker.js", Revalidated),
    ("/healthz", Never),
    ("/readyz", Never),
    ("/metrics", Never),
];

/// Pages below these are somebody's own, or staff's.
const OWN: [&str; 4] = ["/bookings", "/tickets", "/account", "/staff"];

/// The class of a route; `None` when nobody has said.
#[must_use]
pub fn class(route: &str) -> Option<Class> {
    let is_own =
        || OWN.iter().any(|own| route.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let named = TABLE.iter().find(|(known, _)| *known == route).map(|(_, class)| *class);
    named.or_else(|| is_own().then_some(Never))
}

/// What an answer for everybody shows: on such an answer it makes the headers with which a CDN keeps it.
#[derive(Clone, Debug)]
pub struct Kept {
    tags: Tags,
    asked: Option<Instant>,
}

impl Kept {
    /// As something that shows these.
    #[must_use]
    pub const fn under(tags: Tags) -> Self {
        Self { tags, asked: None }
    }

    /// With something in it that was asked for then, by this request or by one before it.
    #[must_use]
    pub fn asked(self, at: Instant) -> Self {
        let asked = self.asked.map_or(at, |before| before.min(at));
        Self { asked: Some(asked), ..self }
    }
}

impl IntoResponseParts for Kept {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Self::Error> {
        let said = self.tags.said();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(SHARED));
        if !said.is_empty() {
            for (name, between) in [(CACHE_TAG, ","), (SURROGATE_KEY, " ")] {
                // Letters, digits and dashes are a header's value.
                headers.extend(HeaderValue::try_from(said.join(between)).ok().map(|value| (name, value)));
            }
        }
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// Nobody keeps this answer.
pub fn nobody_keeps(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(PRIVATE));
    headers.remove(CACHE_TAG);
    headers.remove(SURROGATE_KEY);
}

/// Sees to it that nobody keeps an answer that its route lets nobody keep, that is about somebody or an error, or that may
/// be too old: one that took long, or was made of what took long. `began` is when the request came.
pub fn settle(response: &mut Response, method: &Method, route: &str, began: Instant) {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let may_be_kept = is_read && !is_error && !matches!(class(route), None | Some(Never));
    let asked = response.extensions().get::<Kept>().map(|kept| kept.asked.map_or(began, |asked| asked.min(began)));
    let is_old = asked.is_some_and(|asked| asked.elapsed() > KEPT_WITHIN);
    let headers = response.headers_mut();
    if !may_be_kept || is_old || headers.contains_key(SET_COOKIE) || !headers.contains_key(CACHE_CONTROL) {
        nobody_keeps(headers);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn what_chooses_holds_books_and_works_is_kept_by_nobody() {
        for route in ["/shows/{id}", "/bookings/{id}", "/staff", "/staff/{theatre}/door", "/account/logout", "/login"] {
            assert_eq!(class(route), Some(Never), "{route}");
        }
        assert_eq!(class("/api/v1/shows/{show}/seats"), Some(Never));
        assert_eq!(class("/staffing"), None, "a page to come");
    }

    fn answer(kept: Kept) -> Response {
        (kept, "seats left").into_response()
    }

    fn settled(mut response: Response, method: &Method, route: &str, began: Instant) -> HeaderMap {
        settle(&mut response, method, route, began);
        response.headers().clone()
    }

    #[test]
    fn an_answer_for_everybody_says_what_it_shows_in_both_ways() {
        let tags = Tags::default().theatre("aurora").film("tide");
        let headers = settled(answer(Kept::under(tags)), &Method::GET, "/theatres/{id}", Instant::now());
        assert_eq!(headers[CACHE_CONTROL], SHARED);
        assert_eq!(headers[CACHE_TAG], "film-tide,theatre-aurora");
        assert_eq!(headers[SURROGATE_KEY], "film-tide theatre-aurora");
    }

    #[test]
    fn nobody_keeps_what_is_old_sets_a_cookie_or_lies_where_nothing_is_kept() {
        let now = Instant::now();
        let old = now.checked_sub(KEPT_WITHIN + Duration::from_millis(1)).expect("this machine runs for longer");
        let kept = || Kept::under(Tags::lists());
        let gone = (StatusCode::NOT_FOUND, [(CACHE_CONTROL, FOREVER)], "gone").into_response();
        let with_cookie = ([(SET_COOKIE, "lang=de")], answer(kept())).into_response();
        for (why, headers) in [
            ("slow", settled(answer(kept()), &Method::GET, "/", old)),
            ("made of what was slow", settled(answer(kept().asked(now).asked(old)), &Method::GET, "/", now)),
            ("a cookie", settled(with_cookie, &Method::GET, "/", now)),
            ("somebody's own", settled(answer(kept()), &Method::GET, "/bookings/{id}", now)),
            ("without a class", settled(answer(kept()), &Method::GET, "/new", now)),
            ("a change", settled(answer(kept()), &Method::POST, "/", now)),
            ("nothing said", settled("alive".into_response(), &Method::GET, "/", now)),
            ("an error", settled(gone, &Method::GET, "/site/{version}/{*file}", now)),
        ] {
            assert_eq!(headers[CACHE_CONTROL], PRIVATE, "{why}");
            assert!(!headers.contains_key(CACHE_TAG) && !headers.contains_key(SURROGATE_KEY), "{why}");
        }
        assert_eq!(settled(answer(kept().asked(now)), &Method::HEAD, "/", now)[CACHE_CONTROL], SHARED);
    }
}

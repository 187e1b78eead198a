//! Cache rules of all answers: the table of routes that may be cached, by which caches and for how long. A route without a
//! row, and any method but GET, is never cached.
//!
//! A handler attaches the tags of its answer ([`CachePolicy`]), and this module writes the headers. An answer that depends on the
//! visitor or decides anything is never cached: the seat map, holds, bookings, the box office, errors.

use std::time::{Duration, Instant};

use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::{IntoResponseParts, Response, ResponseParts};

use crate::cache_tags::CacheTags;

/// For answers that are one visitor's, decide anything, or are errors.
pub const PRIVATE: &str = "private, no-store";
/// For public answers; the free seats on them become stale. A browser, which cannot be purged, shows a stale answer for
/// fifteen seconds at most, while it revalidates; a CDN caches it for thirty, and serves it stale for fifteen more.
pub const SHARED: &str = "public, max-age=0, s-maxage=30, stale-while-revalidate=15";
/// For answers with prices, and files whose name stays when they change: cached, and revalidated before each use.
pub const REVALIDATED: &str = "public, no-cache";
/// For answers that never change at their address: caches accept a year at most.
pub const FOREVER: &str = "public, max-age=31536000, immutable";

/// Maximum age of the data of a public answer, or it is not cached. With the replication lag of a standby this is the
/// greatest age of a page when a CDN gets it, so it sets how long after a change the page is purged once more (`cdn`).
/// Answers usually take milliseconds; searches are shared for two seconds.
pub const MAX_DATA_AGE: Duration = Duration::from_secs(4);

/// The tags as most CDNs and caches read them: separated by commas.
const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
/// The tags as Fastly and Varnish read them: separated by spaces.
const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

/// A route's cache rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheClass {
    /// Cached by a CDN for a while, under tags, unless its handler forbids it.
    Shared,
    /// Cached, and revalidated before each use.
    Revalidated,
    /// Cached without limit if it is the version that its address names; otherwise not cached.
    Immutable,
    /// Not cached.
    Never,
}

/// Routes by template. GET stands for HEAD as well.
pub type ClassifiedRoute = (&'static str, CacheClass);

use CacheClass::{Immutable, Never, Revalidated, Shared};

/// Every public route, and every page. Other routes of the API are [`CacheClass::Never`] without a row.
pub const TABLE: &[ClassifiedRoute] = &[
    ("/", Shared),
    ("/cities/{id}", Shared),
    ("/theatres/{id}", Shared),
    ("/films/{id}", Shared),
    ("/films/{id}/poster.png", Shared),
    ("/search", Shared),
    ("/docs/problems", Shared),
    ("/sitemap.xml", Shared),
    ("/robots.txt", Revalidated),
    ("/api/v1/cities", Shared),
    ("/api/v1/cities/{id}/theatres", Shared),
    ("/api/v1/theatres/{id}/shows", Shared),
    ("/api/v1/shows", Shared),
    ("/api/v1/shows/{id}", Shared),
    // With prices.
    ("/api/v1/shows/{id}/plan", Revalidated),
    // Without query; immutable at the address of a room's version.
    ("/api/v1/shows/{id}/dots", Revalidated),
    // The seat map: a visitor who chooses is never shown a stale one.
    ("/api/v1/shows/{show}/seats", Never),
    ("/api/v1/shows/{show}/best", Never),
    // A buyer looks for a sale of a moment ago.
    ("/api/v1/shows/{show}/sold-seats", Never),
    // Depends on the visitor, and on the waiting room.
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
    ("/demo/watched", Never),
];

/// Prefixes of personal and staff pages.
const OWN: [&str; 4] = ["/bookings", "/tickets", "/account", "/staff"];

/// The class of a route; `None` for an unlisted route.
#[must_use]
pub fn cache_class(route: &str) -> Option<CacheClass> {
    let is_own =
        || OWN.iter().any(|own| route.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let named = TABLE.iter().find(|(known, _)| *known == route).map(|(_, class)| *class);
    named.or_else(|| is_own().then_some(Never))
}

/// The tags of a public answer: the CDN caches it under them.
#[derive(Clone, Debug)]
pub struct CachePolicy {
    tags: CacheTags,
    read_at: Option<Instant>,
}

impl CachePolicy {
    /// As something that shows these.
    #[must_use]
    pub const fn with_tags(tags: CacheTags) -> Self {
        Self { tags, read_at: None }
    }

    /// Adds data that was read at `at`, by this request or by an earlier one.
    #[must_use]
    pub fn read_at(self, at: Instant) -> Self {
        let read_at = self.read_at.map_or(at, |before| before.min(at));
        Self { read_at: Some(read_at), ..self }
    }
}

impl IntoResponseParts for CachePolicy {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Self::Error> {
        let names = self.tags.names();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(SHARED));
        if !names.is_empty() {
            for (name, between) in [(CACHE_TAG, ","), (SURROGATE_KEY, " ")] {
                // Letters, digits and dashes are a header's value.
                headers.extend(HeaderValue::try_from(names.join(between)).ok().map(|value| (name, value)));
            }
        }
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// Forbids all caching of this answer.
pub fn forbid_caching(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(PRIVATE));
    headers.remove(CACHE_TAG);
    headers.remove(SURROGATE_KEY);
}

/// Forbids caching of an answer if its route forbids it, if it is personal or an error, or if it may be too old: it took
/// long, or was made of old data. `began` is when the request came.
pub fn enforce_no_store(response: &mut Response, method: &Method, route: &str, began: Instant) {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let may_be_kept = is_read && !is_error && !matches!(cache_class(route), None | Some(Never));
    let read_at =
        response.extensions().get::<CachePolicy>().map(|kept| kept.read_at.map_or(began, |read_at| read_at.min(began)));
    let is_old = read_at.is_some_and(|read_at| read_at.elapsed() > MAX_DATA_AGE);
    let headers = response.headers_mut();
    if !may_be_kept || is_old || headers.contains_key(SET_COOKIE) || !headers.contains_key(CACHE_CONTROL) {
        forbid_caching(headers);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn an_answer_about_seats_holds_bookings_and_work_is_never_cached() {
        for route in ["/shows/{id}", "/bookings/{id}", "/staff", "/staff/{theatre}/door", "/account/logout", "/login"] {
            assert_eq!(cache_class(route), Some(Never), "{route}");
        }
        assert_eq!(cache_class("/api/v1/shows/{show}/seats"), Some(Never));
        assert_eq!(cache_class("/staffing"), None, "a page to come");
    }

    fn answer(kept: CachePolicy) -> Response {
        (kept, "seats left").into_response()
    }

    fn settled(mut response: Response, method: &Method, route: &str, began: Instant) -> HeaderMap {
        enforce_no_store(&mut response, method, route, began);
        response.headers().clone()
    }

    #[test]
    fn a_public_answer_has_its_tags_in_both_headers() {
        let tags = CacheTags::default().theatre("aurora").film("tide");
        let headers = settled(answer(CachePolicy::with_tags(tags)), &Method::GET, "/theatres/{id}", Instant::now());
        assert_eq!(headers[CACHE_CONTROL], SHARED);
        assert_eq!(headers[CACHE_TAG], "film-tide,theatre-aurora");
        assert_eq!(headers[SURROGATE_KEY], "film-tide theatre-aurora");
    }

    #[test]
    fn an_answer_that_is_old_sets_a_cookie_or_has_an_uncached_route_is_not_cached() {
        let now = Instant::now();
        let old = now.checked_sub(MAX_DATA_AGE + Duration::from_millis(1)).expect("this machine runs for longer");
        let kept = || CachePolicy::with_tags(CacheTags::lists());
        let gone = (StatusCode::NOT_FOUND, [(CACHE_CONTROL, FOREVER)], "gone").into_response();
        let with_cookie = ([(SET_COOKIE, "lang=de")], answer(kept())).into_response();
        for (why, headers) in [
            ("slow", settled(answer(kept()), &Method::GET, "/", old)),
            ("made of what was slow", settled(answer(kept().read_at(now).read_at(old)), &Method::GET, "/", now)),
            ("a cookie", settled(with_cookie, &Method::GET, "/", now)),
            ("a personal page", settled(answer(kept()), &Method::GET, "/bookings/{id}", now)),
            ("without a class", settled(answer(kept()), &Method::GET, "/new", now)),
            ("a change", settled(answer(kept()), &Method::POST, "/", now)),
            ("nothing said", settled("alive".into_response(), &Method::GET, "/", now)),
            ("an error", settled(gone, &Method::GET, "/site/{version}/{*file}", now)),
        ] {
            assert_eq!(headers[CACHE_CONTROL], PRIVATE, "{why}");
            assert!(!headers.contains_key(CACHE_TAG) && !headers.contains_key(SURROGATE_KEY), "{why}");
        }
        assert_eq!(settled(answer(kept().read_at(now)), &Method::HEAD, "/", now)[CACHE_CONTROL], SHARED);
    }
}

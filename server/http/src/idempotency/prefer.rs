//! The `Prefer` header (RFC 7240), as far as we honour it: `respond-async`.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

/// Says which preference an answer followed.
pub(super) const APPLIED: &str = "preference-applied";
/// The one we know.
pub(super) const RESPOND_ASYNC: &str = "respond-async";

/// The caller's preferences from the `Prefer` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    /// At once, with an address to ask at, instead of when it is done.
    pub respond_async: bool,
}

impl Prefer {
    fn read(headers: &HeaderMap) -> Self {
        let values = headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split(','));
        // What stands behind a semicolon are parameters; this preference has none.
        let is_async = |preference: &str| {
            preference.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(RESPOND_ASYNC))
        };
        Self { respond_async: preferences.any(is_async) }
    }
}

impl<S: Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preference_is_found_among_others() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("prefer", value.parse().expect("a header value"));
            }
            Prefer::read(&headers).respond_async
        };
        for values in [&["respond-async"][..], &["wait=10, Respond-Async"], &["return=minimal", "respond-async; x=1"]] {
            assert!(read(values), "{values:?}");
        }
        for values in [&[][..], &["wait=10"], &["respond-asynchronously"], &["return=respond-async"]] {
            assert!(!read(values), "{values:?}");
        }
    }
}

//! The `Idempotency-Key` header.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::Fingerprint;
use crate::{ApiResult, Code, Problem};

/// Maximum length of a key, characters.
const MAX_KEY_LENGTH: usize = 255;
/// Names of the header; the second is an alias.
const NAMES: [&str; 2] = ["idempotency-key", "x-idempotency-key"];

/// A client's key: 1 to 255 visible ASCII characters, from `Idempotency-Key` or `X-Idempotency-Key`, with
/// the fingerprint of the request it came with, if one was taken.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    pub(super) key: String,
    pub(super) fingerprint: Option<Fingerprint>,
}

/// The key of a request; `None` when it has none.
///
/// # Errors
/// 400 when the key is invalid, or the request has two different keys.
pub fn read_key(headers: &HeaderMap) -> ApiResult<Option<&str>> {
    let mut found: Option<&str> = None;
    for value in NAMES.iter().flat_map(|name| headers.get_all(*name)) {
        let bytes = value.as_bytes();
        let usable = (1..=MAX_KEY_LENGTH).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        let Some(key) = std::str::from_utf8(bytes).ok().filter(|_| usable) else {
            return Err(Problem::new(
                Code::KeyMalformed,
                "An Idempotency-Key is 1 to 255 visible ASCII characters, for example a UUID.",
            ));
        };
        if found.is_some_and(|other| other != key) {
            let detail = "Send one Idempotency-Key; this request has two, and they differ.";
            return Err(Problem::new(Code::KeyMalformed, detail));
        }
        found = Some(key);
    }
    Ok(found)
}

impl IdempotencyKey {
    /// A key from a form field, because forms send no headers.
    ///
    /// # Errors
    /// 400 when the key is invalid.
    pub fn of_form(text: &str) -> ApiResult<Self> {
        let usable = (1..=MAX_KEY_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if usable {
            return Ok(Self { key: text.to_owned(), fingerprint: None });
        }
        Err(Problem::new(Code::KeyMalformed, "The form came without its key. Load the page again, then send it."))
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        let Some(key) = read_key(&parts.headers)? else {
            return Err(Problem::new(Code::KeyMissing, "Send an Idempotency-Key, a new one for each new intent."));
        };
        Ok(Self { key: key.to_owned(), fingerprint: parts.extensions.get().copied() })
    }
}

/// The response header that names the applied preference.
pub(super) const APPLIED: &str = "preference-applied";
/// The supported preference.
pub(super) const RESPOND_ASYNC: &str = "respond-async";

/// The caller's preferences from the `Prefer` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    /// True if the caller prefers an immediate 202 with an address to poll.
    pub respond_async: bool,
}

impl Prefer {
    fn read(headers: &HeaderMap) -> Self {
        let values = headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split(','));
        // Parameters follow a semicolon; this preference has none.
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

    fn read(pairs: &[(&'static str, &str)]) -> Result<Option<String>, Code> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a header value"));
        }
        read_key(&headers).map(|key| key.map(str::to_owned)).map_err(|problem| problem.code())
    }

    #[test]
    fn either_header_is_accepted_and_both_if_equal() {
        assert_eq!(read(&[]), Ok(None));
        for name in NAMES {
            assert_eq!(read(&[(name, "k-1")]), Ok(Some("k-1".into())));
        }
        assert_eq!(read(&[(NAMES[0], "k"), (NAMES[1], "k")]), Ok(Some("k".into())));
    }

    #[test]
    fn two_different_keys_are_refused() {
        assert_eq!(read(&[(NAMES[0], "a"), (NAMES[1], "b")]), Err(Code::KeyMalformed));
        assert_eq!(read(&[(NAMES[0], "a"), (NAMES[0], "b")]), Err(Code::KeyMalformed));
    }

    #[test]
    fn an_invalid_key_is_refused() {
        for value in ["", "a b", "é", &"k".repeat(256)] {
            assert_eq!(read(&[(NAMES[1], value)]), Err(Code::KeyMalformed), "{value:?}");
        }
        assert_eq!(read(&[(NAMES[0], &"k".repeat(255))]), Ok(Some("k".repeat(255))));
    }

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

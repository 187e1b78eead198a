//! A fingerprint: the digest of a request's bytes and of its visitor.
//!
//! The digest of an intent is computed from the parsed body. A retry nearly always has the same bytes; the fingerprint is
//! the digest of these and of the visitor, so that one lookup matches visitor, key, method, path and body without parsing. A
//! retry with other bytes (another order of keys, other white space) has another fingerprint and is answered by a deeper
//! layer with the same answer.

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use super::read_key;
use crate::visitor::{self, Secret};

/// The digest of a request's bytes and of its visitor's secret.
#[derive(Clone, Copy)]
pub struct Fingerprint {
    pub(super) digest: [u8; 32],
    secret: Secret,
}

impl Fingerprint {
    /// The fingerprint of a request with a visitor cookie and a valid key; `None` for any other. `https` selects the name of
    /// the cookie.
    #[must_use]
    pub fn of(parts: &Parts, body: &[u8], https: bool) -> Option<Self> {
        let key = read_key(&parts.headers).ok()??;
        let secret = *visitor::plain_secret(&parts.headers, https)?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut hash = Sha256::new();
        hash.update(secret);
        for part in
            [parts.method.as_str(), path, key].map(str::as_bytes).into_iter().chain([media_type(&parts.headers)])
        {
            // Hashed with its length: ("ab", "c") differs from ("a", "bc").
            hash.update((part.len() as u32).to_le_bytes());
            hash.update(part);
        }
        hash.update(body);
        Some(Self { digest: hash.finalize().into(), secret })
    }

    /// True if the visitor of the request is this owner.
    pub(super) fn is_of(&self, owner: &str) -> bool {
        visitor::owner_of(&self.secret) == owner
    }
}

/// The content type, which decides whether a body is read at all.
fn media_type(headers: &HeaderMap) -> &[u8] {
    headers.get(header::CONTENT_TYPE).map_or(b"", |value| value.as_bytes())
}

impl std::fmt::Debug for Fingerprint {
    /// Formats without the secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Fingerprint").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    const ANN: &str = "rowlock_visitor=0123456789abcdef0123456789abcdef";
    const BOB: &str = "rowlock_visitor=fedcba9876543210fedcba9876543210";

    fn of(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<[u8; 32]> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        Fingerprint::of(&parts, body.as_bytes(), false).map(|fingerprint| fingerprint.digest)
    }

    #[test]
    fn requests_that_differ_in_any_part_have_different_fingerprints() {
        let usual = [("cookie", ANN), ("idempotency-key", "k"), ("content-type", "application/json")];
        let first = of("POST", "/api/v1/bookings", &usual, "{}").expect("one");
        assert_eq!(of("POST", "/api/v1/bookings", &usual, "{}"), Some(first), "a repeat");
        let alias = [("cookie", ANN), ("x-idempotency-key", "k"), ("content-type", "application/json")];
        assert_eq!(of("POST", "/api/v1/bookings", &alias, "{}"), Some(first), "the same key by its other name");
        let others = [
            of("PATCH", "/api/v1/bookings", &usual, "{}"),
            of("POST", "/api/v1/bookings?x=1", &usual, "{}"),
            of("POST", "/api/v1/bookings", &usual, "{ }"),
            of("POST", "/api/v1/bookings", &[("cookie", BOB), usual[1], usual[2]], "{}"),
            of("POST", "/api/v1/bookings", &[usual[0], ("idempotency-key", "k2"), usual[2]], "{}"),
            of("POST", "/api/v1/bookings", &[usual[0], usual[1]], "{}"),
            // The same letters, split elsewhere.
            of("POST", "/api/v1/booking", &[usual[0], ("idempotency-key", "sk"), usual[2]], "{}"),
        ];
        for other in others {
            assert!(other.is_some() && other != Some(first));
        }
    }

    #[test]
    fn a_request_without_cookie_or_key_has_no_fingerprint() {
        assert_eq!(of("POST", "/", &[("idempotency-key", "k")], ""), None);
        assert_eq!(of("POST", "/", &[("cookie", ANN)], ""), None);
        assert_eq!(of("POST", "/", &[("cookie", ANN), ("idempotency-key", "a b")], ""), None);
    }

    #[test]
    fn a_fingerprint_matches_its_owner_and_hides_the_secret() {
        let (parts, ()) = Request::builder()
            .header("cookie", ANN)
            .header("idempotency-key", "k")
            .body(())
            .expect("a request")
            .into_parts();
        let fingerprint = Fingerprint::of(&parts, b"", false).expect("one");
        assert!(fingerprint.is_of(&visitor::owner_of(b"0123456789abcdef0123456789abcdef")));
        assert!(!fingerprint.is_of(&visitor::owner_of(b"fedcba9876543210fedcba9876543210")));
        assert!(!format!("{fingerprint:?}").contains("0123"));
    }
}

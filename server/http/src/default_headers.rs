//! Headers of every answer: security, the store's time, the request's id.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use domain::api::SERVER_TIME_HEADER;
use platform::ids;

use crate::HttpState;
use crate::caching::PRIVATE;

/// Shorter answers fit one packet as they are.
pub const MIN_COMPRESSED_BYTES: u16 = 1_024;
/// Finds a request in the logs.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Allows scripts and styles from our own files, and compiling WebAssembly; nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
     img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Browsers use TLS alone for this host, for a year. Not for its subdomains: they may be other systems.
const STRICT_TRANSPORT_SECURITY: &str = "max-age=31536000";
/// The policy of answers that are no page: it allows nothing, and is short because most answers have it.
const NO_PAGE_SECURITY_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// Prefixes of the types that are no page. Not scripts, whose policy becomes that of a worker made of them, and not answers
/// without a type: a "not modified" would change the policy of a cached page.
const NO_PAGE_TYPES: [&str; 5] =
    ["text/css", "application/wasm", "application/json", "application/problem+json", "font/"];

/// The headers of all answers, and those of the API's.
pub fn write_default_headers(state: &HttpState, headers: &mut HeaderMap, is_api: bool) {
    if is_api {
        let fresh = *headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(PRIVATE)) == PRIVATE;
        // A cached answer would have the time at which it was cached.
        if fresh {
            headers.insert(HeaderName::from_static(SERVER_TIME_HEADER), HeaderValue::from(state.clock.now().0));
        }
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_no_page = NO_PAGE_TYPES.iter().any(|no_page| kind.starts_with(no_page));
    let policy = if is_no_page { NO_PAGE_SECURITY_POLICY } else { CONTENT_SECURITY_POLICY };
    if state.site.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT_TRANSPORT_SECURITY));
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A new id of a request: 128 random bits in hex.
pub fn new_request_id() -> Option<HeaderValue> {
    HeaderValue::try_from(hex::encode(ids::random_bits())).ok()
}

/// The name the caller gave the request, or a new one, on its answer.
pub fn write_request_id(asked: &HeaderMap, answer: &mut HeaderMap) {
    if let Some(id) = asked.get(REQUEST_ID).cloned().or_else(new_request_id) {
        answer.insert(REQUEST_ID, id);
    }
}

//! The cookie of a browser in which accounts with a proven address have signed in. Failed sign-ins from there have a limit of their own, so
//! strangers who use up an account's limit do not keep its owner out.
//!
//! The cookie holds one signature per account and stays after signing out. It gives no access: all browsers with it
//! share one limit per account, so a stolen cookie allows no more guesses than strangers have.

use axum::http::{HeaderMap, HeaderValue};

use super::person::normalise_address;
use http::cookies::cookie_value;
use platform::signed_token::Keys;

/// Derives the keys of these signatures, so that no other signature is valid here.
const PURPOSE: &[u8] = b"known browsers";
/// Name of the cookie without TLS.
const COOKIE: &str = "rowlock_known";
/// Name of the cookie with TLS: the `__Host-` prefix prevents other hosts from setting it (`http::visitor`).
const HOST_COOKIE: &str = "__Host-rowlock_known";
/// Lifetime of the cookie after the last sign-in: half a year, in seconds.
const COOKIE_LIFE_S: u32 = 180 * 24 * 3_600;
/// Maximum number of accounts per browser, the latest first: the staff of a counter share one.
const MAX_ACCOUNTS: usize = 8;
/// Length of a signature: 128 bits in hex.
const SIGNATURE_LENGTH: usize = 32;

/// Writes and reads the cookie.
pub(super) struct KnownBrowsers(Keys);

impl KnownBrowsers {
    pub(super) fn new(secrets: &[String]) -> Self {
        Self(Keys::derived(secrets, PURPOSE))
    }

    /// Returns true if the account with this address has signed in in this browser.
    pub(super) fn is_known(&self, headers: &HeaderMap, https: bool, email: &str) -> bool {
        let person = normalise_address(email);
        signatures(headers, https).take(MAX_ACCOUNTS).any(|signature| self.0.is_genuine(person.as_bytes(), signature))
    }

    /// Returns the `Set-Cookie` value after a sign-in with this address; other accounts of the browser are kept.
    pub(super) fn set_cookie(&self, headers: &HeaderMap, https: bool, email: &str) -> HeaderValue {
        let person = normalise_address(email);
        let own = self.0.sign(person.as_bytes());
        let others = signatures(headers, https).filter(|other| !self.0.is_genuine(person.as_bytes(), other));
        let all: Vec<&str> = std::iter::once(own.as_str()).chain(others).take(MAX_ACCOUNTS).collect();
        let (name, secure) = (cookie_name(https), if https { "; Secure" } else { "" });
        let all = all.join(".");
        let cookie = format!("{name}={all}; Path=/; Max-Age={COOKIE_LIFE_S}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(cookie).expect("a cookie of hex and dots is a valid header value")
    }
}

const fn cookie_name(https: bool) -> &'static str {
    if https { HOST_COOKIE } else { COOKIE }
}

/// The well-formed signatures in the cookie.
fn signatures(headers: &HeaderMap, https: bool) -> impl Iterator<Item = &str> {
    let parts = cookie_value(headers, cookie_name(https)).unwrap_or_default().split('.');
    parts.filter(|part| part.len() == SIGNATURE_LENGTH && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE as COOKIE_HEADER;

    use super::*;

    fn known_browsers(secret: &str) -> KnownBrowsers {
        KnownBrowsers::new(&[secret.to_owned()])
    }

    /// The headers of a browser that got this cookie.
    fn headers_with(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie.to_str().expect("text").split(';').next().expect("a pair");
        HeaderMap::from_iter([(COOKIE_HEADER, HeaderValue::try_from(pair).expect("a header value"))])
    }

    #[test]
    fn a_browser_is_known_to_the_accounts_that_signed_in_there() {
        let (ours, nowhere) = (known_browsers("one"), HeaderMap::new());
        let of_ann = headers_with(&ours.set_cookie(&nowhere, false, " Ann@Example.org"));
        assert!(ours.is_known(&of_ann, false, "ann@example.org"));
        assert!(!ours.is_known(&of_ann, false, "ben@example.org"), "another account");
        assert!(!ours.is_known(&nowhere, false, "ann@example.org"), "another browser");
        assert!(!known_browsers("two").is_known(&of_ann, false, "ann@example.org"), "another secret");
        let of_both = headers_with(&ours.set_cookie(&of_ann, false, "ben@example.org"));
        for email in ["ann@example.org", "ben@example.org"] {
            assert!(ours.is_known(&of_both, false, email), "{email}");
        }
    }

    #[test]
    fn the_cookie_keeps_the_last_eight_accounts() {
        let (ours, mut headers) = (known_browsers("one"), HeaderMap::new());
        let email = |number: usize| format!("{number}@example.org");
        for number in (0..=MAX_ACCOUNTS).chain([1]) {
            headers = headers_with(&ours.set_cookie(&headers, false, &email(number)));
        }
        assert!(!ours.is_known(&headers, false, &email(0)), "the ninth account replaced the first");
        for number in 1..=MAX_ACCOUNTS {
            assert!(ours.is_known(&headers, false, &email(number)), "{number}");
        }
    }

    #[test]
    fn the_cookie_is_host_only_and_repeats_nothing_odd() {
        let ours = known_browsers("one");
        let cookie = ours.set_cookie(&HeaderMap::new(), true, "ann@example.org");
        let text = cookie.to_str().expect("text");
        assert!(text.starts_with("__Host-rowlock_known=") && text.contains("; Path=/; "), "{text}");
        assert!(text.ends_with("; HttpOnly; SameSite=Lax; Secure") && !text.contains("Domain"), "{text}");
        let odd = HeaderValue::from_static("__Host-rowlock_known=<script>.0a.;x");
        let after = ours.set_cookie(&HeaderMap::from_iter([(COOKIE_HEADER, odd)]), true, "ann@example.org");
        assert_eq!(after, cookie);
    }
}

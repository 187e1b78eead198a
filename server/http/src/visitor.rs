//! The visitor's cookie: 128 random bits, of which the stores know a hash.

use axum::http::header::COOKIE as COOKIE_HEADER;
use axum::http::{HeaderMap, HeaderValue};
use platform::ids;
use sha2::{Digest, Sha256};

use super::cookies::cookie_value;

/// Name of the cookie where there is no TLS.
const COOKIE: &str = "rowlock_visitor";
/// Its name where there is. Browsers accept a name with this prefix only from this host, over TLS and for all paths: neither
/// a subdomain nor a machine on the way can set it.
const HOST_COOKIE: &str = "__Host-rowlock_visitor";
/// Lifetime of the cookie: half a year, in seconds.
const COOKIE_LIFE_S: u32 = 180 * 24 * 3600;
/// Length of the cookie's value: 128 bits in hex.
const COOKIE_LENGTH: usize = 32;
/// Length of an owner: 128 bits in hex.
const OWNER_LENGTH: usize = 32;

/// The value of the cookie.
pub type Secret = [u8; COOKIE_LENGTH];

/// Whose holds and bookings a cookie opens: a hash of it.
#[must_use]
pub fn owner_of(secret: &Secret) -> String {
    let mut owner = hex::encode(Sha256::digest(secret));
    owner.truncate(OWNER_LENGTH);
    owner
}

/// The name of the cookie.
#[must_use]
pub const fn cookie_name(https: bool) -> &'static str {
    if https { HOST_COOKIE } else { COOKIE }
}

/// The cookie, if it is well-formed and occurs once. Faster than reading all cookies; one that occurs twice is left to
/// `cookie_value`.
#[must_use]
pub fn plain_secret(headers: &HeaderMap, https: bool) -> Option<&Secret> {
    let name = cookie_name(https).as_bytes();
    let mut cookies = headers
        .get_all(COOKIE_HEADER)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .filter_map(|cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="));
    let secret: &Secret = cookies.next()?.try_into().ok()?;
    (cookies.next().is_none() && secret.iter().all(u8::is_ascii_hexdigit)).then_some(secret)
}

/// The `Set-Cookie` value that makes a browser be this visitor.
#[must_use]
pub fn set_cookie(secret: &Secret, https: bool) -> Option<HeaderValue> {
    let (name, secure) = (cookie_name(https), if https { "; Secure" } else { "" });
    let value = String::from_utf8_lossy(secret);
    let cookie = format!("{name}={value}; Path=/; Max-Age={COOKIE_LIFE_S}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(cookie).ok()
}

/// The secret in a request's cookies; `None` if there is no usable one.
#[must_use]
pub fn secret_of(headers: &HeaderMap, https: bool) -> Option<Secret> {
    if let Some(secret) = plain_secret(headers, https) {
        return Some(*secret);
    }
    let secret = cookie_value(headers, cookie_name(https)).and_then(|value| <Secret>::try_from(value.as_bytes()).ok());
    secret.filter(|secret| secret.iter().all(u8::is_ascii_hexdigit))
}

/// 128 random bits in hex.
#[must_use]
pub fn new_secret() -> Secret {
    let mut secret = [0; COOKIE_LENGTH];
    for (pair, byte) in secret.chunks_exact_mut(2).zip(ids::random_bits()) {
        pair.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    secret
}

/// Digits of a secret.
const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn read(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(COOKIE_HEADER, value.parse().expect("a header value"));
        }
        plain_secret(&headers, false).map(|secret| String::from_utf8_lossy(secret).into_owned())
    }

    #[test]
    fn a_single_cookie_is_found_among_others() {
        for value in ["rowlock_visitor=@", "a=1; rowlock_visitor=@", "rowlock_visitor=@;b=rowlock_visitor"] {
            assert_eq!(read(&[&value.replace('@', SECRET)]), Some(SECRET.into()), "{value}");
        }
        assert_eq!(read(&["a=1", &format!("rowlock_visitor={SECRET}")]), Some(SECRET.into()));
    }

    #[test]
    fn over_tls_the_cookie_has_the_host_prefix() {
        let set = set_cookie(&new_secret(), true).expect("a header value");
        let set = set.to_str().expect("text");
        assert!(set.starts_with("__Host-rowlock_visitor=") && set.contains("; Path=/;"), "{set}");
        assert!(set.ends_with("; Secure") && !set.contains("Domain"), "{set}");
        let mut headers = HeaderMap::new();
        headers.append(COOKIE_HEADER, format!("rowlock_visitor={SECRET}").parse().expect("a header value"));
        assert!(plain_secret(&headers, true).is_none(), "another host may have set it");
        headers.append(COOKIE_HEADER, format!("__Host-rowlock_visitor={SECRET}").parse().expect("a header value"));
        assert_eq!(plain_secret(&headers, true).map(|secret| &secret[..]), Some(SECRET.as_bytes()));
    }

    #[test]
    fn duplicate_or_odd_cookies_are_left_to_the_parser() {
        let ours = format!("rowlock_visitor={SECRET}");
        assert_eq!(read(&[&format!("{ours}; {ours}")]), None);
        assert_eq!(read(&[&ours, &ours]), None);
        for value in [
            "",
            "rowlock_visitor=",
            "xrowlock_visitor=@",
            "rowlock_visitor2=@",
            "rowlock_visitor=\"@\"",
            "rowlock_visitor=@0",
        ] {
            assert_eq!(read(&[&value.replace('@', SECRET)]), None, "{value}");
        }
        assert_eq!(read(&[&ours.replace('f', "g")]), None);
    }

    #[test]
    fn secrets_are_random_and_parse_back() {
        let (one, other) = (new_secret(), new_secret());
        assert_ne!(one, other);
        assert!(one.iter().all(u8::is_ascii_hexdigit));
        assert_eq!(owner_of(&one).len(), OWNER_LENGTH);
    }
}

//! Who is asking: an opaque cookie, signed in or not.

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponseParts, ResponseParts};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::Cookie;
use sha2::{Digest, Sha256};

use crate::{AppState, ids};

/// Name of the cookie.
pub const COOKIE: &str = "rowlock_visitor";
/// How long a browser keeps it: half a year, in seconds.
const COOKIE_LIFE_S: u32 = 180 * 24 * 3600;
/// Length of the cookie's value: 128 bits in hex.
const COOKIE_LENGTH: usize = 32;
/// Length of an owner: 128 bits in hex.
const OWNER_LENGTH: usize = 32;

/// The caller. A handler takes it as an argument and returns it in front of the body: that sets the
/// cookie when it is new. Pages a CDN may keep do not ask for it.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Owner of holds and bookings: a hash of the cookie, so that what the stores hold opens nothing.
    pub owner: String,
    set_cookie: Option<HeaderValue>,
}

impl Visitor {
    fn known(secret: &str) -> Self {
        let mut owner = hex::encode(Sha256::digest(secret.as_bytes()));
        owner.truncate(OWNER_LENGTH);
        Self { owner, set_cookie: None }
    }

    fn new(secret: &str, https: bool) -> Self {
        let secure = if https { "; Secure" } else { "" };
        let cookie = format!("{COOKIE}={secret}; Path=/; Max-Age={COOKIE_LIFE_S}; HttpOnly; SameSite=Lax{secure}");
        Self { set_cookie: HeaderValue::try_from(cookie).ok(), ..Self::known(secret) }
    }
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Self::Rejection> {
        let jar = CookieJar::from_headers(&parts.headers);
        let usable = |secret: &&str| secret.len() == COOKIE_LENGTH && secret.bytes().all(|b| b.is_ascii_hexdigit());
        Ok(match jar.get(COOKIE).map(Cookie::value).filter(usable) {
            Some(secret) => Self::known(secret),
            None => Self::new(&hex::encode(ids::random_bits()), state.config.is_https()),
        })
    }
}

impl IntoResponseParts for Visitor {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Self::Error> {
        if let Some(cookie) = self.set_cookie {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        Ok(response)
    }
}

//! The caller of a request: a guest with an opaque cookie, or a signed-in account.
//!
//! A sign-in hands the visitor over to the session (`accounts`), and the browser gets a new, empty visitor for the time
//! after the session. The next user of the browser therefore finds nothing. The old guest cookie gives no access to the
//! visitor's bookings or waiting-list places any more. A copy of it can still hold seats as that visitor, because
//! requests for seats check only the owner of a hold (decision 31).

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderValue;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponseParts, ResponseParts};
use uuid::Uuid;

use crate::{IdentityState, accounts};
use http::visitor::{Secret, new_secret, owner_of, secret_of, set_cookie};
use http::{ApiResult, Problem};

/// The caller. A handler takes it as an argument and returns it before the body, which sets a new cookie. Pages that a
/// CDN may cache do not use it.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Owner of holds and bookings: a hash of the cookie, so that stored values give no access.
    pub owner: String,
    /// The account of the session.
    pub account: Option<Uuid>,
    set_cookie: Option<HeaderValue>,
}

impl Visitor {
    fn known(secret: &Secret) -> Self {
        Self { owner: owner_of(secret), account: None, set_cookie: None }
    }

    /// Creates a new visitor with its cookie.
    #[must_use]
    pub fn new_guest(https: bool) -> Self {
        let secret = new_secret();
        Self { set_cookie: set_cookie(&secret, https), ..Self::known(&secret) }
    }
}

impl<S> FromRequestParts<S> for Visitor
where
    S: Send + Sync,
    IdentityState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let state = IdentityState::from_ref(state);
        if let Some(session) = accounts::of_request(&state, &parts.headers).await? {
            return Ok(Self { owner: session.owner, account: Some(session.account), set_cookie: None });
        }
        let https = state.site.is_https();
        Ok(secret_of(&parts.headers, https).map_or_else(|| Self::new_guest(https), |secret| Self::known(&secret)))
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

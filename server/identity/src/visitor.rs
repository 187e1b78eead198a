//! Who is asking: an opaque cookie, or somebody who is signed in.
//!
//! Who signs in hands their visitor over to the session (`accounts`), and the browser has a new, empty visitor for when
//! the session is over. So whoever uses the browser next finds nothing. The cookie from before opens none of the
//! visitor's bookings and no place in a waiting list any more; whoever kept a copy of it still holds seats as that visitor:
//! the way to seats asks only whose a hold is (decision 31).

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderValue;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponseParts, ResponseParts};
use http::Problem;
use http::visitor::{Secret, new_secret, owner_of, secret_of, set_cookie};
use uuid::Uuid;

use crate::{IdentityState, accounts};

/// The caller. A handler takes it as an argument and returns it in front of the body: that sets the
/// cookie when it is new. Pages a CDN may keep do not ask for it.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Owner of holds and bookings: a hash of the cookie, so that what the stores hold opens nothing.
    pub owner: String,
    /// The account they are signed in to.
    pub account: Option<Uuid>,
    set_cookie: Option<HeaderValue>,
}

impl Visitor {
    fn known(secret: &Secret) -> Self {
        Self { owner: owner_of(secret), account: None, set_cookie: None }
    }

    /// A new visitor, with the cookie that makes a browser be it.
    #[must_use]
    pub fn unseen(https: bool) -> Self {
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

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let state = IdentityState::from_ref(state);
        if let Some(session) = accounts::of_request(&state, &parts.headers).await? {
            return Ok(Self { owner: session.owner, account: Some(session.account), set_cookie: None });
        }
        let https = state.site.is_https();
        Ok(secret_of(&parts.headers, https).map_or_else(|| Self::unseen(https), |secret| Self::known(&secret)))
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

//! An answer that can be replayed byte for byte.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::time::Timestamp;
use serde::Serialize;

use crate::caching::PRIVATE;
use crate::{ApiResult, Problem};

/// Status and body; the headers follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    /// Expiry in the store; `None` for a new answer.
    pub(super) kept_until: Option<Timestamp>,
}

impl Answer {
    /// An answer with `body` as JSON.
    ///
    /// # Errors
    /// When it cannot be serialised: a bug.
    pub fn json(status: StatusCode, body: &impl Serialize) -> ApiResult<Self> {
        let body = serde_json::to_vec(body).map_err(|cause| Problem::internal(&cause))?;
        Ok(Self { status, body: body.into(), kept_until: None })
    }

    /// A 204 answer without a body.
    #[must_use]
    pub const fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Bytes::new(), kept_until: None }
    }

    /// An answer that was read from a store.
    ///
    /// # Errors
    /// When `status` is invalid: the row or entry is corrupt.
    pub(super) fn stored(status: u16, body: Bytes, kept_until: Timestamp) -> ApiResult<Self> {
        let status = StatusCode::from_u16(status).map_err(|cause| Problem::internal(&cause))?;
        Ok(Self { status, body, kept_until: Some(kept_until) })
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The body; clones share the bytes.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Writes the content type and the cache rule of the answer.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        if self.status != StatusCode::NO_CONTENT {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE));
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        self.write_headers(response.headers_mut());
        *response.body_mut() = Body::from(self.body);
        response
    }
}

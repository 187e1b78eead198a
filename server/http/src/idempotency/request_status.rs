//! The state of a request whose caller did not wait for it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::intent::id_of;
use super::shared::{KeyReply, KeyState};
use super::{key, sql};
use crate::problem::ApiResult;
use crate::{HttpState, Problem};

/// Suggested polling delay, seconds.
const POLL_AFTER_S: u64 = 1;

/// A request that was accepted and is not done yet.
#[derive(Serialize, ToSchema)]
pub struct RequestView {
    /// Its key.
    key: String,
    /// `RUNNING`.
    state: &'static str,
}

/// The state of a request with a key.
pub enum RequestStatus {
    /// The request has no answer yet.
    Running,
    /// The request has this answer.
    Answered(Response),
    /// No such request is known.
    Unknown,
}

/// Finds the state of a request of `owner`, in memory, then in Redis, then in Postgres.
///
/// # Errors
/// When Postgres does not answer.
pub async fn request_status(state: &HttpState, owner: &str, key: &str) -> ApiResult<RequestStatus> {
    let (keys, now) = (&state.idempotency, state.clock.now());
    let id = id_of(None, owner, key);
    if let Some(kept) = keys.cache.find(&id, now) {
        return Ok(RequestStatus::Answered(kept.answer.clone().into_response()));
    }
    if keys.flights.contains(&id) {
        return Ok(RequestStatus::Running);
    }
    let shared = match keys.shared.read(state, owner, key).await {
        KeyReply::Exists(entry) => Some(entry.state),
        KeyReply::Done | KeyReply::Absent | KeyReply::Unavailable => None,
    };
    let is_pending = match shared {
        Some(KeyState::Completed(answer)) => return Ok(RequestStatus::Answered(answer.into_response())),
        Some(KeyState::Failed(status, body)) => return failed(status, body).map(RequestStatus::Answered),
        Some(KeyState::Pending(claim)) => keys.shared.is_alive(state, claim).await,
        None => false,
    };
    let mut connection = state.pg.acquire().await?;
    Ok(match sql::find(&mut connection, owner, key, now).await? {
        Some(row) => {
            row.answer()?.map_or(RequestStatus::Running, |answer| RequestStatus::Answered(answer.into_response()))
        }
        None if is_pending => RequestStatus::Running,
        None => RequestStatus::Unknown,
    })
}

/// A 202 response with the address to poll.
pub(super) fn accepted_response(key: &str) -> Response {
    let mut response = running_response(key);
    let headers = response.headers_mut();
    headers.insert(key::APPLIED, HeaderValue::from_static(key::RESPOND_ASYNC));
    if let Ok(location) = HeaderValue::try_from(format!("/api/v1/requests/{}", percent_encoded(key))) {
        headers.insert(header::LOCATION, location);
    }
    response
}

/// A 202 response that asks the caller to poll again.
#[must_use]
pub fn running_response(key: &str) -> Response {
    let body = axum::Json(RequestView { key: key.to_owned(), state: "RUNNING" });
    let mut response = (StatusCode::ACCEPTED, body).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(POLL_AFTER_S));
    response
}

/// The response of a failed request: its stored problem.
fn failed(status: u16, body: bytes::Bytes) -> ApiResult<Response> {
    let status = StatusCode::from_u16(status).map_err(|cause| Problem::internal(&cause))?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))];
    Ok((status, kind, body).into_response())
}

/// Encodes a key as one path segment: every character that is not unreserved (RFC 3986, section 2.3) in hex.
fn percent_encoded(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push_str(&hex::encode_upper([byte]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_path_segment_whatever_its_characters() {
        assert_eq!(percent_encoded("0f8f-A_b.c~"), "0f8f-A_b.c~");
        assert_eq!(percent_encoded("a/b?c#d%e"), "a%2Fb%3Fc%23d%25e");
        assert_eq!(accepted_response("a/b").headers()[header::LOCATION], "/api/v1/requests/a%2Fb");
    }
}

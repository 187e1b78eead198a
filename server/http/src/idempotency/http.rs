//! How a request stands whose caller did not wait for it.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::intent::id_of;
use super::shared::{Said, State as EntryState};
use super::{prefer, sql};
use crate::web::problem::ApiResult;
use crate::web::{ApiPath, Problem, Visitor};
use crate::{AppState, accounts};

/// When it is worth asking how a request stands, seconds.
const ASK_AFTER_S: u64 = 1;

/// The routes of requests, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(standing))
}

/// A request that was accepted and is not done yet.
#[derive(Serialize, ToSchema)]
struct RequestView {
    /// Its key.
    key: String,
    /// `RUNNING`.
    state: &'static str,
}

/// How your request stands: 202 while it is running, then its own answer.
#[utoipa::path(get, path = "/requests/{key}", tag = "requests",
    params(("key" = String, Path, description = "The Idempotency-Key it was sent with, percent-encoded")),
    responses((status = 200, description = "Its answer"), (status = 201, description = "Its answer"),
        (status = 202, description = "Still running: a `RequestView`, ask again after Retry-After; or an answer that had this status",
            body = serde_json::Value),
        (status = 204, description = "Its answer"),
        (status = 404, body = ProblemView, description = "Not known, or not yours: send the request again with the same key")))]
async fn standing(
    State(state): State<AppState>,
    visitor: Visitor,
    ApiPath(key): ApiPath<String>,
) -> ApiResult<Response> {
    match look(&state, &visitor, &key).await? {
        Stands::Running => Ok(running(&key)),
        Stands::Answered(answer) => {
            // What was answered to an account is told to a session of it.
            let is_theirs = accounts::is_own_visitor(&state, &visitor).await?;
            if is_theirs { Ok(answer) } else { Err(Problem::not_found("request")) }
        }
        Stands::Unknown => Err(Problem::not_found("request")),
    }
}

/// How a request stands.
enum Stands {
    Running,
    Answered(Response),
    Unknown,
}

async fn look(state: &AppState, visitor: &Visitor, key: &str) -> ApiResult<Stands> {
    let (keys, now) = (&state.idempotency, state.locks.now());
    let id = id_of(None, &visitor.owner, key);
    if let Some(kept) = keys.cache.find(&id, now) {
        return Ok(Stands::Answered(kept.answer.clone().into_response()));
    }
    if keys.flights.contains(&id) {
        return Ok(Stands::Running);
    }
    let shared = match keys.shared.read(state, &visitor.owner, key).await {
        Said::Stands(entry) => Some(entry.state),
        Said::Done | Said::Nothing | Said::Away => None,
    };
    let is_pending = match shared {
        Some(EntryState::Completed(answer)) => return Ok(Stands::Answered(answer.into_response())),
        Some(EntryState::Failed(status, body)) => return failed(status, body).map(Stands::Answered),
        Some(EntryState::Pending(claim)) => keys.shared.is_alive(state, claim).await,
        None => false,
    };
    let mut connection = state.pg.acquire().await?;
    Ok(match sql::find(&mut connection, &visitor.owner, key, now).await? {
        Some(row) => row.answer()?.map_or(Stands::Running, |answer| Stands::Answered(answer.into_response())),
        None if is_pending => Stands::Running,
        None => Stands::Unknown,
    })
}

/// 202, and where to ask.
pub(super) fn accepted(key: &str) -> Response {
    let mut response = running(key);
    let headers = response.headers_mut();
    headers.insert(prefer::APPLIED, HeaderValue::from_static(prefer::RESPOND_ASYNC));
    if let Ok(location) = HeaderValue::try_from(format!("/api/v1/requests/{}", percent_encoded(key))) {
        headers.insert(header::LOCATION, location);
    }
    response
}

fn running(key: &str) -> Response {
    let body = axum::Json(RequestView { key: key.to_owned(), state: "RUNNING" });
    let mut response = (StatusCode::ACCEPTED, body).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(ASK_AFTER_S));
    response
}

/// The problem it ended with, as it would have been told.
fn failed(status: u16, body: bytes::Bytes) -> ApiResult<Response> {
    let status = StatusCode::from_u16(status).map_err(|cause| Problem::internal(&cause))?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))];
    Ok((status, kind, body).into_response())
}

/// A key as one segment of a path: whatever is not unreserved (RFC 3986, 2.3) in hex.
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
    fn a_key_is_one_segment_whatever_is_in_it() {
        assert_eq!(percent_encoded("0f8f-A_b.c~"), "0f8f-A_b.c~");
        assert_eq!(percent_encoded("a/b?c#d%e"), "a%2Fb%3Fc%23d%25e");
        assert_eq!(accepted("a/b").headers()[header::LOCATION], "/api/v1/requests/a%2Fb");
    }
}

//! The state of a request whose caller did not wait.

use axum::extract::State;
use axum::response::Response;
use domain::api::ProblemView;
use http::idempotency::{RequestStatus, request_status, running_response};
use http::problem::ApiResult;
use http::{ApiPath, Problem};
use identity::{Visitor, accounts};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;

/// The routes of requests, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(request))
}

/// The state of your request: 202 while it is running, then its own answer.
///
/// The state of your request with that key (check out, pay; percent-encoded): 202 with `Retry-After` while it runs,
/// then its response with its status. A failure is kept for five minutes. 404: unknown; send the request again with
/// the same key.
#[utoipa::path(get, path = "/requests/{key}", tag = "requests",
    params(("key" = String, Path, description = "The Idempotency-Key it was sent with, percent-encoded")),
    responses((status = 200, description = "Its answer"), (status = 201, description = "Its answer"),
        (status = 202, description = "Still running: a `RequestView`, ask again after Retry-After; or an answer that had this status",
            body = serde_json::Value),
        (status = 204, description = "Its answer"),
        (status = 404, body = ProblemView, description = "Not known, or not yours: send the request again with the same key")))]
async fn request(
    State(state): State<AppState>,
    visitor: Visitor,
    ApiPath(key): ApiPath<String>,
) -> ApiResult<Response> {
    match request_status(&state, &visitor.owner, &key).await? {
        RequestStatus::Running => Ok(running_response(&key)),
        RequestStatus::Answered(answer) => {
            // An answer to an account is returned to its sessions.
            let is_theirs = accounts::is_own_visitor(&state, &visitor).await?;
            if is_theirs { Ok(answer) } else { Err(Problem::not_found("request")) }
        }
        RequestStatus::Unknown => Err(Problem::not_found("request")),
    }
}

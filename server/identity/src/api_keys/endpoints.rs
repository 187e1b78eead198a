//! Endpoints of API keys.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::systems::{ApiKeyMade, ApiKeyRequest, ApiKeyView, ReasonRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::keys;
use crate::IdentityState;
use crate::accounts::{Managers, StaffMutation, StaffRequest};
use http::idempotency::Answer;
use http::problem::ApiResult;

#[derive(Deserialize)]
struct KeyPath {
    api_key: Uuid,
}

/// The routes of keys, under `/api/v1`.
pub fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(revoke))
}

/// The API keys of your theatre, revoked ones last.
#[utoipa::path(get, path = "/theatres/{theatre}/api-keys", tag = "systems",
    responses((status = 200, body = Vec<ApiKeyView>)))]
async fn list(State(state): State<IdentityState>, from: StaffRequest<Managers>) -> ApiResult<Json<Vec<ApiKeyView>>> {
    keys::list(&state, &from.theatre).await.map(Json)
}

/// Create a key. It is in this answer, and never shown again.
///
/// Create a key, `{"name": …, "reads_people": false, "reason": …}`: only this response contains `key`.
#[utoipa::path(post, path = "/theatres/{theatre}/api-keys", tag = "systems", request_body = ApiKeyRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = ApiKeyMade),
        (status = 409, body = ProblemView, description = "wrong_state: too many keys; still_running")))]
async fn make(
    State(state): State<IdentityState>,
    mutation: StaffMutation<Managers, (), ApiKeyRequest>,
) -> ApiResult<Answer> {
    keys::make(&state, &mutation.from.staff, &mutation.from.theatre, &mutation.body, &mutation.intent).await
}

/// Revoke a key: it gives no access from now on.
///
/// Revoke a key, `{"reason": …}`: it gives no access from now on.
#[utoipa::path(post, path = "/theatres/{theatre}/api-keys/{api_key}/revoke", tag = "systems",
    request_body = ReasonRequest, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "No such key; also for another theatre's staff")))]
async fn revoke(
    State(state): State<IdentityState>,
    mutation: StaffMutation<Managers, KeyPath, ReasonRequest>,
) -> ApiResult<Answer> {
    keys::revoke(&state, &mutation.action(&mutation.body.reason), mutation.from.path.api_key).await
}

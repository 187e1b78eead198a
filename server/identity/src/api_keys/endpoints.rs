//! Endpoints of API keys.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::systems::{ApiKeyMade, ApiKeyRequest, ApiKeyView, ReasonRequest};
use domain::roles::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::keys;
use crate::IdentityState;
use crate::accounts::{Staff, StaffAction};
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath};

/// The routes of keys, under `/api/v1`.
pub fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(revoke))
}

/// The API keys of your theatre, revoked ones last.
#[utoipa::path(get, path = "/theatres/{theatre}/api-keys", tag = "systems", params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<ApiKeyView>), NotStaff, OtherTheatre))]
async fn list(
    State(state): State<IdentityState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<ApiKeyView>>> {
    staff.at(&theatre, &[Role::Manager])?;
    keys::list(&state, &theatre).await.map(Json)
}

/// Create a key. It is in this answer, and never shown again.
///
/// Create a key, `{"name": …, "reads_people": false, "reason": …}`: only this response contains `key`.
#[utoipa::path(post, path = "/theatres/{theatre}/api-keys", tag = "systems", request_body = ApiKeyRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = ApiKeyMade), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "wrong_state: too many keys; still_running")))]
async fn make(
    State(state): State<IdentityState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ApiKeyRequest>,
) -> ApiResult<Answer> {
    staff.at(&theatre, &[Role::Manager])?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/api-keys"), &request);
    keys::make(&state, &staff, &theatre, &request, &intent).await
}

/// Revoke a key: it gives no access from now on.
///
/// Revoke a key, `{"reason": …}`: it gives no access from now on.
#[utoipa::path(post, path = "/theatres/{theatre}/api-keys/{api_key}/revoke", tag = "systems", request_body = ReasonRequest,
    params(("theatre" = String, Path), ("api_key" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such key; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn revoke(
    State(state): State<IdentityState>,
    staff: Staff,
    ApiPath((theatre, id)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ReasonRequest>,
) -> ApiResult<Answer> {
    staff.at(&theatre, &[Role::Manager])?;
    let path = format!("POST /theatres/{theatre}/api-keys/{id}/revoke");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = StaffAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    keys::revoke(&state, &action, id).await
}

//! Endpoints of flags of unusual behaviour.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::fairness::UnusualView;
use domain::api::systems::ReasonRequest;
use domain::roles::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::flags;
use crate::AdmissionState;
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath};
use identity::accounts::Staff;

/// The routes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AdmissionState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(dismiss))
}

/// List unusual behaviour in attempts at seats of your theatre. A flag refuses nothing.
#[utoipa::path(get, path = "/theatres/{theatre}/unusual", tag = "fairness", params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<UnusualView>), NotStaff, OtherTheatre))]
async fn list(
    State(state): State<AdmissionState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<UnusualView>>> {
    staff.at(&theatre, &[Role::Manager])?;
    flags::list(&state, &theatre).await.map(Json)
}

/// Dismiss a flag: you know its cause, or have seen enough of it.
///
/// Dismiss an entry, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/unusual/{flag}/dismiss", tag = "fairness", request_body = ReasonRequest,
    params(("theatre" = String, Path), ("flag" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such flag; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn dismiss(
    State(state): State<AdmissionState>,
    staff: Staff,
    ApiPath((theatre, id)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ReasonRequest>,
) -> ApiResult<Answer> {
    staff.at(&theatre, &[Role::Manager])?;
    let path = format!("POST /theatres/{theatre}/unusual/{id}/dismiss");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    flags::dismiss(&state, &staff, (&theatre, id), &request, &intent).await
}

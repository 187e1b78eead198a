//! Endpoints for the staff and the audit list of a theatre.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::accounts::{AuditQuery, AuditView, GrantRequest, StaffView};
use domain::roles::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::accounts::{Staff, grants};
use crate::{IdentityState, audit};
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath, ApiQuery};

pub(super) fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new().routes(routes!(list, change)).routes(routes!(acts))
}

/// The staff of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/staff", tag = "staff", params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<StaffView>), NotStaff, OtherTheatre))]
async fn list(
    State(state): State<IdentityState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<StaffView>>> {
    staff.at(&theatre, &[Role::Manager])?;
    grants::list(&state, &theatre).await.map(Json)
}

/// Give or take a role in your theatre. The account's sessions end.
///
/// Grant or revoke a role: `{"email": …, "role": "box_office", "granted": true, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/staff", tag = "staff", request_body = GrantRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 404, body = ProblemView, description = "No such account; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "last_manager, email_unproven, still_running"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
async fn change(
    State(state): State<IdentityState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<GrantRequest>,
) -> ApiResult<Answer> {
    staff.at(&theatre, &[Role::Manager])?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/staff"), &request);
    grants::change(&state, &staff, &theatre, &request, &intent).await
}

/// The audit list of your theatre, the newest entries first.
///
/// The audit log of your theatre: actor, action, time, reason; `?before=` a number.
#[utoipa::path(get, path = "/theatres/{theatre}/audit", tag = "staff",
    params(("theatre" = String, Path), AuditQuery),
    responses((status = 200, body = Vec<AuditView>), NotStaff, OtherTheatre))]
async fn acts(
    State(state): State<IdentityState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<AuditQuery>,
) -> ApiResult<Json<Vec<AuditView>>> {
    staff.at(&theatre, &[Role::Manager])?;
    Ok(Json(audit::of_theatre(&state.pg, &theatre, query.before).await?))
}

//! Theatres.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::theatres::{ManagedTheatre, TheatreChange, TheatreRequest};
use domain::roles::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::BackofficeState;
use crate::organiser::{OrganiserAction, theatres};
use http::idempotency::{IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath};
use identity::accounts::Staff;

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(one, change))
}

/// Create a theatre, in a known city or a new one. You become its manager.
///
/// Add a theatre, in an existing `city` or a `new_city`.
#[utoipa::path(post, path = "/theatres", tag = "organiser", request_body = TheatreRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = ManagedTheatre), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such city"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn create(
    State(state): State<BackofficeState>,
    staff: Staff,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<TheatreRequest>,
) -> ApiResult<Response> {
    let intent = Intent::new(&staff.session.owner, key, "POST /theatres", &request);
    Ok(theatres::create(&state, &staff, &intent, &request).await?.into_response())
}

/// The details of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}", tag = "organiser", params(("theatre" = String, Path)),
    responses((status = 200, body = ManagedTheatre), NotStaff, OtherTheatre))]
async fn one(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<ManagedTheatre>> {
    staff.at(&theatre, &[Role::Manager])?;
    theatres::one(&state, &theatre).await.map(Json)
}

/// Change the details of your theatre. The currency can change only before anything is planned or sold.
///
/// Change the name, the address, and while nothing is planned or sold the currency of a theatre.
#[utoipa::path(post, path = "/theatres/{theatre}", tag = "organiser", request_body = TheatreChange,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ManagedTheatre), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn change(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<TheatreChange>,
) -> ApiResult<Response> {
    staff.at(&theatre, &[Role::Manager])?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}"), &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(theatres::change(&state, &action, &request).await?.into_response())
}

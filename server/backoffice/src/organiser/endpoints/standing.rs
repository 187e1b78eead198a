//! Standing house seats: seats that the house keeps in every show planned on a screen.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::organiser::{ScreenHouseSeats, ScreenHouseSeatsRequest};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::BackofficeState;
use crate::organiser::{OrganiserAction, ROLES, standing};
use http::idempotency::{IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff};
use http::{ApiJson, ApiPath};
use identity::accounts::Staff;

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new().routes(routes!(list, keep))
}

/// Seats the house keeps in every show planned on this screen.
#[utoipa::path(get, path = "/theatres/{theatre}/screens/{screen}/house-seats", tag = "organiser",
    params(("theatre" = String, Path), ("screen" = String, Path)),
    responses((status = 200, body = ScreenHouseSeats), NotStaff,
        (status = 404, body = ProblemView, description = "No such screen; also for another theatre's staff")))]
async fn list(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, screen)): ApiPath<(String, String)>,
) -> ApiResult<Json<ScreenHouseSeats>> {
    staff.at(&theatre, ROLES)?;
    standing::list(&state, &theatre, &screen).await.map(Json)
}

/// Keep seats for the house in every show planned on this screen from now on, or put them back.
///
/// Block or unblock seats in shows planned from now on, `{"layout": …, "seats": ["A1"], "kept": true, "reason":
/// "Press"}`.
#[utoipa::path(post, path = "/theatres/{theatre}/screens/{screen}/house-seats", tag = "organiser", request_body = ScreenHouseSeatsRequest,
    params(("theatre" = String, Path), ("screen" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ScreenHouseSeats), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "No such screen or room; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn keep(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, screen)): ApiPath<(String, String)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ScreenHouseSeatsRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let path = format!("POST /theatres/{theatre}/screens/{screen}/house-seats");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(standing::keep(&state, &action, &screen, &request).await?.into_response())
}

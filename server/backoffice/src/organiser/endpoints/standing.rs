//! Standing house seats: seats that the house keeps in every show planned on a screen.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::organiser::{ScreenHouseSeats, ScreenHouseSeatsRequest};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ScreenPath;
use crate::BackofficeState;
use crate::organiser::standing;
use crate::staff_request::{Organisers, StaffMutation, StaffRequest};
use http::idempotency::Answer;
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff};

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
    from: StaffRequest<Organisers, ScreenPath>,
) -> ApiResult<Json<ScreenHouseSeats>> {
    standing::list(&state, &from.theatre, &from.path.screen).await.map(Json)
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
    mutation: StaffMutation<Organisers, ScreenPath, ScreenHouseSeatsRequest>,
) -> ApiResult<Answer> {
    standing::keep(&state, &mutation.action(&mutation.body.reason), &mutation.from.path.screen, &mutation.body).await
}

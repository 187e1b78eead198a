//! Standing house seats: seats that the house keeps in every show planned on a screen.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::organiser::{StandingRequest, StandingSeats};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::BackofficeState;
use crate::organiser::standing;
use crate::staff_request::{Organisers, StaffOrder, StaffRequest};
use http::idempotency::Answer;
use http::problem::ApiResult;
use http::refusals::{KeyReused, NotStaff};

#[derive(Deserialize)]
struct OfScreen {
    screen: String,
}

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new().routes(routes!(list, keep))
}

/// Seats the house keeps in every show planned on this screen. For organisers and managers.
#[utoipa::path(get, path = "/theatres/{theatre}/screens/{screen}/house-seats", tag = "organiser",
    params(("theatre" = String, Path), ("screen" = String, Path)),
    responses((status = 200, body = StandingSeats), NotStaff,
        (status = 404, body = ProblemView, description = "No such screen; also for another theatre's staff")))]
async fn list(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers, OfScreen>,
) -> ApiResult<Json<StandingSeats>> {
    standing::list(&state, &from.theatre, &from.path.screen).await.map(Json)
}

/// Keep seats for the house in every show planned on this screen from now on, or put them back. For organisers and
/// managers.
#[utoipa::path(post, path = "/theatres/{theatre}/screens/{screen}/house-seats", tag = "organiser", request_body = StandingRequest,
    params(("theatre" = String, Path), ("screen" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = StandingSeats), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "No such screen or room; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn keep(
    State(state): State<BackofficeState>,
    order: StaffOrder<Organisers, OfScreen, StandingRequest>,
) -> ApiResult<Answer> {
    standing::keep(&state, &order.act(&order.body.reason), &order.from.path.screen, &order.body).await
}

//! API endpoints of outgoing webhooks, for managers, and of the booking that a webhook names.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::systems::{
    DeliveryView, EndpointChange, EndpointMade, EndpointRequest, EndpointView, ReasonRequest, TheatreBookingView,
};
use domain::roles::Role;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{endpoints, theatre_booking};
use crate::BackofficeState;
use http::ApiPath;
use http::idempotency::Answer;
use http::problem::ApiResult;
use identity::accounts::{Managers, StaffMutation, StaffRequest};
use identity::api_keys::Caller;

/// Roles that may read any booking of a theatre.
const MANAGERS: &[Role] = &[Role::Manager];

#[derive(Deserialize)]
struct EndpointPath {
    endpoint: Uuid,
}

#[derive(Deserialize)]
struct DeliveryPath {
    endpoint: Uuid,
    delivery: i64,
}

/// The routes of webhooks out, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(rotate))
        .routes(routes!(change))
        .routes(routes!(list_deliveries))
        .routes(routes!(replay))
        .routes(routes!(read_booking))
}

/// The webhook endpoints of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/webhooks", tag = "systems",
    responses((status = 200, body = Vec<EndpointView>)))]
async fn list(
    State(state): State<BackofficeState>,
    from: StaffRequest<Managers>,
) -> ApiResult<Json<Vec<EndpointView>>> {
    super::endpoints(&state, &from.theatre).await.map(Json)
}

/// Create an endpoint. Its secret is in this answer, and never shown again.
///
/// Add an endpoint, `{"url": "https://…", "events": […], "reason": …}`: only this response contains `secret`, see
/// *Webhooks out*.
#[utoipa::path(post, path = "/theatres/{theatre}/webhooks", tag = "systems", request_body = EndpointRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = EndpointMade),
        (status = 400, body = ProblemView, description = "malformed: also an address that is not on the public internet; key_missing"),
        (status = 409, body = ProblemView, description = "wrong_state: too many endpoints; still_running")))]
async fn make(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, (), EndpointRequest>,
) -> ApiResult<Answer> {
    endpoints::make(&state, &mutation.from.staff, &mutation.from.theatre, &mutation.body, &mutation.intent).await
}

/// Rotate the secret of an endpoint; for a day, messages carry a signature of the old one as well.
///
/// Replace the secret of an endpoint, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/webhooks/{endpoint}/secret", tag = "systems",
    request_body = ReasonRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = EndpointMade),
        (status = 404, body = ProblemView, description = "No such endpoint; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn rotate(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, EndpointPath, ReasonRequest>,
) -> ApiResult<Answer> {
    endpoints::rotate(&state, &mutation.action(&mutation.body.reason), mutation.from.path.endpoint).await
}

/// Switch an endpoint on or off, or remove it.
///
/// Set its state, `{"state": "on" | "off" | "removed", "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/webhooks/{endpoint}/state", tag = "systems",
    request_body = EndpointChange, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "No such endpoint; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn change(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, EndpointPath, EndpointChange>,
) -> ApiResult<Answer> {
    let action = mutation.action(&mutation.body.reason);
    endpoints::change(&state, &action, mutation.from.path.endpoint, &mutation.body).await
}

/// The latest 100 deliveries of an endpoint with their outcomes, the newest first.
#[utoipa::path(get, path = "/theatres/{theatre}/webhooks/{endpoint}/deliveries", tag = "systems",
    responses((status = 200, body = Vec<DeliveryView>),
        (status = 404, body = ProblemView, description = "No such endpoint; also for another theatre's staff")))]
async fn list_deliveries(
    State(state): State<BackofficeState>,
    from: StaffRequest<Managers, EndpointPath>,
) -> ApiResult<Json<Vec<DeliveryView>>> {
    endpoints::deliveries(&state, &from.theatre, from.path.endpoint).await.map(Json)
}

/// Send a message again.
///
/// Deliver a message again, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/webhooks/{endpoint}/deliveries/{delivery}/replay", tag = "systems",
    request_body = ReasonRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 202, description = "Queued; `delivery` is the id of the new one"),
        (status = 404, body = ProblemView, description = "No such delivery; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state: the endpoint is not on; still_running")))]
async fn replay(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, DeliveryPath, ReasonRequest>,
) -> ApiResult<Answer> {
    let DeliveryPath { endpoint, delivery } = mutation.from.path;
    endpoints::replay(&state, &mutation.action(&mutation.body.reason), endpoint, delivery).await
}

/// A booking of your theatre. A program with a key sees the buyer only if the key allows it.
#[utoipa::path(get, path = "/theatres/{theatre}/bookings/{booking}", tag = "systems",
    responses((status = 200, body = TheatreBookingView),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking")))]
async fn read_booking(
    State(state): State<BackofficeState>,
    caller: Caller,
    ApiPath((theatre, id)): ApiPath<(String, Uuid)>,
) -> ApiResult<Json<TheatreBookingView>> {
    caller.at(&theatre, MANAGERS)?;
    theatre_booking::read(&state, &theatre, id, caller.sees_people()).await.map(Json)
}

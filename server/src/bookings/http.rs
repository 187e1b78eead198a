//! Endpoints of bookings.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api::{BookingEventView, BookingRequest, BookingView, ConfirmRequest, ProblemView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{confirm, create, view};
use crate::AppState;
use crate::idempotency::{IdempotencyKey, Intent};
use crate::web::problem::ApiResult;
use crate::web::{ApiJson, ApiPath, Problem, Visitor};

/// The routes of bookings, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(make)).routes(routes!(read)).routes(routes!(pay)).routes(routes!(story))
}

/// Check out: a live hold becomes a booking.
#[utoipa::path(post, path = "/bookings", tag = "bookings", request_body = BookingRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = BookingView),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "sales_closed, still_running"),
        (status = 410, body = ProblemView, description = "hold_expired; also for another's"),
        (status = 422, body = ProblemView, description = "key_reused")))]
async fn make(
    State(state): State<AppState>,
    visitor: Visitor,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<BookingRequest>,
) -> ApiResult<Response> {
    let show = state.catalogue.known_show(request.show).await?;
    let intent = Intent::new(&visitor.owner, key, "POST /bookings", &request);
    let answer = create::create(&state, &show, &visitor.owner, &request, &intent).await?;
    Ok(answer.into_response())
}

/// Your booking.
#[utoipa::path(get, path = "/bookings/{booking}", tag = "bookings", params(("booking" = Uuid, Path)),
    responses((status = 200, body = BookingView), (status = 404, body = ProblemView, description = "Also for another's")))]
async fn read(State(state): State<AppState>, visitor: Visitor, ApiPath(booking): ApiPath<Uuid>) -> ApiResult<Response> {
    let found = view::view(&state, &visitor.owner, booking).await?;
    let booking = found.ok_or_else(|| Problem::not_found("booking"))?;
    Ok(axum::Json(booking).into_response())
}

/// Pay: with a token at once, or on the gateway's page.
#[utoipa::path(post, path = "/bookings/{booking}/confirm", tag = "bookings", request_body = ConfirmRequest,
    params(("booking" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = BookingView, description = "How it stands: confirmed, cancelled, or pending with `pay_url`"),
        (status = 404, body = ProblemView, description = "Also for another's"),
        (status = 409, body = ProblemView, description = "seats_taken, sales_closed, wrong_state, still_running"),
        (status = 410, body = ProblemView, description = "hold_expired"),
        (status = 422, body = ProblemView, description = "key_reused"),
        (status = 429, body = ProblemView, description = "person_limit, too_many_declines"),
        (status = 503, body = ProblemView, description = "gateway_unavailable: the hold is kept; nothing was charged")))]
async fn pay(
    State(state): State<AppState>,
    visitor: Visitor,
    ApiPath(booking): ApiPath<Uuid>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ConfirmRequest>,
) -> ApiResult<Response> {
    let intent = Intent::new(&visitor.owner, key, &format!("POST /bookings/{booking}/confirm"), &request);
    let answer = confirm::confirm(&state, &visitor.owner, booking, &request, &intent).await?;
    Ok(answer.into_response())
}

/// Everything that happened to your booking: who, when, why.
#[utoipa::path(get, path = "/bookings/{booking}/events", tag = "bookings", params(("booking" = Uuid, Path)),
    responses((status = 200, body = Vec<BookingEventView>), (status = 404, body = ProblemView, description = "Also for another's")))]
async fn story(
    State(state): State<AppState>,
    visitor: Visitor,
    ApiPath(booking): ApiPath<Uuid>,
) -> ApiResult<Response> {
    let found = view::events(&state, &visitor.owner, booking).await?;
    let events = found.ok_or_else(|| Problem::not_found("booking"))?;
    Ok(axum::Json(events).into_response())
}

//! Tills, the day's end, and managers' PINs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::box_office::{
    CashUp, CashUpFor, DayClose, DayView, DropRequest, ManagerView, OpenTill, PinRequest, TillView,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::BackofficeState;
use crate::box_office::tills;
use crate::staff_request::{BoxOffice, Managers, StaffMutation, StaffRequest};
use http::ApiJson;
use http::idempotency::{Answer, IdempotencyKey};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use identity::accounts;

#[derive(Deserialize)]
struct TillPath {
    till: Uuid,
}

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(mine, open))
        .routes(routes!(drop_cash))
        .routes(routes!(cash_up))
        .routes(routes!(cash_up_for))
        .routes(routes!(of_the_day))
        .routes(routes!(close_day))
        .routes(routes!(managers))
        .routes(routes!(set_pin))
}

/// Your open till with its ledger.
///
/// Your open till with its ledger; 204 without one.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/till", tag = "box office", params(("theatre" = String, Path)),
    responses((status = 200, body = TillView), (status = 204, description = "None is open"), NotStaff, OtherTheatre))]
async fn mine(State(state): State<BackofficeState>, from: StaffRequest<BoxOffice>) -> ApiResult<Response> {
    Ok(match tills::mine(&state, from.counter()).await? {
        Some(till) => Json(till).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Open your till with its float.
///
/// Open your till with its float, `{"float_minor": 10000}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/till", tag = "box office", request_body = OpenTill,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = TillView), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "till_open")))]
async fn open(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, (), OpenTill>,
) -> ApiResult<Answer> {
    tills::open(&state, mutation.from.counter(), mutation.body, &mutation.intent).await
}

/// Bring cash from your till to the safe.
///
/// Move cash to the safe, `{"amount_minor": 5000, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/till/drops", tag = "box office", request_body = DropRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = TillView), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "till_closed, till_short")))]
async fn drop_cash(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, (), DropRequest>,
) -> ApiResult<Answer> {
    tills::drop_cash(&state, mutation.from.counter(), &mutation.body, &mutation.intent).await
}

/// Count your till and close it. A difference needs a reason.
///
/// Cash up and close your till, `{"counted_minor": 12500}`; a difference needs a `reason`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/till/cash-up", tag = "box office", request_body = CashUp,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = TillView), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "till_closed, till_differs")))]
async fn cash_up(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, (), CashUp>,
) -> ApiResult<Answer> {
    tills::cash_up(&state, mutation.from.counter(), &mutation.body, &mutation.intent).await
}

/// Count and close the till of a colleague who left without counting it.
///
/// Cash up and close a till whose seller left without it, `{"counted_minor": 12500, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/tills/{till}/cash-up", tag = "box office",
    request_body = CashUpFor,
    params(("theatre" = String, Path), ("till" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = TillView), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's till"),
        (status = 409, body = ProblemView, description = "wrong_state")))]
async fn cash_up_for(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, TillPath, CashUpFor>,
) -> ApiResult<Answer> {
    tills::cash_up_for(&state, mutation.from.counter(), mutation.from.path.till, &mutation.body, &mutation.intent).await
}

/// Tills since the last day was closed.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/tills", tag = "box office",
    params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<TillView>), NotStaff, OtherTheatre))]
async fn of_the_day(
    State(state): State<BackofficeState>,
    from: StaffRequest<Managers>,
) -> ApiResult<Json<Vec<TillView>>> {
    tills::of_the_day(&state, from.counter()).await.map(Json)
}

/// Close the day: all tills must be counted; their sums are added up.
///
/// Close the day after all tills are cashed up, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/day-close", tag = "box office", request_body = DayClose,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = DayView), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "till_open, till_closed")))]
async fn close_day(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, (), DayClose>,
) -> ApiResult<Answer> {
    tills::close_day(&state, mutation.from.counter(), &mutation.body, &mutation.intent).await
}

/// Managers who can approve a refund.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/managers", tag = "box office",
    params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<ManagerView>), NotStaff, OtherTheatre))]
async fn managers(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice>,
) -> ApiResult<Json<Vec<ManagerView>>> {
    Ok(Json(accounts::managers_with_pin(&state, &from.theatre).await?))
}

/// Set your own PIN.
///
/// Set your own PIN, `{"pin": …, "password": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/pin", tag = "box office", request_body = PinRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, password_unusable"),
        (status = 401, body = ProblemView, description = "not_signed_in, login_failed"),
        (status = 403, body = ProblemView, description = "not_allowed"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
async fn set_pin(
    State(state): State<BackofficeState>,
    from: StaffRequest<Managers>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<PinRequest>,
) -> ApiResult<Answer> {
    let intent = from.intent(key, &accounts::PinIntent::of(&state, &request));
    accounts::set_pin(&state, &from.staff, &from.theatre, &request, &intent).await
}

//! Tills, the day's end, and managers' PINs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::box_office::{
    CashUp, CashUpFor, DayClose, DayView, DropRequest, ManagerView, OpenTill, PinRequest, TillView,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{COUNTER, MANAGER, at, intent};
use crate::BackofficeState;
use crate::box_office::tills;
use http::idempotency::{Answer, IdempotencyKey};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath};
use identity::accounts::{self, Staff};

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
async fn mine(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Response> {
    Ok(match tills::mine(&state, at(&staff, &theatre, COUNTER)?).await? {
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
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<OpenTill>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, "till", &request);
    tills::open(&state, counter, request, &intent).await
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
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<DropRequest>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, "till/drops", &request);
    tills::drop_cash(&state, counter, &request, &intent).await
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
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<CashUp>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, "till/cash-up", &request);
    tills::cash_up(&state, counter, &request, &intent).await
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
    staff: Staff,
    ApiPath((theatre, till)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<CashUpFor>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, MANAGER)?;
    let intent = intent(counter, key, &format!("tills/{till}/cash-up"), &request);
    tills::cash_up_for(&state, counter, till, &request, &intent).await
}

/// Tills since the last day was closed.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/tills", tag = "box office",
    params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<TillView>), NotStaff, OtherTheatre))]
async fn of_the_day(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<TillView>>> {
    tills::of_the_day(&state, at(&staff, &theatre, MANAGER)?).await.map(Json)
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
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<DayClose>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, MANAGER)?;
    let intent = intent(counter, key, "day-close", &request);
    tills::close_day(&state, counter, &request, &intent).await
}

/// Managers who can approve a refund.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/managers", tag = "box office",
    params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<ManagerView>), NotStaff, OtherTheatre))]
async fn managers(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<ManagerView>>> {
    at(&staff, &theatre, COUNTER)?;
    Ok(Json(accounts::managers_with_pin(&state, &theatre).await?))
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
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<PinRequest>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, MANAGER)?;
    let intent = intent(counter, key, "pin", &accounts::PinIntent::of(&state, &request));
    accounts::set_pin(&state, &staff, &theatre, &request, &intent).await
}

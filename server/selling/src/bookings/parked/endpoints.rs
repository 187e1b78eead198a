//! Endpoints of parked effects.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::parked::ParkedView;
use domain::api::systems::ReasonRequest;
use domain::roles::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Decision, decide_parked, parked_at};
use crate::SellingState;
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath};
use identity::accounts::Staff;

/// The routes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(retry)).routes(routes!(settle))
}

/// Effects of bookings of your theatre that failed and wait for a person, oldest first.
///
/// Parked effects of your bookings, which wait for a person, oldest first; a difference between a gateway's ledger
/// and a payment here has the effect `compare_ledger`.
#[utoipa::path(get, path = "/theatres/{theatre}/parked", tag = "bookings", params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<ParkedView>), NotStaff, OtherTheatre))]
async fn list(
    State(state): State<SellingState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<ParkedView>>> {
    staff.at(&theatre, &[Role::Manager])?;
    parked_at(&state, &theatre).await.map(Json)
}

/// Retry a parked effect.
///
/// Retry a parked effect, `{"reason": …}`. A difference is compared again, and money that is not recorded here
/// becomes a late payment.
#[utoipa::path(post, path = "/theatres/{theatre}/parked/{parked}/retry", tag = "bookings", request_body = ReasonRequest,
    params(("theatre" = String, Path), ("parked" = i64, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Not parked, or not any more; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn retry(
    state: State<SellingState>,
    staff: Staff,
    path: ApiPath<(String, i64)>,
    key: IdempotencyKey,
    request: ApiJson<ReasonRequest>,
) -> ApiResult<Answer> {
    decide(state, staff, path, Decision::Retry, key, request).await
}

/// Close a parked effect, because it was done in another way or need not be done.
///
/// Remove a parked effect, because you settled it in another way, `{"reason": …}`: a refund counts as paid, a late
/// payment that waits for seats is refunded, a ledger difference is not listed again.
///
/// A refund then counts as paid back, and late money is refunded.
#[utoipa::path(post, path = "/theatres/{theatre}/parked/{parked}/settle", tag = "bookings", request_body = ReasonRequest,
    params(("theatre" = String, Path), ("parked" = i64, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Not parked, or not any more; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state: the booking moved at the same moment, or late money went another way; still_running")))]
async fn settle(
    state: State<SellingState>,
    staff: Staff,
    path: ApiPath<(String, i64)>,
    key: IdempotencyKey,
    request: ApiJson<ReasonRequest>,
) -> ApiResult<Answer> {
    decide(state, staff, path, Decision::Close, key, request).await
}

async fn decide(
    State(state): State<SellingState>,
    staff: Staff,
    ApiPath((theatre, id)): ApiPath<(String, i64)>,
    decision: Decision,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ReasonRequest>,
) -> ApiResult<Answer> {
    staff.at(&theatre, &[Role::Manager])?;
    let path = format!("POST /theatres/{theatre}/parked/{id}/{}", decision.as_str());
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    decide_parked(&state, &staff, (&theatre, id, decision), &request, &intent).await
}

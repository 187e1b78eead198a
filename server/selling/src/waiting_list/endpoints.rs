//! Endpoints of waiting lists.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::waiting_list::{WaitingRequest, WaitingView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::join;
use crate::{SellingState, waiting_list};
use admission::waiting_room::{self, VisitorPage};
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::{ApiJson, ApiPath, ApiResult, ClientAddress, Problem};
use identity::{Visitor, accounts};

/// The routes of waiting lists, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(wait, place, leave))
}

/// Wait for seats of a show that is sold out.
#[utoipa::path(post, path = "/shows/{show}/waiting-list", tag = "waiting list", request_body = WaitingRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = WaitingView),
        (status = 400, body = ProblemView, description = "malformed, key_missing, seat_count, person_invalid"),
        (status = 404, body = ProblemView, description = "No such show; also for a guest's cookie from before they signed in"),
        (status = 409, body = ProblemView, description = "seats_free, already_waiting, sales_closed, still_running"),
        (status = 429, body = ProblemView, description = "waiting_list_full, waiting_room, too_many_attempts"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn wait(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<WaitingRequest>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(show).await?;
    // An offer is a hold: the line is for those who see the map, otherwise it would lead past the waiting room.
    if waiting_room::page_of(&state, show.id, &visitor.owner, &headers) == VisitorPage::WaitingRoom {
        waiting_room::check_pass(&state, &show, &visitor, &headers).await?;
    }
    own(&state, &visitor).await?;
    let intent = Intent::new(&visitor.owner, key, &format!("POST /shows/{}/waiting-list", show.id), &request);
    let answer = join::join(&state, &show, (&visitor.owner, &address), &request, &intent).await?;
    Ok((visitor, answer).into_response())
}

/// Your place in line, and the offer held for you.
///
/// Your place in the waiting list, and your offer; 204 when you are not in it.
#[utoipa::path(get, path = "/shows/{show}/waiting-list", tag = "waiting list",
    responses((status = 200, body = WaitingView), (status = 204, description = "You are not in line"),
        (status = 404, body = ProblemView, description = "No such show")))]
async fn place(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(show).await?;
    let is_theirs = accounts::is_own_visitor(&state, &visitor).await?;
    let view = if is_theirs { waiting_list::of_owner(&state, &show, &visitor.owner).await? } else { None };
    Ok(match view {
        Some(view) => (visitor, axum::Json(view)).into_response(),
        // Most visitors are not in line, and a browser prints a 404 where its owner sees it.
        None => (visitor, StatusCode::NO_CONTENT).into_response(),
    })
}

/// Leave the line. Your offer goes to the next in line.
#[utoipa::path(delete, path = "/shows/{show}/waiting-list", tag = "waiting list",
    params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 400, body = ProblemView, description = "key_missing, key_malformed"),
        (status = 404, body = ProblemView, description = "You are not in line; also for a guest's cookie from before they signed in")))]
async fn leave(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
    key: IdempotencyKey,
) -> ApiResult<Answer> {
    let show = state.catalogue.find_show(show).await?;
    own(&state, &visitor).await?;
    let intent = Intent::new(&visitor.owner, key, &format!("DELETE /shows/{}/waiting-list", show.id), &());
    join::leave(&state, &show, &visitor.owner, &intent).await
}

/// Refuses a guest whose visitor was merged into an account. A place in line names an address and belongs to the
/// account, like bookings: an old copy of the cookie neither reads nor takes one.
async fn own(state: &SellingState, visitor: &Visitor) -> ApiResult<()> {
    let is_theirs = accounts::is_own_visitor(state, visitor).await?;
    if is_theirs { Ok(()) } else { Err(Problem::not_found("place in the waiting list")) }
}

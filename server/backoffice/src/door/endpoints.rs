//! Endpoints of the door, for staff of the theatre.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::door::{
    DoorList, DoorShow, DoorView, ListQuery, ScanAnswer, ScanRequest, SettleRequest, Settlement, UndoRequest,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{list, scan, settle, show_at, status, undo};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::problem::ApiResult;
use http::{ApiQuery, Code, Problem};
use identity::accounts::{BoxOffice, ShowPath, StaffMutation, StaffRequest};

/// The routes of the door, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(shows))
        .routes(routes!(door_status))
        .routes(routes!(scan_tickets))
        .routes(routes!(list_tickets))
        .routes(routes!(settle_scans))
        .routes(routes!(undo_admissions))
}

/// Shows of your theatre whose doors are open, with the number of admissions.
#[utoipa::path(get, path = "/theatres/{theatre}/door/shows", tag = "door",
    responses((status = 200, body = Vec<DoorShow>)))]
async fn shows(State(state): State<BackofficeState>, from: StaffRequest<BoxOffice>) -> ApiResult<Json<Vec<DoorShow>>> {
    status::shows(&state, &from.theatre).await.map(Json)
}

/// The state of the door of a show: the number of admissions, and the conflicts.
#[utoipa::path(get, path = "/theatres/{theatre}/door/shows/{show}", tag = "door",
    responses((status = 200, body = DoorView),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff")))]
async fn door_status(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, ShowPath>,
) -> ApiResult<Json<DoorView>> {
    let show = show_at(&state, &from.staff, &from.theatre, from.path.show).await?;
    status::show_status(&state, &show).await.map(Json)
}

/// Scan a ticket and admit its holder. The key is the scan's id, a UUID that the device makes.
///
/// Scan a ticket or a party's, `{"text": …, "device": {"id": …, "name": "Left door"}}`. The key is the scan's id, a
/// UUID.
#[utoipa::path(post, path = "/theatres/{theatre}/door/shows/{show}/scans", tag = "door", request_body = ScanRequest,
    params(("Idempotency-Key" = Uuid, Header)),
    responses((status = 200, body = ScanAnswer, description = "Also without an admission: each ticket has its outcome"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "door_closed, still_running")))]
async fn scan_tickets(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, ScanRequest>,
) -> ApiResult<Answer> {
    let show = show_at(&state, &mutation.from.staff, &mutation.from.theatre, mutation.from.path.show).await?;
    scan::scan(&state, &mutation.from.staff, &show, &mutation.body, &mutation.intent).await
}

/// The tickets of a show for a device that may lose its network: signed digests of their codes.
///
/// The tickets as digests, sealed, for a `?device=` that may lose its network.
#[utoipa::path(get, path = "/theatres/{theatre}/door/shows/{show}/list", tag = "door", params(ListQuery),
    responses((status = 200, body = DoorList),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "door_closed")))]
async fn list_tickets(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, ShowPath>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> ApiResult<Json<DoorList>> {
    let show = show_at(&state, &from.staff, &from.theatre, from.path.show).await?;
    let device =
        query.device.ok_or_else(|| Problem::new(Code::Malformed, "Say for which device: `?device=` its id."))?;
    list::list(&state, &show, device).await.map(Json)
}

/// Settle admissions made without a network, 32 scans at a time.
///
/// Report the scans made with a list, 32 at a time.
#[utoipa::path(post, path = "/theatres/{theatre}/door/shows/{show}/settlements", tag = "door",
    request_body = SettleRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Settlement, description = "Also with duplicate admissions: each is a `conflict`"),
        (status = 400, body = ProblemView, description = "malformed, list_invalid, key_missing"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff")))]
async fn settle_scans(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, SettleRequest>,
) -> ApiResult<Answer> {
    let show = show_at(&state, &mutation.from.staff, &mutation.from.theatre, mutation.from.path.show).await?;
    settle::settle(&state, &mutation.from.staff, &show, &mutation.body, &mutation.intent).await
}

/// Undo the admissions of a scan, or of one ticket of it, with a reason: the tickets are valid again.
///
/// `{"scan": …, "reason": …}`: undo the admissions of that scan; with `"ticket"`, a code, only that one.
#[utoipa::path(post, path = "/theatres/{theatre}/door/shows/{show}/undo", tag = "door", request_body = UndoRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "door_closed, not_admitted, still_running")))]
async fn undo_admissions(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, UndoRequest>,
) -> ApiResult<Answer> {
    let show = show_at(&state, &mutation.from.staff, &mutation.from.theatre, mutation.from.path.show).await?;
    undo::undo(&state, &mutation.action(&mutation.body.reason), &show, &mutation.body).await
}

//! Endpoints of waiting rooms.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::waiting_room::{QueueState, QueueView, WaitingRoomRequest};
use domain::roles::Role;
use domain::time::Timestamp;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::entry::{self, Came, Papers};
use super::limits::Joiner;
use super::store::Entered;
use super::tickets::Pass;
use super::{Refused, show_at, switch, view};
use crate::AdmissionState;
use catalogue::sales_open;
use http::idempotency::{IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::refusals::{KeyReused, NotStaff};
use http::{ApiJson, ApiPath, ClientAddress, Problem};
use identity::Visitor;
use identity::accounts::Staff;
use platform::ids;

/// The routes of waiting rooms, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AdmissionState> {
    OpenApiRouter::new().routes(routes!(come, look, leave)).routes(routes!(change))
}

/// Join the waiting room of a show; with a ticket whose turn it is, come in.
///
/// Joining is one number and no row: the ticket in the answer is what is known of it. Send it along, as the cookie or as
/// `Queue-Ticket`; a visitor who asks again without it is given the same, whatever the key. So nothing is kept under the
/// key, and a repeat tells how the room stands by then.
#[utoipa::path(post, path = "/shows/{show}/queue", tag = "waiting room",
    params(("show" = Uuid, Path), ("Idempotency-Key" = String, Header, description = "One per intent"),
        ("Queue-Ticket" = Option<String>, Header, description = "Your ticket, where it is no cookie"),
        ("Puzzle-Solution" = Option<String>, Header, description = "Where a puzzle was asked for")),
    responses(
        (status = 201, body = QueueView, description = "A new ticket"),
        (status = 200, body = QueueView, description = "The ticket you came with"),
        (status = 400, body = ProblemView, description = "key_missing, key_malformed, puzzle_wrong"),
        (status = 404, body = ProblemView, description = "No such show, or it has no waiting room"),
        (status = 409, body = ProblemView, description = "sales_closed, puzzle_spent"),
        (status = 428, body = ProblemView, description = "puzzle_wanted"),
        (status = 429, body = ProblemView, description = "waiting_list_full, too_many_attempts"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable, overloaded")))]
async fn come(
    State(state): State<AdmissionState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
    key: IdempotencyKey,
) -> ApiResult<Response> {
    let show = state.catalogue.known_show(show).await?;
    let room = state.waiting_rooms.known(show.id)?;
    sales_open(&show, state.clock.now())?;
    let papers = entry::papers(&state, &room, &visitor.owner, &headers);
    let intent = Intent::new(&visitor.owner, key, "queue", &()).in_show(show.id);
    let request = ids::derived_id(&[&visitor.owner, &room.id.to_string(), intent.key()]);
    let joiner = Joiner { owner: &visitor.owner, address: &address, headers: &headers, request };
    let came = match entry::come(&state, &room, joiner, papers).await {
        Ok(came) => came,
        // A new visitor keeps the cookie of a refusal: the puzzle is for them.
        Err(problem) => return Ok((visitor, problem).into_response()),
    };
    let (status, papers, told) = match came {
        Came::Joined(number) => (StatusCode::CREATED, Papers { number: Some(number), pass: None }, None),
        Came::With(number, entered) => {
            let pass = if let Entered::Inside(until) = entered { Some(Pass { number, until }) } else { None };
            (StatusCode::OK, Papers { number: Some(number), pass }, told(entered))
        }
    };
    let view = view::view(&state, &show, &room, &visitor.owner, papers, told);
    let mut response = (visitor, (status, Json(&view))).into_response();
    if view.state == QueueState::Over {
        entry::forget(&state, &room, response.headers_mut());
    } else {
        let pass = view.pass.as_deref().zip(view.pass_until_ms.map(Timestamp));
        entry::keep(&state, &room, response.headers_mut(), view.ticket.as_deref(), pass);
    }
    Ok(response)
}

/// What the door said; `None` where the room itself says it.
const fn told(entered: Entered) -> Option<QueueState> {
    match entered {
        Entered::Inside(_) => Some(QueueState::Inside),
        Entered::NotYet => None,
        Entered::Late => Some(QueueState::Late),
        Entered::Over => Some(QueueState::Over),
        Entered::Elsewhere => Some(QueueState::Elsewhere),
    }
}

/// How the waiting room of a show stands, and where you are in it. Costs no store anything.
#[utoipa::path(get, path = "/shows/{show}/queue", tag = "waiting room",
    params(("show" = Uuid, Path), ("Queue-Ticket" = Option<String>, Header)),
    responses((status = 200, body = QueueView),
        (status = 404, body = ProblemView, description = "No such show, or it has no waiting room")))]
async fn look(
    State(state): State<AdmissionState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let show = state.catalogue.known_show(show).await?;
    let room = state.waiting_rooms.known(show.id)?;
    let papers = entry::papers(&state, &room, &visitor.owner, &headers);
    if let Some(number) = papers.number {
        room.used_tickets.note(number);
    }
    let view = view::view(&state, &show, &room, &visitor.owner, papers, None);
    Ok((visitor, Json(view)).into_response())
}

/// Leave it, for good: whoever stands behind moves up. Your ticket is worth nothing any more. It takes no key: a ticket
/// is given back once, and a repeat, with it or without, is answered the same.
#[utoipa::path(delete, path = "/shows/{show}/queue", tag = "waiting room",
    params(("show" = Uuid, Path), ("Queue-Ticket" = Option<String>, Header)),
    responses((status = 204, description = "You have no place in it by what you brought"),
        (status = 404, body = ProblemView, description = "No such show, it has no waiting room, or `Queue-Ticket` is no ticket of it"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn leave(
    State(state): State<AdmissionState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let room = state.waiting_rooms.known(show)?;
    let papers = entry::papers(&state, &room, &visitor.owner, &headers);
    match papers.number {
        Some(number) => entry::leave(&state, &room, number).await?,
        // Cut off, or of another show: whoever sends it may stand in line all the same.
        None if entry::sends_ticket(&headers) => return Err(Problem::not_found("ticket")),
        None => {}
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    entry::forget(&state, &room, response.headers_mut());
    Ok(response)
}

/// Switch the waiting room of a show on, change it, or switch it off. For managers and organisers.
#[utoipa::path(post, path = "/theatres/{theatre}/shows/{show}/waiting-room", tag = "staff",
    request_body = WaitingRoomRequest,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "wrong_state, sales_closed, still_running")))]
async fn change(
    State(state): State<AdmissionState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<WaitingRoomRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, &[Role::Manager, Role::Organiser])?;
    let show = show_at(&state, &theatre, show).await?;
    let path = format!("POST /theatres/{theatre}/shows/{}/waiting-room", show.id);
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let answer = switch(&state, &show, &staff, &intent, &request, None).await;
    Ok(answer.map_err(Refused::problem)?.into_response())
}

//! Endpoints of waiting rooms.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::waiting_room::{DrawView, QueueState, QueueView, WaitingRoomRequest};
use domain::time::Timestamp;
use domain::waiting_room::draw::METHOD;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::entry::{self, Credentials, JoinOutcome};
use super::limits::Joiner;
use super::room::ActiveRoom;
use super::store::EntryOutcome;
use super::tickets::Pass;
use super::{SwitchError, show_at, switch};
use crate::AdmissionState;
use catalogue::{Show, sales_open};
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::{ApiPath, ClientAddress, Problem};
use identity::Visitor;
use identity::accounts::{Organisers, ShowPath, StaffMutation};
use platform::clock::rfc3339;
use platform::ids;

/// The routes of waiting rooms, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AdmissionState> {
    OpenApiRouter::new().routes(routes!(come, look, leave)).routes(routes!(change))
}

/// Join the waiting room of a show; with a ticket that was called, enter it.
///
/// Join the waiting room of a show; with a called queue ticket, enter.
///
/// Joining takes one number and creates no row: the ticket in the response is the only record. Send it with later
/// requests, as the cookie or as `Queue-Ticket`; a visitor who asks again without it gets the same, whatever the key.
/// Nothing is stored under the key, and a repeat returns the present state of the room.
#[utoipa::path(post, path = "/shows/{show}/queue", tag = "waiting room",
    params(("Idempotency-Key" = String, Header, description = "One per intent"),
        ("Queue-Ticket" = Option<String>, Header, description = "Your ticket, where it is no cookie"),
        ("Puzzle-Solution" = Option<String>, Header, description = "Where a puzzle was asked for")),
    responses((status = 201, body = QueueView, description = "A new ticket"),
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
    let show = state.catalogue.find_show_or_rehearsal(show).await?;
    let room = state.waiting_rooms.known(show.id)?;
    sales_open(&show, state.clock.now())?;
    let credentials = entry::read_credentials(&state, &room, &visitor.owner, &headers);
    let intent = Intent::new(&visitor.owner, key, "queue", &()).in_show(show.id);
    let request = ids::derived_id(&[&visitor.owner, &room.id.to_string(), intent.key()]);
    let joiner = Joiner { owner: &visitor.owner, address: &address, headers: &headers, request };
    let outcome = match entry::join_or_enter(&state, &room, joiner, credentials).await {
        Ok(outcome) => outcome,
        // A new visitor keeps the cookie of a refusal: the puzzle is bound to it.
        Err(problem) => return Ok((visitor, problem).into_response()),
    };
    let (status, credentials, entered_state) = match outcome {
        JoinOutcome::Joined(number) => (StatusCode::CREATED, Credentials { number: Some(number), pass: None }, None),
        JoinOutcome::HasTicket(number, entered) => {
            let pass = if let EntryOutcome::Inside(until) = entered { Some(Pass { number, until }) } else { None };
            (StatusCode::OK, Credentials { number: Some(number), pass }, state_of(entered))
        }
    };
    let view = view_of(&state, &show, &room, &visitor.owner, credentials, entered_state);
    let mut response = (visitor, (status, Json(&view))).into_response();
    match view.state {
        QueueState::Over => entry::clear_cookies(&state, &room, response.headers_mut()),
        // Without the ticket, the next join takes a new number. The pass is kept: another tab may have entered at the
        // same moment.
        QueueState::Elsewhere => entry::clear_ticket(&state, &room, response.headers_mut()),
        _ => {
            let pass = view.pass.as_deref().zip(view.pass_until_ms.map(Timestamp));
            entry::set_cookies(&state, &room, response.headers_mut(), view.ticket.as_deref(), pass);
        }
    }
    Ok(response)
}

/// The state returned by an attempt to enter; `None` if the room itself determines it.
const fn state_of(entered: EntryOutcome) -> Option<QueueState> {
    match entered {
        EntryOutcome::Inside(_) => Some(QueueState::Inside),
        EntryOutcome::NotYet => None,
        EntryOutcome::Late => Some(QueueState::Late),
        EntryOutcome::Over => Some(QueueState::Over),
        EntryOutcome::Elsewhere => Some(QueueState::Elsewhere),
    }
}

/// The state of the waiting room of a show, and your place in it. Calls no store.
#[utoipa::path(get, path = "/shows/{show}/queue", tag = "waiting room",
    params(("Queue-Ticket" = Option<String>, Header)), responses((status = 200, body = QueueView),
        (status = 404, body = ProblemView, description = "No such show, or it has no waiting room")))]
async fn look(
    State(state): State<AdmissionState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show_or_rehearsal(show).await?;
    let room = state.waiting_rooms.known(show.id)?;
    let credentials = entry::read_credentials(&state, &room, &visitor.owner, &headers);
    if let Some(number) = credentials.number {
        room.used_tickets.note(number);
    }
    let view = view_of(&state, &show, &room, &visitor.owner, credentials, None);
    Ok((visitor, Json(view)).into_response())
}

/// Leave the waiting room finally: people behind you move up, and your ticket becomes invalid. It takes no key: a
/// ticket is given back once, and a repeat, with or without it, gets the same response.
///
/// Leave the waiting room permanently; 204 also without a place, 404 for an invalid `Queue-Ticket`.
#[utoipa::path(delete, path = "/shows/{show}/queue", tag = "waiting room",
    params(("Queue-Ticket" = Option<String>, Header)),
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
    let credentials = entry::read_credentials(&state, &room, &visitor.owner, &headers);
    match credentials.number {
        Some(number) => entry::leave(&state, &room, number).await?,
        // Truncated, or of another show: its sender may have a place all the same.
        None if entry::has_ticket_header(&headers) => return Err(Problem::not_found("ticket")),
        None => {}
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    entry::clear_cookies(&state, &room, response.headers_mut());
    Ok(response)
}

/// Switch the waiting room of a show on, change it, or switch it off.
///
/// Switch the waiting room of a show on or change it, `{"on": true, "opens_at": …, "per_second": 50, "reason": …}`,
/// or off, `{"on": false, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/shows/{show}/waiting-room", tag = "staff",
    request_body = WaitingRoomRequest, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "wrong_state, sales_closed, still_running")))]
async fn change(
    State(state): State<AdmissionState>,
    mutation: StaffMutation<Organisers, ShowPath, WaitingRoomRequest>,
) -> ApiResult<Answer> {
    let show = show_at(&state, &mutation.from.theatre, mutation.from.path.show).await?;
    let answer = switch(&state, &show, &mutation.from.staff, &mutation.intent, &mutation.body, None).await;
    answer.map_err(SwitchError::problem)
}

/// Builds the view for a visitor with these credentials; `entered_state` is the state that an attempt to enter has
/// returned.
fn view_of(
    state: &AdmissionState,
    show: &Show,
    room: &ActiveRoom,
    owner: &str,
    credentials: Credentials,
    entered_state: Option<QueueState>,
) -> QueueView {
    let (now, queue) = (state.clock.now(), room.queue());
    let is_closed = catalogue::sales_open(show, now).is_err();
    let place = credentials.number.and_then(|number| room.place_of(number));
    let queue_state = match (entered_state, credentials.number) {
        (Some(entered_state), _) => entered_state,
        // The pass of a cancelled show is useless.
        _ if show.is_called_off() => QueueState::Closed,
        _ if credentials.pass.is_some() => QueueState::Inside,
        _ if is_closed => QueueState::Closed,
        (None, None) => QueueState::Outside,
        (None, Some(_)) if place.is_some_and(|place| queue.has_called(place)) => QueueState::Called,
        (None, Some(_)) => QueueState::Waiting,
    };
    let outlook = place.filter(|_| queue_state == QueueState::Waiting).map(|place| queue.outlook(place));
    let signer = &state.waiting_rooms.signer;
    let keeps =
        !matches!(queue_state, QueueState::Over | QueueState::Elsewhere | QueueState::Outside | QueueState::Closed);
    let ticket = credentials.number.filter(|_| keeps).map(|number| signer.ticket(room.id, number));
    let pass = credentials.pass.map(|pass| signer.pass(room.id, owner, pass));
    let link = ticket.as_ref().map(|ticket| link(state, show, ticket));
    let Timestamp(opens_at_ms) = room.settings().opens_at;
    QueueView {
        show: show.id,
        state: queue_state,
        opens_at: rfc3339(Timestamp(opens_at_ms)),
        opens_at_ms,
        queue,
        number: credentials.number,
        place,
        outlook,
        ticket,
        link,
        pass,
        pass_until_ms: credentials.pass.map(|Pass { until, .. }| until.0),
        draw: DrawView {
            method: METHOD.to_owned(),
            commitment: room.commitment.clone(),
            people: room.people(),
            key: room.published_key(),
        },
    }
}

/// The address that transfers a ticket to another device.
fn link(state: &AdmissionState, show: &Show, ticket: &str) -> String {
    format!("{}/shows/{}/place/{ticket}", state.site.public_url.trim_end_matches('/'), show.id)
}

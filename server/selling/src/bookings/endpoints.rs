//! Endpoints of bookings.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use domain::api::cancelling::CancelRequest;
use domain::api::moving::SeatOfferAnswer;
use domain::api::{BookingEventView, BookingRequest, BookingView, ConfirmRequest, ProblemView};
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::checkout::at_once::create_and_pay;
use super::checkout::confirm;
use super::checkout::create::{Order, create};
use super::views::view;
use super::{cancel, parked, seat_offers, sold_seats};
use crate::SellingState;
use admission::fairness::LimitedCaller;
use http::idempotency::{IdempotencyKey, Intent, Prefer, run_once};
use http::{ApiJson, ApiPath, ApiResult, ClientAddress, Code, Problem};
use identity::accounts::SignedIn;
use identity::{Visitor, accounts};
use platform::telemetry;

/// The routes of bookings, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new()
        .routes(routes!(make))
        .routes(routes!(read))
        .routes(routes!(pay))
        .routes(routes!(undo))
        .routes(routes!(story))
        .routes(routes!(choose))
        .merge(parked::routes())
        .merge(sold_seats::routes())
}

/// Check out: a live hold becomes a booking; with `pay` it is paid for in the same step.
///
/// Check out: a hold becomes a booking; with `pay`, also pay. `holder` names the friend it is for: tickets carry
/// that name and are mailed to the friend, refunds go to the `buyer`.
#[utoipa::path(post, path = "/bookings", tag = "bookings", request_body = BookingRequest,
    params(("Idempotency-Key" = String, Header), ("Prefer" = Option<String>, Header, description = "respond-async")),
    responses((status = 201, body = BookingView),
        (status = 200, body = BookingView, description = "With `pay`: it is paid for already, or being paid for"),
        (status = 202, description = "With Prefer: respond-async; ask at Location"),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 403, body = ProblemView, description = "email_code_wanted: have a code mailed and enter it, then come back"),
        (status = 404, body = ProblemView, description = "Also for a guest's cookie from before they signed in"),
        (status = 409, body = ProblemView, description = "sales_closed, still_running; with `pay` also price_changed, seats_taken"),
        (status = 410, body = ProblemView, description = "hold_expired; also for another's"),
        (status = 429, body = ProblemView, description = "too_many_attempts; with `pay` also person_limit, too_many_declines, instrument_limit"),
        (status = 503, body = ProblemView, description = "overloaded; with `pay` also gateway_unavailable: the hold is kept; nothing was charged")))]
async fn make(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    key: IdempotencyKey,
    prefer: Prefer,
    ApiJson(request): ApiJson<BookingRequest>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(request.show).await?;
    let intent = Intent::new(&visitor.owner, key, "POST /bookings", &request);
    let caller = visitor.clone();
    let work = move |state: SellingState, intent: Intent| async move {
        LimitedCaller::new(show.id, &visitor, &address).count_checkout(&state, &show).await?;
        let mut turn = state.commits.turn(&visitor.owner, request.hold).await?;
        let order = Order { show: &show, visitor: &visitor, request: &request, intent: &intent };
        let Some(terms) = &request.pay else { return create(&state, order).await };
        let began = Instant::now();
        let answer = create_and_pay(&state, order, terms, &mut turn).await;
        telemetry::confirmed(began.elapsed());
        answer
    };
    let check_caller = accounts::refuse_handed_over(&state, &caller);
    Ok(run_once(&state, intent, prefer, check_caller, work).await?.into_response())
}

/// Your booking.
#[utoipa::path(get, path = "/bookings/{booking}", tag = "bookings",
    responses((status = 200, body = BookingView),
        (status = 404, body = ProblemView, description = "Also for another's")))]
async fn read(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath(booking): ApiPath<Uuid>,
) -> ApiResult<Response> {
    let owner = crate::account_bookings::owner_for(&state, &visitor, booking).await?;
    let found = view::view(&state, &owner, booking).await?;
    let booking = found.ok_or_else(|| Problem::not_found("booking"))?;
    Ok(axum::Json(booking).into_response())
}

/// Pay: with a token at once, or on the gateway's page.
///
/// Pay: with `payment_token` directly, without one at `pay_url`.
#[utoipa::path(post, path = "/bookings/{booking}/confirm", tag = "bookings", request_body = ConfirmRequest,
    params(("Idempotency-Key" = String, Header), ("Prefer" = Option<String>, Header, description = "respond-async")),
    responses((status = 200, body = BookingView, description = "How it stands: confirmed, cancelled, or pending with `pay_url`"),
        (status = 202, description = "With Prefer: respond-async; ask at Location"),
        (status = 404, body = ProblemView, description = "Also for another's"),
        (status = 409, body = ProblemView, description = "seats_taken, sales_closed, wrong_state, still_running"),
        (status = 410, body = ProblemView, description = "hold_expired"),
        (status = 429, body = ProblemView, description = "person_limit, too_many_declines, instrument_limit, too_many_attempts"),
        (status = 503, body = ProblemView, description = "gateway_unavailable: the hold is kept; nothing was charged")))]
async fn pay(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath(booking): ApiPath<Uuid>,
    key: IdempotencyKey,
    prefer: Prefer,
    ApiJson(request): ApiJson<ConfirmRequest>,
) -> ApiResult<Response> {
    let intent = Intent::new(&visitor.owner, key, &format!("POST /bookings/{booking}/confirm"), &request);
    let caller = visitor.clone();
    let work = move |state: SellingState, intent: Intent| async move {
        let began = Instant::now();
        let mut turn = state.commits.turn(&visitor.owner, booking).await?;
        // After the idempotency key: a replayed answer reads no store.
        let answer = confirm::confirm(&state, (&visitor, &address), booking, (&request, &intent), &mut turn).await;
        telemetry::confirmed(began.elapsed());
        answer
    };
    let check_caller = accounts::refuse_handed_over(&state, &caller);
    Ok(run_once(&state, intent, prefer, check_caller, work).await?.into_response())
}

/// Cancel: all of it, or some seats. Until `cancel_until_ms` of the booking the price goes back less a fee.
///
/// Cancel all of it, or the seats of `{"seats": [46], "labels": ["C7"]}`: with `labels`, none whose label has changed.
#[utoipa::path(post, path = "/bookings/{booking}/cancel", tag = "bookings", request_body = Option<CancelRequest>,
    params(("Idempotency-Key" = String, Header), ("Prefer" = Option<String>, Header, description = "respond-async")),
    responses((status = 200, body = BookingView, description = "How it stands now"),
        (status = 202, description = "With Prefer: respond-async; ask at Location"),
        (status = 400, body = ProblemView, description = "malformed, key_missing, seat_twice, unknown_seat"),
        (status = 401, body = ProblemView, description = "token_invalid; not_signed_in: the session has just ended"),
        (status = 404, body = ProblemView, description = "Also for another's"),
        (status = 409, body = ProblemView, description = "too_late_to_cancel, wrong_state, sales_closed: it is being undone anyway, still_running")))]
async fn undo(
    State(state): State<SellingState>,
    visitor: Visitor,
    session: ApiResult<SignedIn>,
    ApiPath(booking): ApiPath<Uuid>,
    key: IdempotencyKey,
    prefer: Prefer,
    body: Result<Option<Json<Map<String, Value>>>, JsonRejection>,
) -> ApiResult<Response> {
    refuse_ended_session(&visitor, session)?;
    // No body means the whole booking. Only an object is accepted, so that an empty list is not taken for one.
    let body = body?.map(|Json(body)| body).unwrap_or_default();
    let request = serde_json::from_value::<CancelRequest>(Value::Object(body))
        .map_err(|cause| Problem::new(Code::Malformed, cause.to_string()))?;
    let intent = Intent::new(&visitor.owner, key, &format!("POST /bookings/{booking}/cancel"), &request);
    let caller = visitor.clone();
    let work = move |state: SellingState, intent: Intent| async move {
        let _turn = state.commits.turn(&visitor.owner, booking).await?;
        let owner = crate::account_bookings::owner_for(&state, &visitor, booking).await?;
        cancel::cancel_own(&state, &owner, booking, &request, &intent).await
    };
    let check_caller = accounts::refuse_handed_over(&state, &caller);
    Ok(run_once(&state, intent, prefer, check_caller, work).await?.into_response())
}

/// Your show was moved to another screen: take the other seats, or have all of your money back.
///
/// `{"take": true}`: accept the seats offered after a relocation; `false`: a full refund.
#[utoipa::path(post, path = "/bookings/{booking}/seat-offer", tag = "bookings", request_body = SeatOfferAnswer,
    params(("Idempotency-Key" = String, Header), ("Prefer" = Option<String>, Header, description = "respond-async")),
    responses((status = 200, body = BookingView, description = "How it stands now"),
        (status = 202, description = "With Prefer: respond-async; ask at Location"),
        (status = 401, body = ProblemView, description = "token_invalid; not_signed_in: the session has just ended"),
        (status = 404, body = ProblemView, description = "Also for another's"),
        (status = 409, body = ProblemView, description = "wrong_state: nothing to answer, or not any more; still_running")))]
async fn choose(
    State(state): State<SellingState>,
    visitor: Visitor,
    session: ApiResult<SignedIn>,
    ApiPath(booking): ApiPath<Uuid>,
    key: IdempotencyKey,
    prefer: Prefer,
    ApiJson(request): ApiJson<SeatOfferAnswer>,
) -> ApiResult<Response> {
    refuse_ended_session(&visitor, session)?;
    let intent = Intent::new(&visitor.owner, key, &format!("POST /bookings/{booking}/seat-offer"), &request);
    let caller = visitor.clone();
    let work = move |state: SellingState, intent: Intent| async move {
        let _turn = state.commits.turn(&visitor.owner, booking).await?;
        let owner = crate::account_bookings::owner_for(&state, &visitor, booking).await?;
        seat_offers::answer(&state, &owner, booking, &request, &intent).await
    };
    let check_caller = accounts::refuse_handed_over(&state, &caller);
    Ok(run_once(&state, intent, prefer, check_caller, work).await?.into_response())
}

/// Refuses to undo a purchase for a cached session that has ended, perhaps on another replica.
fn refuse_ended_session(visitor: &Visitor, session: ApiResult<SignedIn>) -> ApiResult<()> {
    if visitor.account.is_some() { session.map(drop) } else { Ok(()) }
}

/// The history of your booking: each event with actor, reason and time.
#[utoipa::path(get, path = "/bookings/{booking}/events", tag = "bookings",
    responses((status = 200, body = Vec<BookingEventView>),
        (status = 404, body = ProblemView, description = "Also for another's")))]
async fn story(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath(booking): ApiPath<Uuid>,
) -> ApiResult<Response> {
    let owner = crate::account_bookings::owner_for(&state, &visitor, booking).await?;
    let found = view::events(&state, &owner, booking).await?;
    let events = found.ok_or_else(|| Problem::not_found("booking"))?;
    Ok(axum::Json(events).into_response())
}

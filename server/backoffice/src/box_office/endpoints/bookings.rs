//! Bookings at the counter: find, print, refund, undo, pay out and exchange.

use axum::Json;
use axum::extract::State;
use domain::api::ProblemView;
use domain::api::box_office::{
    BookingQuery, CounterBooking, ExchangeRequest, FoundAtCounter, PrintedTicket, Reason, RefundRequest,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{COUNTER, at, intent};
use crate::BackofficeState;
use crate::box_office::{exchange, find, take_back, tickets};
use http::idempotency::{Answer, IdempotencyKey};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff};
use http::{ApiJson, ApiPath, ApiQuery, Code, Problem};
use identity::accounts::Staff;

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(find_booking))
        .routes(routes!(by_id))
        .routes(routes!(print))
        .routes(routes!(refund))
        .routes(routes!(undo))
        .routes(routes!(pay_out))
        .routes(routes!(swap))
}

/// Find a booking by its reference, as people read it aloud; or with `q` by a part of the customer's name or e-mail
/// address: the newest first, at most 20, of shows of the last 60 days and of the future. The audit list records the
/// search.
///
/// A booking by `?reference=K7QM-2XPA`; or by `?q=ann`, a part of a name or an e-mail address (2 to 100
/// characters), a list of `{"booking": …, "name": …, "email": …}`, newest first, 20 at most, of shows of the last
/// 60 days and to come; the audit log records the search with their references.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/bookings", tag = "box office",
    params(("theatre" = String, Path), BookingQuery),
    responses((status = 200, body = FoundAtCounter), NotStaff,
        (status = 400, body = ProblemView, description = "malformed"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking")))]
async fn find_booking(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<BookingQuery>,
) -> ApiResult<Json<FoundAtCounter>> {
    let counter = at(&staff, &theatre, COUNTER)?;
    match (query.reference.trim(), query.q.trim()) {
        ("", "") => Err(Problem::new(Code::Malformed, "Which booking? Name its reference, or whose it is.")),
        ("", asked) => find::by_person(&state, counter, asked).await.map(FoundAtCounter::Many).map(Json),
        (reference, "") => {
            let found = find::by_reference(&state, counter, reference).await?;
            Ok(Json(FoundAtCounter::One(Box::new(found))))
        }
        _ => Err(Problem::new(Code::Malformed, "Name a reference or whose it is, not both.")),
    }
}

/// A booking.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/bookings/{booking}", tag = "box office",
    params(("theatre" = String, Path), ("booking" = Uuid, Path)),
    responses((status = 200, body = CounterBooking), NotStaff,
        (status = 404, body = ProblemView, description = "Also for another theatre's booking")))]
async fn by_id(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, booking)): ApiPath<(String, Uuid)>,
) -> ApiResult<Json<CounterBooking>> {
    find::by_id(&state, at(&staff, &theatre, COUNTER)?, booking).await.map(Json)
}

/// The tickets of a booking, to be printed. Each print is in the audit list.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/tickets", tag = "box office",
    params(("theatre" = String, Path), ("booking" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Vec<PrintedTicket>), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "wrong_state")))]
async fn print(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, booking)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("bookings/{booking}/tickets"), &());
    tickets::print(&state, counter, booking, &intent).await
}

/// Refund a booking, or some of its seats, in full. A manager approves the refund with their PIN. Payments at the
/// counter are refunded from your till, gateway payments through the gateway.
///
/// Refund a booking, or the seats of `"seats"`, with a manager's PIN.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/refund", tag = "box office",
    request_body = RefundRequest,
    params(("theatre" = String, Path), ("booking" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CounterBooking), NotStaff,
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "wrong_state, till_closed, till_short"),
        (status = 422, body = ProblemView, description = "key_reused, pin_wrong"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
async fn refund(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, booking)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<RefundRequest>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    // The stored request must not contain the PIN.
    let said = (&request.seats, &request.reason, request.manager);
    let intent = intent(counter, key, &format!("bookings/{booking}/refund"), &said);
    take_back::refund(&state, counter, booking, &request, &intent).await
}

/// Undo your own sale of the last five minutes, out of the same till.
///
/// Undo your own sale of the last five minutes, unless one of its tickets was admitted, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/undo", tag = "box office",
    request_body = Reason,
    params(("theatre" = String, Path), ("booking" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CounterBooking), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "undo_too_late, till_closed, wrong_state")))]
async fn undo(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, booking)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<Reason>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("bookings/{booking}/undo"), &request);
    take_back::undo(&state, counter, booking, &request, &intent).await
}

/// Pay out the refund that waits at the counter, for a counter booking whose show was called off.
///
/// Pay out the money that waits at the counter, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/pay-out", tag = "box office",
    request_body = Reason,
    params(("theatre" = String, Path), ("booking" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CounterBooking), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "wrong_state, till_closed, till_short")))]
async fn pay_out(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, booking)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<Reason>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("bookings/{booking}/pay-out"), &request);
    take_back::pay_out(&state, counter, booking, &request, &intent).await
}

/// Exchange a sold booking for other seats, which you hold, in the same show or another. The old seats are returned,
/// and the difference in price goes into your till, or out of it with a manager's PIN. A booking that was paid online
/// must get seats that cost the same or less; the gateway refunds the difference. Refused after a ticket of the booking
/// was used, or while a refund of it is pending.
///
/// Exchange a booking for other seats, `{"show": …, "hold": …, "total_minor": 2500, "from_total_minor": 1250,
/// "reason": …}`, of the same show or another; the difference goes into your till, or back with a manager's PIN.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/exchange", tag = "box office",
    request_body = ExchangeRequest,
    params(("theatre" = String, Path), ("booking" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = CounterBooking), NotStaff,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking or show"),
        (status = 409, body = ProblemView, description = "wrong_state, till_closed, till_short, sales_closed, seats_taken"),
        (status = 410, body = ProblemView, description = "hold_expired"),
        (status = 422, body = ProblemView, description = "key_reused, pin_wrong"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
async fn swap(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, booking)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ExchangeRequest>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    // The stored request must not contain the PIN.
    let intent = intent(counter, key, &format!("bookings/{booking}/exchange"), &request.without_pin());
    exchange::exchange(&state, counter, booking, &request, &intent).await
}

//! Endpoints of the box office.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::api::box_office::{
    BookingQuery, CallerHold, CallerHoldView, CashUp, CashUpFor, CounterBooking, CounterShow, DayClose, DayQuery,
    DayView, DropRequest, ExchangeRequest, FoundAtCounter, GuestSeats, HouseSeats, ManagerView, OpenTill,
    PayOutRequest, PinRequest, PrintedTicket, Reason, RefundRequest, SaleRequest, SeatHolder, TillView,
};
use domain::api::{HoldView, ProblemView};
use domain::seats::SeatIndex;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{
    CounterStaff, caller_holds, exchange, find, guest_seats, house_seats, sell, shows, take_back, tickets, tills,
};
use crate::BackofficeState;
use catalogue::read_date;
use http::idempotency::{Answer, IdempotencyKey};
use http::problem::ApiResult;
use http::{ApiJson, ApiQuery, Code, Problem};
use identity::accounts::{self, BoxOffice, Managers, ShowPath, StaffMutation, StaffRequest};

/// The routes of the box office, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(my_till, open_till))
        .routes(routes!(drop_cash))
        .routes(routes!(cash_up))
        .routes(routes!(cash_up_for))
        .routes(routes!(of_the_day))
        .routes(routes!(close_day))
        .routes(routes!(managers))
        .routes(routes!(set_pin))
        .routes(routes!(today))
        .routes(routes!(sales))
        .routes(routes!(holder))
        .routes(routes!(keep_house_seats))
        .routes(routes!(take_for_guest))
        .routes(routes!(callers, hold_for_caller))
        .routes(routes!(release_caller_hold))
        .routes(routes!(find_booking))
        .routes(routes!(by_id))
        .routes(routes!(print))
        .routes(routes!(refund))
        .routes(routes!(undo))
        .routes(routes!(pay_out))
        .routes(routes!(exchange_booking))
}

/// The member of staff of a request, at the counter.
trait AtCounter {
    fn counter(&self) -> CounterStaff<'_>;
}

impl<R, P> AtCounter for StaffRequest<R, P> {
    fn counter(&self) -> CounterStaff<'_> {
        CounterStaff { staff: &self.staff, theatre: &self.theatre }
    }
}

#[derive(Deserialize)]
struct TillPath {
    till: Uuid,
}

/// Your open till with its ledger.
///
/// Your open till with its ledger; 204 without one.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/till", tag = "box office",
    responses((status = 200, body = TillView), (status = 204, description = "None is open")))]
async fn my_till(State(state): State<BackofficeState>, from: StaffRequest<BoxOffice>) -> ApiResult<Response> {
    Ok(match tills::mine(&state, from.counter()).await? {
        Some(till) => Json(till).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Open your till with its float.
///
/// Open your till with its float, `{"float_minor": 10000}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/till", tag = "box office", request_body = OpenTill,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = TillView), (status = 409, body = ProblemView, description = "till_open")))]
async fn open_till(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, (), OpenTill>,
) -> ApiResult<Answer> {
    tills::open(&state, mutation.from.counter(), mutation.body, &mutation.intent).await
}

/// Bring cash from your till to the safe.
///
/// Move cash to the safe, `{"amount_minor": 5000, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/till/drops", tag = "box office", request_body = DropRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = TillView),
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
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = TillView),
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
    request_body = CashUpFor, params(("Idempotency-Key" = String, Header)), responses((status = 200, body = TillView),
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
    responses((status = 200, body = Vec<TillView>)))]
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
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = DayView),
        (status = 409, body = ProblemView, description = "till_open, till_closed")))]
async fn close_day(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, (), DayClose>,
) -> ApiResult<Answer> {
    tills::close_day(&state, mutation.from.counter(), &mutation.body, &mutation.intent).await
}

/// Managers who can approve a refund.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/managers", tag = "box office",
    responses((status = 200, body = Vec<ManagerView>)))]
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
    params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 400, body = ProblemView, description = "malformed, key_missing, password_unusable"),
        (status = 401, body = ProblemView, description = "not_signed_in, login_failed")))]
async fn set_pin(
    State(state): State<BackofficeState>,
    from: StaffRequest<Managers>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<PinRequest>,
) -> ApiResult<Answer> {
    let intent = from.intent(key, &accounts::PinIntent::of(&state, &request));
    accounts::set_pin(&state, &from.staff, &from.theatre, &request, &intent).await
}

#[derive(Deserialize)]
struct SeatPath {
    show: Uuid,
    seat: SeatIndex,
}

#[derive(Deserialize)]
struct HoldPath {
    show: Uuid,
    hold: Uuid,
}

/// List the shows of a day with their current occupancy.
///
/// The shows of a day, `?date=YYYY-MM-DD`, and their current sales.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/shows", tag = "box office", params(DayQuery),
    responses((status = 200, body = Vec<CounterShow>)))]
async fn today(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice>,
    ApiQuery(query): ApiQuery<DayQuery>,
) -> ApiResult<Json<Vec<CounterShow>>> {
    let date = read_date(query.date.as_deref()).map_err(|why| Problem::new(Code::Malformed, why.to_string()))?;
    shows::today(&state, from.counter(), date).await.map(Json)
}

/// Sell what you hold in this show, for cash, by card, or for nothing.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/sales", tag = "box office",
    request_body = SaleRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = CounterBooking),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "till_closed, sales_closed, wrong_state, seats_taken"),
        (status = 410, body = ProblemView, description = "hold_expired"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn sales(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, SaleRequest>,
) -> ApiResult<Answer> {
    sell::sell(&state, mutation.from.counter(), mutation.from.path.show, &mutation.body, &mutation.intent).await
}

/// Find the holder of a seat: the hold, the booking, or the reason why the house keeps it.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/shows/{show}/seats/{seat}", tag = "box office",
    responses((status = 200, body = SeatHolder),
        (status = 400, body = ProblemView, description = "unknown_seat"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show")))]
async fn holder(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, SeatPath>,
) -> ApiResult<Json<SeatHolder>> {
    shows::holder_of(&state, from.counter(), from.path.show, from.path.seat).await.map(Json)
}

/// Keep seats off sale, or put them back.
///
/// Block seats or put them on sale, `{"seats": [46], "labels": ["C7"], "kept": true, "reason": …}`: with `labels`, none whose label has changed.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/house-seats", tag = "box office",
    request_body = HouseSeats, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "seats_taken, wrong_state"),
        (status = 423, body = ProblemView, description = "seats_locked")))]
async fn keep_house_seats(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, HouseSeats>,
) -> ApiResult<Answer> {
    house_seats::keep(&state, mutation.from.counter(), mutation.from.path.show, &mutation.body, &mutation.intent).await
}

/// Hold house seats for a guest: they are never on sale in between.
///
/// Hold house seats for a guest, `{"seats": [46], "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/house-seats/hold", tag = "box office",
    request_body = GuestSeats, params(("Idempotency-Key" = String, Header)), responses((status = 201, body = HoldView),
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "wrong_state, one_hold_per_show, sales_closed, seats_taken"),
        (status = 423, body = ProblemView, description = "seats_locked"),
        (status = 429, body = ProblemView, description = "person_limit"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn take_for_guest(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, GuestSeats>,
) -> ApiResult<Answer> {
    guest_seats::take(&state, mutation.from.counter(), mutation.from.path.show, &mutation.body, &mutation.intent).await
}

/// List the seats held for callers in a show.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/shows/{show}/caller-holds", tag = "box office",
    responses((status = 200, body = Vec<CallerHoldView>),
        (status = 404, body = ProblemView, description = "Also for another theatre's show")))]
async fn callers(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, ShowPath>,
) -> ApiResult<Json<Vec<CallerHoldView>>> {
    caller_holds::list(&state, from.counter(), from.path.show).await.map(Json)
}

/// Hold seats for a caller at the telephone.
///
/// Hold seats for a caller on the phone, `{"seats": [46], "name": …, "minutes": 60}`; sold like any hold.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/caller-holds", tag = "box office",
    request_body = CallerHold, params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = CallerHoldView),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "seats_taken, sales_closed, waiting_list_first, wrong_state"),
        (status = 423, body = ProblemView, description = "seats_locked")))]
async fn hold_for_caller(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, ShowPath, CallerHold>,
) -> ApiResult<Answer> {
    caller_holds::take(&state, mutation.from.counter(), mutation.from.path.show, &mutation.body, &mutation.intent).await
}

/// Release the seats of a caller.
///
/// Release the seats of a caller, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/caller-holds/{hold}/release",
    tag = "box office", request_body = Reason, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "wrong_state, hold_paying")))]
async fn release_caller_hold(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, HoldPath, Reason>,
) -> ApiResult<Answer> {
    caller_holds::release(
        &state,
        mutation.from.counter(),
        (mutation.from.path.show, mutation.from.path.hold),
        &mutation.body,
        &mutation.intent,
    )
    .await
}

#[derive(Deserialize)]
struct BookingPath {
    booking: Uuid,
}

/// Find a booking by its reference, as people read it aloud; or with `q` by a part of the customer's name or e-mail
/// address: the newest first, at most 20, of shows of the last 60 days and of the future. The audit list records the
/// search.
///
/// A booking by `?reference=K7QM-2XPA`; or by `?q=ann`, a part of a name or an e-mail address (2 to 100
/// characters), a list of `{"booking": …, "name": …, "email": …}`, newest first, 20 at most, of shows of the last
/// 60 days and to come; the audit log records the search with their references.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/bookings", tag = "box office", params(BookingQuery),
    responses((status = 200, body = FoundAtCounter),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking")))]
async fn find_booking(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice>,
    ApiQuery(query): ApiQuery<BookingQuery>,
) -> ApiResult<Json<FoundAtCounter>> {
    match (query.reference.trim(), query.q.trim()) {
        ("", "") => Err(Problem::new(Code::Malformed, "Which booking? Name its reference, or whose it is.")),
        ("", asked) => find::by_person(&state, from.counter(), asked).await.map(FoundAtCounter::Many).map(Json),
        (reference, "") => {
            let found = find::by_reference(&state, from.counter(), reference).await?;
            Ok(Json(FoundAtCounter::One(Box::new(found))))
        }
        _ => Err(Problem::new(Code::Malformed, "Name a reference or whose it is, not both.")),
    }
}

/// A booking.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/bookings/{booking}", tag = "box office",
    responses((status = 200, body = CounterBooking),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking")))]
async fn by_id(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, BookingPath>,
) -> ApiResult<Json<CounterBooking>> {
    find::by_id(&state, from.counter(), from.path.booking).await.map(Json)
}

/// The tickets of a booking, to be printed. Each print is in the audit list.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/tickets", tag = "box office",
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = Vec<PrintedTicket>),
        (status = 400, body = ProblemView, description = "key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "wrong_state")))]
async fn print(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, BookingPath>,
    key: IdempotencyKey,
) -> ApiResult<Answer> {
    let intent = from.intent(key, &());
    tickets::print(&state, from.counter(), from.path.booking, &intent).await
}

/// Refund a booking, or some of its seats, in full. A manager approves the refund with their PIN. Payments at the
/// counter are refunded from your till, gateway payments through the gateway.
///
/// Refund a booking, or the seats of `"seats"`, with a manager's PIN.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/refund", tag = "box office",
    request_body = RefundRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CounterBooking),
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "wrong_state, till_closed, till_short"),
        (status = 422, body = ProblemView, description = "key_reused, pin_wrong")))]
async fn refund(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, BookingPath>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<RefundRequest>,
) -> ApiResult<Answer> {
    // The stored request must not contain the PIN.
    let body = (&request.seats, &request.labels, &request.reason, request.manager);
    let intent = from.intent(key, &body);
    take_back::refund(&state, from.counter(), from.path.booking, &request, &intent).await
}

/// Undo your own sale of the last five minutes, out of the same till.
///
/// Undo your own sale of the last five minutes, unless one of its tickets was admitted, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/undo", tag = "box office",
    request_body = Reason, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CounterBooking),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "undo_too_late, till_closed, wrong_state")))]
async fn undo(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<BoxOffice, BookingPath, Reason>,
) -> ApiResult<Answer> {
    take_back::undo(&state, mutation.from.counter(), mutation.from.path.booking, &mutation.body, &mutation.intent).await
}

/// Pay out the refund that waits at the counter, for a counter booking whose show was cancelled. If the buyer cancelled,
/// a manager authorises it with their PIN.
///
/// Pay out the money that waits at the counter, `{"reason": …}`; with a manager's PIN if the buyer cancelled.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/pay-out", tag = "box office",
    request_body = PayOutRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CounterBooking),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking"),
        (status = 409, body = ProblemView, description = "wrong_state, till_closed, till_short"),
        (status = 422, body = ProblemView, description = "key_reused, pin_wrong")))]
async fn pay_out(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, BookingPath>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<PayOutRequest>,
) -> ApiResult<Answer> {
    // The stored request must not contain the PIN.
    let intent = from.intent(key, &request.without_pin());
    take_back::pay_out(&state, from.counter(), from.path.booking, &request, &intent).await
}

/// Exchange a sold booking for other seats, which you hold, in the same show or another. The old seats are returned,
/// and the difference in price goes into your till, or out of it with a manager's PIN. A booking that was paid online
/// must get seats that cost the same or less; the gateway refunds the difference. If the show of the booking has begun,
/// every exchange needs a manager's PIN. Refused after a ticket of the booking was used, or while a refund of it is
/// pending.
///
/// Exchange a booking for other seats, `{"show": …, "hold": …, "total_minor": 2500, "from_total_minor": 1250,
/// "reason": …}`, of the same show or another; the difference goes into your till, or back with a manager's PIN.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/bookings/{booking}/exchange", tag = "box office",
    request_body = ExchangeRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = CounterBooking),
        (status = 404, body = ProblemView, description = "Also for another theatre's booking or show"),
        (status = 409, body = ProblemView, description = "wrong_state, till_closed, till_short, sales_closed, seats_taken"),
        (status = 410, body = ProblemView, description = "hold_expired"),
        (status = 422, body = ProblemView, description = "key_reused, pin_wrong")))]
async fn exchange_booking(
    State(state): State<BackofficeState>,
    from: StaffRequest<BoxOffice, BookingPath>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ExchangeRequest>,
) -> ApiResult<Answer> {
    // The stored request must not contain the PIN.
    let intent = from.intent(key, &request.without_pin());
    exchange::exchange(&state, from.counter(), from.path.booking, &request, &intent).await
}

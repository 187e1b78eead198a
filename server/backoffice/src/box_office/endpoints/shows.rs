//! Shows at the counter: occupancy, sales, seat holders, house seats and callers' holds.

use axum::Json;
use axum::extract::State;
use domain::api::box_office::{
    CallerHold, CallerHoldView, CounterBooking, CounterShow, DayQuery, GuestSeats, HouseSeats, Reason, SaleRequest,
    SeatHolder,
};
use domain::api::{HoldView, ProblemView};
use domain::seats::SeatIndex;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{COUNTER, at, intent};
use crate::BackofficeState;
use crate::box_office::{caller_holds, guest_seats, holders, house_seats, sell, shows};
use catalogue::read_date;
use http::idempotency::{Answer, IdempotencyKey};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath, ApiQuery, Code, Problem};
use identity::accounts::Staff;

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(today))
        .routes(routes!(sales))
        .routes(routes!(holder))
        .routes(routes!(house))
        .routes(routes!(take_for_guest))
        .routes(routes!(callers, hold_for_caller))
        .routes(routes!(let_caller_go))
}

/// List the shows of a day with their current occupancy.
///
/// The shows of a day, `?date=YYYY-MM-DD`, and their current sales.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/shows", tag = "box office",
    params(("theatre" = String, Path), DayQuery),
    responses((status = 200, body = Vec<CounterShow>), NotStaff, OtherTheatre,
        (status = 400, body = ProblemView, description = "malformed")))]
async fn today(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<DayQuery>,
) -> ApiResult<Json<Vec<CounterShow>>> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let date = read_date(query.date.as_deref()).map_err(|why| Problem::new(Code::Malformed, why.to_string()))?;
    shows::today(&state, counter, date).await.map(Json)
}

/// Sell what you hold in this show, for cash, by card, or for nothing.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/sales", tag = "box office",
    request_body = SaleRequest,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = CounterBooking), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "till_closed, sales_closed, wrong_state, seats_taken"),
        (status = 410, body = ProblemView, description = "hold_expired"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn sales(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<SaleRequest>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("shows/{show}/sales"), &request);
    sell::sell(&state, counter, show, &request, &intent).await
}

/// Find the holder of a seat: the hold, the booking, or the reason why the house keeps it.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/shows/{show}/seats/{seat}", tag = "box office",
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("seat" = u32, Path)),
    responses((status = 200, body = SeatHolder), NotStaff,
        (status = 400, body = ProblemView, description = "unknown_seat"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show")))]
async fn holder(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show, seat)): ApiPath<(String, Uuid, SeatIndex)>,
) -> ApiResult<Json<SeatHolder>> {
    let counter = at(&staff, &theatre, COUNTER)?;
    holders::of_seat(&state, counter, show, seat).await.map(Json)
}

/// Keep seats off sale, or put them back.
///
/// Block seats or put them on sale, `{"seats": [46], "kept": true, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/house-seats", tag = "box office",
    request_body = HouseSeats,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "seats_taken"),
        (status = 423, body = ProblemView, description = "seats_locked")))]
async fn house(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<HouseSeats>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("shows/{show}/house-seats"), &request);
    house_seats::keep(&state, counter, show, &request, &intent).await
}

/// Hold house seats for a guest: they are never on sale in between.
///
/// Hold house seats for a guest, `{"seats": [46], "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/house-seats/hold", tag = "box office",
    request_body = GuestSeats,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = HoldView), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "wrong_state, one_hold_per_show, sales_closed, seats_taken"),
        (status = 423, body = ProblemView, description = "seats_locked"),
        (status = 429, body = ProblemView, description = "person_limit"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn take_for_guest(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<GuestSeats>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("shows/{show}/house-seats/hold"), &request);
    guest_seats::take(&state, counter, show, &request, &intent).await
}

/// List the seats held for callers in a show.
#[utoipa::path(get, path = "/theatres/{theatre}/box-office/shows/{show}/caller-holds", tag = "box office",
    params(("theatre" = String, Path), ("show" = Uuid, Path)),
    responses((status = 200, body = Vec<CallerHoldView>), NotStaff,
        (status = 404, body = ProblemView, description = "Also for another theatre's show")))]
async fn callers(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
) -> ApiResult<Json<Vec<CallerHoldView>>> {
    caller_holds::list(&state, at(&staff, &theatre, COUNTER)?, show).await.map(Json)
}

/// Hold seats for a caller at the telephone.
///
/// Hold seats for a caller on the phone, `{"seats": [46], "name": …, "minutes": 60}`; sold like any hold.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/caller-holds", tag = "box office",
    request_body = CallerHold,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = CallerHoldView), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "seats_taken, sales_closed, waiting_list_first, wrong_state"),
        (status = 423, body = ProblemView, description = "seats_locked")))]
async fn hold_for_caller(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<CallerHold>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("shows/{show}/caller-holds"), &request);
    caller_holds::take(&state, counter, show, &request, &intent).await
}

/// Release the seats of a caller.
///
/// Release the seats of a caller, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/box-office/shows/{show}/caller-holds/{hold}/release", tag = "box office",
    request_body = Reason,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("hold" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 204), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "Also for another theatre's show"),
        (status = 409, body = ProblemView, description = "wrong_state, hold_paying")))]
async fn let_caller_go(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show, hold)): ApiPath<(String, Uuid, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<Reason>,
) -> ApiResult<Answer> {
    let counter = at(&staff, &theatre, COUNTER)?;
    let intent = intent(counter, key, &format!("shows/{show}/caller-holds/{hold}/release"), &request);
    caller_holds::release(&state, counter, (show, hold), &request, &intent).await
}

//! Films, prices and shows.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::moving::{MovePreview, MoveQuery, MoveRequest};
use domain::api::organiser::{
    CancelShowRequest, DefectiveSeatsRequest, DefectiveSeatsView, FilmChoice, FilmRequest, OrganisedShow, PlannedShows,
    ShowsRequest, TariffRequest, TariffView, TermsRequest, WeekQuery,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::BackofficeState;
use crate::organiser::{OrganiserAction, ROLES, films as all_films, shows, tariffs};
use http::idempotency::{IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath, ApiQuery};
use identity::accounts::Staff;

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(films, add_film))
        .routes(routes!(tariff, set_tariff))
        .routes(routes!(week, plan))
        .routes(routes!(show))
        .routes(routes!(terms))
        .routes(routes!(cancel))
        .routes(routes!(defective_seats))
        .routes(routes!(look_at_move, start_move))
}

/// Films to choose from.
#[utoipa::path(get, path = "/theatres/{theatre}/films", tag = "organiser", params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<FilmChoice>), NotStaff, OtherTheatre))]
async fn films(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<FilmChoice>>> {
    staff.at(&theatre, ROLES)?;
    all_films::list(&state).await.map(Json)
}

/// Add a film to the list of all theatres.
#[utoipa::path(post, path = "/theatres/{theatre}/films", tag = "organiser", request_body = FilmRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = FilmChoice), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn add_film(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<FilmRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/films"), &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(all_films::add(&state, &action, &request).await?.into_response())
}

/// The prices of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/tariff", tag = "organiser", params(("theatre" = String, Path)),
    responses((status = 200, body = TariffView), NotStaff, OtherTheatre))]
async fn tariff(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<TariffView>> {
    staff.at(&theatre, ROLES)?;
    tariffs::current(&state, &theatre).await.map(Json)
}

/// Set the prices for shows planned from now on.
///
/// Set the prices for shows planned from now on; names the `version` they were based on.
#[utoipa::path(post, path = "/theatres/{theatre}/tariff", tag = "organiser", request_body = TariffRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = TariffView), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "price_invalid, malformed, key_missing"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn set_tariff(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<TariffRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/tariff"), &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(tariffs::set(&state, &action, &request).await?.into_response())
}

/// Seven days of your theatre's programme, with planned shows, sales and cancellations.
///
/// Seven days from `?from=2026-12-07`, with sales and cancellations.
#[utoipa::path(get, path = "/theatres/{theatre}/programme", tag = "organiser",
    params(("theatre" = String, Path), WeekQuery),
    responses((status = 200, body = Vec<OrganisedShow>), NotStaff, OtherTheatre,
        (status = 400, body = ProblemView, description = "malformed")))]
async fn week(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<WeekQuery>,
) -> ApiResult<Json<Vec<OrganisedShow>>> {
    staff.at(&theatre, ROLES)?;
    Ok(Json(shows::week(&state, &theatre, query.from.as_deref()).await?.1))
}

/// Plan weeks of shows by a pattern, all or none.
#[utoipa::path(post, path = "/theatres/{theatre}/programme", tag = "organiser", request_body = ShowsRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = PlannedShows), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "no_such_time, price_invalid, malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such screen or film; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "shows_overlap, wrong_state, still_running")))]
async fn plan(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ShowsRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/programme"), &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(shows::plan(&state, &action, &request).await?.into_response())
}

/// A show of your theatre; if it was called off, with the progress of its refunds.
#[utoipa::path(get, path = "/theatres/{theatre}/programme/{show}", tag = "organiser",
    params(("theatre" = String, Path), ("show" = Uuid, Path)),
    responses((status = 200, body = OrganisedShow), NotStaff, OtherTheatre))]
async fn show(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
) -> ApiResult<Json<OrganisedShow>> {
    staff.at(&theatre, ROLES)?;
    shows::show(&state, &theatre, show).await.map(Json)
}

/// Open or pause sales, change the terms of holds and the limit per person; and prices, while sales are closed.
///
/// Open or pause the sales of a show, change holds and limits; prices while no seats can be taken.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/terms", tag = "organiser", request_body = TermsRequest,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = OrganisedShow), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "no_such_time, price_invalid, malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "sales_closed, wrong_state, still_running")))]
async fn terms(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<TermsRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let path = format!("POST /theatres/{theatre}/programme/{show}/terms");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(shows::change_terms(&state, &action, show, &request).await?.into_response())
}

/// Call a show off: sales stop, and every buyer is refunded in full.
///
/// Call a show off, `{"reason": …}`: every buyer gets a full refund.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/cancel", tag = "organiser", request_body = CancelShowRequest,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202, body = OrganisedShow), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn cancel(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<CancelShowRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let path = format!("POST /theatres/{theatre}/programme/{show}/cancel");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(shows::call_off(&state, &action, show, &request).await?.into_response())
}

/// Take defective seats out of sale at once, in this show or in every planned show of its screen: their buyers are
/// refunded with a notice, holds lose them, and the waiting list is not offered one.
///
/// Take defective seats off sale and refund their buyers, `{"seats": ["C7"], "all_shows": false, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/defective-seats", tag = "organiser",
    request_body = DefectiveSeatsRequest,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses(
        (status = 202, body = DefectiveSeatsView, description = "Out of sale; bookings are undone within seconds"),
        NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state: it has begun, was called off or is being moved; still_running")))]
async fn defective_seats(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<DefectiveSeatsRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let path = format!("POST /theatres/{theatre}/programme/{show}/defective-seats");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(shows::withdraw_seats(&state, &action, show, &request).await?.into_response())
}

/// Preview the move of a show to another screen of the theatre: the outcome for its buyers as of now.
///
/// A preview of relocating a show to `?screen=` now.
#[utoipa::path(get, path = "/theatres/{theatre}/programme/{show}/move", tag = "organiser",
    params(("theatre" = String, Path), ("show" = Uuid, Path), MoveQuery),
    responses((status = 200, body = MovePreview), NotStaff,
        (status = 400, body = ProblemView, description = "price_invalid: a category of that room has none, malformed"),
        (status = 404, body = ProblemView, description = "No such show or screen; also for another theatre's"),
        (status = 409, body = ProblemView, description = "shows_overlap, wrong_state: it is there already")))]
async fn look_at_move(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    ApiQuery(query): ApiQuery<MoveQuery>,
) -> ApiResult<Json<MovePreview>> {
    staff.at(&theatre, ROLES)?;
    shows::preview_move(&state, &theatre, show, &query.screen).await.map(Json)
}

/// Move a show to another screen of the theatre. Bookings whose places exist there keep them. The others are offered
/// places that are no worse, or are refunded.
///
/// Relocate a show to another screen, `{"screen": …, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/move", tag = "organiser", request_body = MoveRequest,
    params(("theatre" = String, Path), ("show" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202, body = OrganisedShow, description = "Continues in the background: `moved` has the progress"),
        NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "price_invalid, malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such show or screen; also for another theatre's"),
        (status = 409, body = ProblemView, description = "shows_overlap, wrong_state, sales_closed, still_running")))]
async fn start_move(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, show)): ApiPath<(String, Uuid)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<MoveRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let path = format!("POST /theatres/{theatre}/programme/{show}/move");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(shows::move_show(&state, &action, show, &request).await?.into_response())
}

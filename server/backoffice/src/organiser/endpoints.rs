//! Endpoints of organisers, all but one under `/theatres/{theatre}`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::moving::{MovePreview, MoveQuery, MoveRequest};
use domain::api::organiser::{
    CancelShowRequest, DefectiveSeatsRequest, DefectiveSeatsView, FileForm, FileQuery, FilmChoice, FilmRequest,
    LayoutImport, LayoutView, OrganisedShow, PlannedShows, PublishRequest, ScreenHouseSeats, ScreenHouseSeatsRequest,
    ScreenRequest, ScreenView, ShowsRequest, TariffRequest, TariffView, TermsRequest, WeekQuery,
};
use domain::api::theatres::{ManagedTheatre, TheatreChange, TheatreRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{films as all_films, layouts, screens, shows, standing, tariffs, theatres};
use crate::BackofficeState;
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::{ApiJson, ApiQuery, Code, Problem};
use identity::accounts::{Managers, Organisers, ShowPath, Staff, StaffAction, StaffMutation, StaffRequest};

#[derive(Deserialize)]
struct ScreenPath {
    screen: String,
}

/// The routes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    let files = OpenApiRouter::new().routes(routes!(import)).layer(DefaultBodyLimit::max(layouts::MAX_FILE_BYTES));
    OpenApiRouter::new()
        .routes(routes!(list_screens, create_screen))
        .routes(routes!(publish))
        .routes(routes!(layout))
        .routes(routes!(file))
        .merge(files)
        .routes(routes!(standing_seats, keep_standing_seats))
        .routes(routes!(films, add_film))
        .routes(routes!(tariff, set_tariff))
        .routes(routes!(week, plan))
        .routes(routes!(show))
        .routes(routes!(terms))
        .routes(routes!(cancel))
        .routes(routes!(defective_seats))
        .routes(routes!(preview_move, start_move))
        .routes(routes!(create_theatre))
        .routes(routes!(theatre, change_theatre))
}

#[derive(Deserialize)]
struct LayoutPath {
    layout: Uuid,
}

/// The screens of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/screens", tag = "organiser",
    responses((status = 200, body = Vec<ScreenView>)))]
async fn list_screens(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers>,
) -> ApiResult<Json<Vec<ScreenView>>> {
    screens::list(&state, &from.theatre).await.map(Json)
}

/// Create a screen with an imported layout.
///
/// Add a screen with an imported layout: `{"name": …, "layout": …, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/screens", tag = "organiser", request_body = ScreenRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = ScreenView),
        (status = 404, body = ProblemView, description = "No such room; also for another theatre's staff")))]
async fn create_screen(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, (), ScreenRequest>,
) -> ApiResult<Answer> {
    screens::create(&state, &mutation.action(&mutation.body.reason), &mutation.body).await
}

/// Give a screen another layout. Planned shows keep theirs.
///
/// Use another layout for shows planned from now on, `{"layout": …, "reason": …}`; planned shows keep theirs.
/// `house_seats_gone` names house seats that it lacks.
#[utoipa::path(post, path = "/theatres/{theatre}/screens/{screen}/layout", tag = "organiser",
    request_body = PublishRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ScreenView),
        (status = 404, body = ProblemView, description = "No such screen or room; also for another theatre's staff")))]
async fn publish(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, ScreenPath, PublishRequest>,
) -> ApiResult<Answer> {
    screens::publish(&state, &mutation.action(&mutation.body.reason), &mutation.from.path.screen, &mutation.body).await
}

/// Import a layout: the public seating-plan JSON, or our own layout file. The answer lists all errors of the file; a
/// refused file is not stored.
#[utoipa::path(post, path = "/theatres/{theatre}/layouts", tag = "organiser", request_body = LayoutImport,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = LayoutView),
        (status = 400, body = ProblemView, description = "layout_refused with `findings`, malformed, key_missing")))]
async fn import(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers>,
    key: IdempotencyKey,
    request: Request,
) -> ApiResult<Answer> {
    if !is_json(request.headers()) {
        return Err(Problem::new(Code::NotJson, "Send it with `Content-Type: application/json`."));
    }
    let (body, _slot) = layouts::read_upload(Bytes::from_request(request, &state)).await?;
    let (file, digest) = layouts::File::Request(body?).digested().await?;
    let intent = from.intent(key, &digest);
    let action = StaffAction { staff: &from.staff, theatre: &from.theatre, intent: &intent, reason: layouts::REASON };
    layouts::import(&state, &action, file).await
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// A layout that was imported in the theatre, or that one of its screens has.
#[utoipa::path(get, path = "/theatres/{theatre}/layouts/{layout}", tag = "organiser",
    responses((status = 200, body = LayoutView)))]
async fn layout(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers, LayoutPath>,
) -> ApiResult<Json<LayoutView>> {
    Ok(Json(layouts::room(&state, &from.theatre, from.path.layout).await?.view))
}

/// Export a layout as a file.
///
/// The layout as a file: `?form=seating_plan` (the public JSON) or `own` (as imported).
#[utoipa::path(get, path = "/theatres/{theatre}/layouts/{layout}/file", tag = "organiser", params(FileQuery),
    responses((status = 200, description = "The file, JSON")))]
async fn file(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers, LayoutPath>,
    ApiQuery(query): ApiQuery<FileQuery>,
) -> ApiResult<Response> {
    let room = layouts::room(&state, &from.theatre, from.path.layout).await?;
    let written = match query.form {
        FileForm::SeatingPlan => serde_json::to_vec_pretty(&room.layout.to_seating_plan()),
        FileForm::Own => serde_json::to_vec_pretty(&room.layout),
    };
    let written = written.map_err(|cause| Problem::internal(&cause))?;
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"layout-{}.json\"", from.path.layout)),
    ];
    Ok((headers, written).into_response())
}

/// Seats the house keeps in every show planned on this screen.
#[utoipa::path(get, path = "/theatres/{theatre}/screens/{screen}/house-seats", tag = "organiser",
    responses((status = 200, body = ScreenHouseSeats),
        (status = 404, body = ProblemView, description = "No such screen; also for another theatre's staff")))]
async fn standing_seats(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers, ScreenPath>,
) -> ApiResult<Json<ScreenHouseSeats>> {
    standing::list(&state, &from.theatre, &from.path.screen).await.map(Json)
}

/// Keep seats for the house in every show planned on this screen from now on, or put them back.
///
/// Block or unblock seats in shows planned from now on, `{"layout": …, "seats": ["A1"], "kept": true, "reason":
/// "Press"}`.
#[utoipa::path(post, path = "/theatres/{theatre}/screens/{screen}/house-seats", tag = "organiser",
    request_body = ScreenHouseSeatsRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ScreenHouseSeats),
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "No such screen or room; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn keep_standing_seats(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, ScreenPath, ScreenHouseSeatsRequest>,
) -> ApiResult<Answer> {
    standing::keep(&state, &mutation.action(&mutation.body.reason), &mutation.from.path.screen, &mutation.body).await
}

/// Films to choose from.
#[utoipa::path(get, path = "/theatres/{theatre}/films", tag = "organiser",
    responses((status = 200, body = Vec<FilmChoice>)))]
async fn films(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers>,
) -> ApiResult<Json<Vec<FilmChoice>>> {
    all_films::list(&state, &from.theatre).await.map(Json)
}

/// Add a film to the list of all theatres.
#[utoipa::path(post, path = "/theatres/{theatre}/films", tag = "organiser", request_body = FilmRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = FilmChoice)))]
async fn add_film(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, (), FilmRequest>,
) -> ApiResult<Answer> {
    all_films::add(&state, &mutation.action(&mutation.body.reason), &mutation.body).await
}

/// The prices of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/tariff", tag = "organiser",
    responses((status = 200, body = TariffView)))]
async fn tariff(State(state): State<BackofficeState>, from: StaffRequest<Organisers>) -> ApiResult<Json<TariffView>> {
    tariffs::current(&state, &from.theatre).await.map(Json)
}

/// Set the prices for shows planned from now on.
///
/// Set the prices for shows planned from now on; names the `version` they were based on.
#[utoipa::path(post, path = "/theatres/{theatre}/tariff", tag = "organiser", request_body = TariffRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = TariffView),
        (status = 400, body = ProblemView, description = "price_invalid, malformed, key_missing"),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn set_tariff(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, (), TariffRequest>,
) -> ApiResult<Answer> {
    tariffs::set(&state, &mutation.action(&mutation.body.reason), &mutation.body).await
}

/// Seven days of your theatre's programme, with planned shows, sales and cancellations.
///
/// Seven days from `?from=2026-12-07`, with sales and cancellations.
#[utoipa::path(get, path = "/theatres/{theatre}/programme", tag = "organiser", params(WeekQuery),
    responses((status = 200, body = Vec<OrganisedShow>)))]
async fn week(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers>,
    ApiQuery(query): ApiQuery<WeekQuery>,
) -> ApiResult<Json<Vec<OrganisedShow>>> {
    Ok(Json(shows::week(&state, &from.theatre, query.from.as_deref()).await?.shows))
}

/// Plan weeks of shows by a pattern, all or none.
#[utoipa::path(post, path = "/theatres/{theatre}/programme", tag = "organiser", request_body = ShowsRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = PlannedShows),
        (status = 400, body = ProblemView, description = "no_such_time, price_invalid, malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such screen or film; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "shows_overlap, wrong_state, still_running")))]
async fn plan(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, (), ShowsRequest>,
) -> ApiResult<Answer> {
    shows::plan(&state, &mutation.action(&mutation.body.reason), &mutation.body).await
}

/// A show of your theatre; if it was cancelled, with the progress of its refunds.
#[utoipa::path(get, path = "/theatres/{theatre}/programme/{show}", tag = "organiser",
    responses((status = 200, body = OrganisedShow)))]
async fn show(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers, ShowPath>,
) -> ApiResult<Json<OrganisedShow>> {
    shows::show(&state, &from.theatre, from.path.show).await.map(Json)
}

/// Open or pause sales, change the terms of holds and the limit per person; and prices, while sales are closed.
///
/// Open or pause the sales of a show, change holds and limits; prices while no seats can be taken.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/terms", tag = "organiser",
    request_body = TermsRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = OrganisedShow),
        (status = 400, body = ProblemView, description = "no_such_time, price_invalid, malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "sales_closed, wrong_state, still_running")))]
async fn terms(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, ShowPath, TermsRequest>,
) -> ApiResult<Answer> {
    shows::change_terms(&state, &mutation.action(&mutation.body.reason), mutation.from.path.show, &mutation.body).await
}

/// Call a show off before it begins: sales stop, and every buyer is refunded in full.
///
/// Call a show off, `{"reason": …}`: every buyer gets a full refund.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/cancel", tag = "organiser",
    request_body = CancelShowRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = OrganisedShow),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "sales_closed, wrong_state, still_running")))]
async fn cancel(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, ShowPath, CancelShowRequest>,
) -> ApiResult<Answer> {
    shows::call_off(&state, &mutation.action(&mutation.body.reason), mutation.from.path.show, &mutation.body).await
}

/// Take defective seats out of sale at once, in this show or in every planned show of its screen: their buyers are
/// refunded with a notice, holds lose them, and the waiting list is not offered one.
///
/// Take defective seats off sale and refund their buyers, `{"seats": ["C7"], "all_shows": false, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/defective-seats", tag = "organiser",
    request_body = DefectiveSeatsRequest, params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = DefectiveSeatsView, description = "Out of sale; bookings are undone within seconds"),
        (status = 400, body = ProblemView, description = "malformed, key_missing, unknown_seat, seat_twice"),
        (status = 404, body = ProblemView, description = "No such show; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "wrong_state: it has begun, was cancelled or is being moved; still_running")))]
async fn defective_seats(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, ShowPath, DefectiveSeatsRequest>,
) -> ApiResult<Answer> {
    shows::withdraw_seats(&state, &mutation.action(&mutation.body.reason), mutation.from.path.show, &mutation.body)
        .await
}

/// Preview the move of a show to another screen of the theatre: the outcome for its buyers as of now.
///
/// A preview of relocating a show to `?screen=` now.
#[utoipa::path(get, path = "/theatres/{theatre}/programme/{show}/move", tag = "organiser", params(MoveQuery),
    responses((status = 200, body = MovePreview),
        (status = 400, body = ProblemView, description = "price_invalid: a category of that room has none, malformed"),
        (status = 404, body = ProblemView, description = "No such show or screen; also for another theatre's"),
        (status = 409, body = ProblemView, description = "shows_overlap, wrong_state: it is there already")))]
async fn preview_move(
    State(state): State<BackofficeState>,
    from: StaffRequest<Organisers, ShowPath>,
    ApiQuery(query): ApiQuery<MoveQuery>,
) -> ApiResult<Json<MovePreview>> {
    shows::preview_move(&state, &from.theatre, from.path.show, &query.screen).await.map(Json)
}

/// Move a show to another screen of the theatre. Bookings whose places exist there keep them. The others are offered
/// places that are no worse, or are refunded. A draft also moves to another start, at once.
///
/// Relocate a show to another screen, `{"screen": …, "reason": …}`; with a `start` move a draft to another time.
#[utoipa::path(post, path = "/theatres/{theatre}/programme/{show}/move", tag = "organiser", request_body = MoveRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = OrganisedShow, description = "A draft with its new start"),
        (status = 202, body = OrganisedShow, description = "Continues in the background: `moved` has the progress"),
        (status = 400, body = ProblemView, description = "no_such_time, price_invalid, malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such show or screen; also for another theatre's"),
        (status = 409, body = ProblemView, description = "shows_overlap, wrong_state, sales_closed, still_running")))]
async fn start_move(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Organisers, ShowPath, MoveRequest>,
) -> ApiResult<Answer> {
    shows::move_show(&state, &mutation.action(&mutation.body.reason), mutation.from.path.show, &mutation.body).await
}

/// Create a theatre, in a known city or a new one. You become its manager.
///
/// Add a theatre, in an existing `city` or a `new_city`.
#[utoipa::path(post, path = "/theatres", tag = "organiser", request_body = TheatreRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = ManagedTheatre), (status = 404, body = ProblemView, description = "No such city")))]
async fn create_theatre(
    State(state): State<BackofficeState>,
    staff: Staff,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<TheatreRequest>,
) -> ApiResult<Answer> {
    let intent = Intent::new(&staff.session.owner, key, "POST /theatres", &request);
    theatres::create(&state, &staff, &intent, &request).await
}

/// The details of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}", tag = "organiser", responses((status = 200, body = ManagedTheatre)))]
async fn theatre(
    State(state): State<BackofficeState>,
    from: StaffRequest<Managers>,
) -> ApiResult<Json<ManagedTheatre>> {
    theatres::one(&state, &from.theatre).await.map(Json)
}

/// Change the details of your theatre. The currency can change only before anything is planned or sold.
///
/// Change the name, the address, and while nothing is planned or sold the currency of a theatre.
#[utoipa::path(post, path = "/theatres/{theatre}", tag = "organiser", request_body = TheatreChange,
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = ManagedTheatre),
        (status = 409, body = ProblemView, description = "wrong_state, still_running")))]
async fn change_theatre(
    State(state): State<BackofficeState>,
    mutation: StaffMutation<Managers, (), TheatreChange>,
) -> ApiResult<Answer> {
    theatres::change(&state, &mutation.action(&mutation.body.reason), &mutation.body).await
}

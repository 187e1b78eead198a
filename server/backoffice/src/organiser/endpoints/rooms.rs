//! Screens and their layouts.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::organiser::{
    FileForm, FileQuery, LayoutImport, LayoutView, PublishRequest, ScreenRequest, ScreenView,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::BackofficeState;
use crate::organiser::{OrganiserAction, ROLES, layouts, screens};
use http::idempotency::{IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::{KeyReused, NotStaff, OtherTheatre};
use http::{ApiJson, ApiPath, ApiQuery, Code, Problem};
use identity::accounts::Staff;

pub(super) fn routes() -> OpenApiRouter<BackofficeState> {
    let files = OpenApiRouter::new().routes(routes!(import)).layer(DefaultBodyLimit::max(layouts::MAX_FILE_BYTES));
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(publish))
        .routes(routes!(layout))
        .routes(routes!(file))
        .merge(files)
}

/// The screens of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/screens", tag = "organiser", params(("theatre" = String, Path)),
    responses((status = 200, body = Vec<ScreenView>), NotStaff, OtherTheatre))]
async fn list(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
) -> ApiResult<Json<Vec<ScreenView>>> {
    staff.at(&theatre, ROLES)?;
    screens::list(&state, &theatre).await.map(Json)
}

/// Create a screen with an imported layout.
///
/// Add a screen with an imported layout: `{"name": …, "layout": …, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/screens", tag = "organiser", request_body = ScreenRequest,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = ScreenView), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such room; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn create(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ScreenRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/screens"), &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(screens::create(&state, &action, &request).await?.into_response())
}

/// Give a screen another layout. Planned shows keep theirs.
///
/// Use another layout for shows planned from now on, `{"layout": …, "reason": …}`; planned shows keep theirs.
/// `house_seats_gone` names house seats that it lacks.
#[utoipa::path(post, path = "/theatres/{theatre}/screens/{screen}/layout", tag = "organiser", request_body = PublishRequest,
    params(("theatre" = String, Path), ("screen" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ScreenView), NotStaff, KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 404, body = ProblemView, description = "No such screen or room; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "still_running")))]
async fn publish(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, screen)): ApiPath<(String, String)>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<PublishRequest>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let path = format!("POST /theatres/{theatre}/screens/{screen}/layout");
    let intent = Intent::new(&staff.session.owner, key, &path, &request);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
    Ok(screens::publish(&state, &action, &screen, &request).await?.into_response())
}

/// Import a layout: the public seating-plan JSON, or our own layout file. The answer lists all errors of the file; a
/// refused file is not stored.
#[utoipa::path(post, path = "/theatres/{theatre}/layouts", tag = "organiser", request_body = LayoutImport,
    params(("theatre" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 201, body = LayoutView), NotStaff, OtherTheatre, KeyReused,
        (status = 400, body = ProblemView, description = "layout_refused with `findings`, malformed, key_missing"),
        (status = 409, body = ProblemView, description = "still_running"),
        (status = 413, body = ProblemView, description = "too_large"),
        (status = 415, body = ProblemView, description = "not_json"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn import(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath(theatre): ApiPath<String>,
    key: IdempotencyKey,
    request: Request,
) -> ApiResult<Response> {
    // The body is large: check the role before reading it.
    staff.at(&theatre, ROLES)?;
    if !is_json(request.headers()) {
        return Err(Problem::new(Code::NotJson, "Send it with `Content-Type: application/json`."));
    }
    let (file, digest) = layouts::File::Request(Bytes::from_request(request, &state).await?).digested().await?;
    let intent = Intent::new(&staff.session.owner, key, &format!("POST /theatres/{theatre}/layouts"), &digest);
    let action = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: layouts::REASON };
    Ok(layouts::import(&state, &action, file).await?.into_response())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// A layout that was imported in the theatre, or that one of its screens has.
#[utoipa::path(get, path = "/theatres/{theatre}/layouts/{layout}", tag = "organiser",
    params(("theatre" = String, Path), ("layout" = Uuid, Path)),
    responses((status = 200, body = LayoutView), NotStaff, OtherTheatre))]
async fn layout(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, layout)): ApiPath<(String, Uuid)>,
) -> ApiResult<Json<LayoutView>> {
    staff.at(&theatre, ROLES)?;
    Ok(Json(layouts::room(&state, &theatre, layout).await?.view))
}

/// Export a layout as a file.
///
/// The layout as a file: `?form=seating_plan` (the public JSON) or `own` (as imported).
#[utoipa::path(get, path = "/theatres/{theatre}/layouts/{layout}/file", tag = "organiser",
    params(("theatre" = String, Path), ("layout" = Uuid, Path), FileQuery),
    responses((status = 200, description = "The file, JSON"), NotStaff, OtherTheatre))]
async fn file(
    State(state): State<BackofficeState>,
    staff: Staff,
    ApiPath((theatre, layout)): ApiPath<(String, Uuid)>,
    ApiQuery(query): ApiQuery<FileQuery>,
) -> ApiResult<Response> {
    staff.at(&theatre, ROLES)?;
    let room = layouts::room(&state, &theatre, layout).await?;
    let written = match query.form {
        FileForm::SeatingPlan => serde_json::to_vec_pretty(&room.layout.to_seating_plan()),
        FileForm::Own => serde_json::to_vec_pretty(&room.layout),
    };
    let written = written.map_err(|cause| Problem::internal(&cause))?;
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"layout-{layout}.json\"")),
    ];
    Ok((headers, written).into_response())
}

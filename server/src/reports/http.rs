//! Endpoints of reports: for managers and organisers, and for programs with a key of the theatre.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api_reports::{FunnelReport, OccupancyReport, ReportQuery, SalesReport, TakingsReport};
use domain::roles::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::range::Range;
use super::tables::{self, Table};
use crate::AppState;
use crate::api_keys::Caller;
use crate::web::problem::ApiResult;
use crate::web::{ApiPath, ApiQuery, Problem};

/// Who reads reports.
const READERS: &[Role] = &[Role::Manager, Role::Organiser];

/// The routes of reports, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(sales))
        .routes(routes!(funnel))
        .routes(routes!(takings))
        .routes(routes!(occupancy))
        .routes(routes!(file))
}

/// The days somebody asks for, if they may.
async fn range_for(state: &AppState, caller: &Caller, theatre: &str, query: &ReportQuery) -> Result<Range, Problem> {
    caller.at(theatre, READERS)?;
    let found = state.catalogue.theatre(theatre).await?.ok_or_else(|| Problem::not_found("theatre"))?;
    Range::read(query, &found.time_zone, state.locks.now())
}

/// What your theatre sold: by day, channel, category, film and show. For managers and organisers.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/sales", tag = "reports",
    params(("theatre" = String, Path), ReportQuery),
    responses((status = 200, body = SalesReport), (status = 400, body = ProblemView, description = "malformed: also more than 92 days"),
        (status = 401, body = ProblemView, description = "not_signed_in, token_invalid"),
        (status = 403, body = ProblemView, description = "not_allowed"),
        (status = 404, body = ProblemView, description = "Also for another theatre's staff"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn sales(
    State(state): State<AppState>,
    caller: Caller,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<ReportQuery>,
) -> ApiResult<Json<SalesReport>> {
    let range = range_for(&state, &caller, &theatre, &query).await?;
    super::sales(&state, &theatre, &range).await.map(Json)
}

/// How far people came, from the first hold to the ticket, and where they were lost. For managers and organisers.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/funnel", tag = "reports",
    params(("theatre" = String, Path), ReportQuery),
    responses((status = 200, body = FunnelReport), (status = 400, body = ProblemView, description = "malformed"),
        (status = 401, body = ProblemView, description = "not_signed_in, token_invalid"),
        (status = 403, body = ProblemView, description = "not_allowed"),
        (status = 404, body = ProblemView, description = "Also for another theatre's staff"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn funnel(
    State(state): State<AppState>,
    caller: Caller,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<ReportQuery>,
) -> ApiResult<Json<FunnelReport>> {
    let range = range_for(&state, &caller, &theatre, &query).await?;
    super::funnel(&state, &theatre, &range).await.map(Json)
}

/// What your theatre took and gave back, by the day the money moved. For managers and organisers.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/takings", tag = "reports",
    params(("theatre" = String, Path), ReportQuery),
    responses((status = 200, body = TakingsReport), (status = 400, body = ProblemView, description = "malformed"),
        (status = 401, body = ProblemView, description = "not_signed_in, token_invalid"),
        (status = 403, body = ProblemView, description = "not_allowed"),
        (status = 404, body = ProblemView, description = "Also for another theatre's staff"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn takings(
    State(state): State<AppState>,
    caller: Caller,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<ReportQuery>,
) -> ApiResult<Json<TakingsReport>> {
    let range = range_for(&state, &caller, &theatre, &query).await?;
    super::takings(&state, &theatre, &range).await.map(Json)
}

/// How often each seat of a room was sold. For managers and organisers.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/occupancy", tag = "reports",
    params(("theatre" = String, Path), ReportQuery),
    responses((status = 200, body = OccupancyReport), (status = 400, body = ProblemView, description = "malformed"),
        (status = 401, body = ProblemView, description = "not_signed_in, token_invalid"),
        (status = 403, body = ProblemView, description = "not_allowed"),
        (status = 404, body = ProblemView, description = "Also for another theatre's staff, and for its screens"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn occupancy(
    State(state): State<AppState>,
    caller: Caller,
    ApiPath(theatre): ApiPath<String>,
    ApiQuery(query): ApiQuery<ReportQuery>,
) -> ApiResult<Json<OccupancyReport>> {
    let range = range_for(&state, &caller, &theatre, &query).await?;
    super::occupancy(&state, &theatre, &range, query.screen.as_deref()).await.map(Json)
}

/// A report as a file for spreadsheets: `days`, `channels`, `categories`, `films`, `shows`, `funnel`, `takings` or
/// `seats`. For managers and organisers.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/csv/{table}", tag = "reports",
    params(("theatre" = String, Path), ("table" = String, Path), ReportQuery),
    responses((status = 200, content_type = "text/csv", body = String),
        (status = 400, body = ProblemView, description = "malformed"),
        (status = 401, body = ProblemView, description = "not_signed_in, token_invalid"),
        (status = 403, body = ProblemView, description = "not_allowed"),
        (status = 404, body = ProblemView, description = "No such table; also for another theatre's staff"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn file(
    State(state): State<AppState>,
    caller: Caller,
    ApiPath((theatre, table)): ApiPath<(String, String)>,
    ApiQuery(query): ApiQuery<ReportQuery>,
) -> ApiResult<Response> {
    let range = range_for(&state, &caller, &theatre, &query).await?;
    let table = Table::parse(&table)?;
    let body = tables::file(&state, &theatre, table, &range, query.screen.as_deref()).await?;
    let disposition = format!("attachment; filename=\"{}\"", table.file_name(&theatre, &range));
    let disposition = HeaderValue::try_from(disposition).map_err(|cause| Problem::internal(&cause))?;
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

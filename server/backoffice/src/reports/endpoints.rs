//! Endpoints of reports, for managers, organisers, and API keys of the theatre.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::reports::{CsvQuery, FunnelReport, OccupancyReport, ReportQuery, SalesReport, TakingsReport};
use domain::roles::Role;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::range::Range;
use super::tables::{self, Table};
use crate::BackofficeState;
use http::problem::ApiResult;
use http::{ApiPath, ApiQuery, Problem};
use identity::api_keys::Caller;

/// Roles that may read reports.
const READERS: &[Role] = &[Role::Manager, Role::Organiser];

/// The routes of reports, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new()
        .routes(routes!(sales))
        .routes(routes!(funnel))
        .routes(routes!(takings))
        .routes(routes!(occupancy))
        .routes(routes!(file))
}

/// The validated parameters of a report request.
struct ReportParams {
    theatre: String,
    range: Range,
    /// One screen; `None` for all screens.
    screen: Option<String>,
}

/// Path parameters of all reports.
#[derive(Deserialize)]
struct AtTheatre {
    theatre: String,
}

impl FromRequestParts<BackofficeState> for ReportParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &BackofficeState) -> ApiResult<Self> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let ApiPath(AtTheatre { theatre }) = ApiPath::<AtTheatre>::from_request_parts(parts, state).await?;
        let ApiQuery(query) = ApiQuery::<ReportQuery>::from_request_parts(parts, state).await?;
        caller.at(&theatre, READERS)?;
        let found = state.catalogue.theatre(&theatre).await?.ok_or_else(|| Problem::not_found("theatre"))?;
        let range = Range::read(&query, &found.time_zone, state.clock.now())?;
        Ok(Self { theatre, range, screen: query.screen })
    }
}

/// Sales of your theatre by day, channel, category, film and show.
///
/// Sales by day, channel, category, film, show; `?from=&to=` days, `&screen=` for one screen.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/sales", tag = "reports", params(ReportQuery),
    responses((status = 200, body = SalesReport),
        (status = 400, body = ProblemView, description = "malformed: also more than 92 days")))]
async fn sales(State(state): State<BackofficeState>, params: ReportParams) -> ApiResult<Json<SalesReport>> {
    super::sales(&state, &params.theatre, &params.range, params.screen.as_deref()).await.map(Json)
}

/// The funnel from the first hold to the ticket, with the losses at each step.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/funnel", tag = "reports", params(ReportQuery),
    responses((status = 200, body = FunnelReport)))]
async fn funnel(State(state): State<BackofficeState>, params: ReportParams) -> ApiResult<Json<FunnelReport>> {
    super::funnel(&state, &params.theatre, &params.range, params.screen.as_deref()).await.map(Json)
}

/// Payments and refunds of your theatre, by the day of the money's movement.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/takings", tag = "reports", params(ReportQuery),
    responses((status = 200, body = TakingsReport)))]
async fn takings(State(state): State<BackofficeState>, params: ReportParams) -> ApiResult<Json<TakingsReport>> {
    super::takings(&state, &params.theatre, &params.range, params.screen.as_deref()).await.map(Json)
}

/// Number of sales per seat of a screen.
///
/// Sales count of each seat of a layout, `&screen=`.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/occupancy", tag = "reports", params(ReportQuery),
    responses((status = 200, body = OccupancyReport),
        (status = 404, body = ProblemView, description = "Also for another theatre's staff, and for its screens")))]
async fn occupancy(State(state): State<BackofficeState>, params: ReportParams) -> ApiResult<Json<OccupancyReport>> {
    super::occupancy(&state, &params.theatre, &params.range, params.screen.as_deref()).await.map(Json)
}

/// A report as a CSV file: `days`, `channels`, `categories`, `films`, `shows`, `funnel`, `takings` or `seats`.
#[utoipa::path(get, path = "/theatres/{theatre}/reports/csv/{table}", tag = "reports", params(ReportQuery, CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String),
        (status = 404, body = ProblemView, description = "No such table; also for another theatre's staff")))]
async fn file(
    State(state): State<BackofficeState>,
    params: ReportParams,
    ApiPath((_theatre, table)): ApiPath<(String, String)>,
    ApiQuery(query): ApiQuery<CsvQuery>,
) -> ApiResult<Response> {
    let ReportParams { theatre, range, screen } = params;
    let table = Table::parse(&table)?;
    let body = tables::file(&state, &theatre, table, &range, screen.as_deref(), query.separator).await?;
    let disposition = format!("attachment; filename=\"{}\"", table.file_name(&theatre, &range));
    let disposition = HeaderValue::try_from(disposition).map_err(|cause| Problem::internal(&cause))?;
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

//! Endpoints of the live map.

use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::wire::MAX_INBOUND_FRAME_BYTES;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::socket;
use crate::AppState;
use crate::web::problem::ApiResult;
use crate::web::{ApiPath, ApiQuery, Code, Problem, Visitor};

/// Inbound buffer of a socket; clients only send pongs. The default of 128 KiB is memory for nothing.
const READ_BUFFER_BYTES: usize = 4 * 1024;

/// The routes of the live map, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(seats)).routes(routes!(live))
}

/// The states of all seats at one version.
#[derive(Serialize, ToSchema)]
struct SeatsView {
    /// Changes when the map was rebuilt.
    epoch: u64,
    /// Counts changes.
    version: u64,
    /// A digit per seat: 0 available, 1 locked, 2 booked, 3 blocked.
    states: String,
}

/// The states of all seats, for programs that do not want a socket. `ETag` is the version.
#[utoipa::path(get, path = "/shows/{show}/seats", tag = "live", params(("show" = Uuid, Path)),
    responses((status = 200, body = SeatsView), (status = 304), (status = 404)))]
async fn seats(State(state): State<AppState>, ApiPath(show): ApiPath<Uuid>, headers: HeaderMap) -> ApiResult<Response> {
    let show = state.catalogue.known_show(show).await?;
    let (epoch, version, seats) = state.hubs.open(&state, &show).await?.hub.states();
    let etag = HeaderValue::try_from(format!("\"{epoch}-{version}\"")).map_err(|cause| Problem::internal(&cause))?;
    // Never stale for someone choosing: a cache may keep it, but asks before each use.
    let caching = [(header::ETAG, etag.clone()), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if headers.get(header::IF_NONE_MATCH) == Some(&etag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let states = seats.iter().map(|seat| char::from(b'0' + *seat as u8)).collect();
    Ok((caching, axum::Json(SeatsView { epoch, version, states })).into_response())
}

/// Where a returning reader is.
#[derive(Deserialize)]
struct ResumeQuery {
    epoch: Option<u64>,
    version: Option<u64>,
}

/// Every change as it happens, as binary frames (docs/api.md). WebSocket.
#[utoipa::path(get, path = "/shows/{show}/live", tag = "live",
    params(("show" = Uuid, Path), ("epoch" = Option<u64>, Query), ("version" = Option<u64>, Query)),
    responses((status = 101), (status = 403), (status = 404), (status = 503)))]
async fn live(
    State(state): State<AppState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
    ApiQuery(resume): ApiQuery<ResumeQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let upgrade = upgrade.map_err(|_| Problem::new(Code::Malformed, "Ask for a WebSocket upgrade here."))?;
    if !crate::web::router::is_own_origin(&state, &headers) {
        return Err(Problem::new(Code::ForeignOrigin, "The live map is for our own pages."));
    }
    let show = state.catalogue.known_show(show).await?;
    let reader = state.hubs.open(&state, &show).await?;
    let place = state.hubs.admit()?;
    let resume = resume.epoch.zip(resume.version);
    let owner = visitor.owner.clone();
    let response = upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(MAX_INBOUND_FRAME_BYTES)
        .max_frame_size(MAX_INBOUND_FRAME_BYTES)
        .on_upgrade(async move |socket| {
            let tasks = state.tasks.clone();
            // Tracked, so that a stopping server waits until every reader was told.
            tasks.track_future(socket::serve(state, show, owner, socket, resume, reader)).await;
            drop(place);
        });
    Ok((visitor, response).into_response())
}

//! Endpoints of the live map: the states of all seats, the WebSocket with its handshake, and the best available seats.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::api::{BestView, SuggestionView};
use domain::best_available::{MAX_SUGGESTIONS, SeatRequest, Suggestion, best_available};
use domain::money::Money;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use domain::wire::MAX_SECTIONS_PER_READER;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tungstenite::handshake::server::create_response_with_body;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::connection::LiveConnection;
use super::hub::Hub;
use super::hubs::Reads;
use super::map::{LiveMap, MapVersion};
use super::reader::NoSuchSection;
use super::socket::{self, SocketContext};
use crate::SeatsState;
use catalogue::Show;
use http::caching::PRIVATE;
use http::write_coalescing::CoalescedWrites;
use http::{ApiPath, ApiQuery, ApiResult, ClientAddress, Code, Problem};
use identity::Visitor;

/// The routes of the live map, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SeatsState> {
    OpenApiRouter::new().routes(routes!(seats)).routes(routes!(live)).routes(routes!(best))
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
    /// Places left in the areas without numbered seats.
    areas: Vec<PlacesLeft>,
}

/// An area without numbered seats.
#[derive(Serialize, ToSchema)]
struct PlacesLeft {
    area: u16,
    /// Places left.
    left: u32,
}

impl SeatsView {
    /// The map of a show that was called off: no seat is for sale, sold or not.
    fn called_off(show: &Show, MapVersion { epoch, version }: MapVersion) -> Self {
        let blocked = char::from(b'0' + SeatState::Blocked as u8);
        let states = std::iter::repeat_n(blocked, show.seat_count as usize).collect();
        let areas = show.areas.iter().map(|area| PlacesLeft { area: area.area, left: 0 }).collect();
        Self { epoch, version, states, areas }
    }

    fn of(map: &LiveMap) -> Self {
        let MapVersion { epoch, version } = map.at();
        let digit = |seat: &SeatState| char::from(b'0' + *seat as u8);
        let areas = map.areas().into_iter().map(|(area, left)| PlacesLeft { area, left }).collect();
        Self { epoch, version, states: map.seats().iter().map(digit).collect(), areas }
    }
}

/// The states of all seats, for programs that do not want a socket. `ETag` is the version.
///
/// The state of every seat, a digit each, and the places left in areas. Never cached; `ETag` is the version.
#[utoipa::path(get, path = "/shows/{show}/seats", tag = "live",
    responses((status = 200, body = SeatsView), (status = 304)))]
async fn seats(
    State(state): State<SeatsState>,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let show = state.catalogue.find_public_show(show).await?;
    let reader = state.hubs.open(&state, &show, Reads::Once).await?;
    // A version is read from the store and serialised once, however many requests ask for it.
    let write = |map: &LiveMap| serde_json::to_vec(&SeatsView::of(map)).map(Bytes::from).unwrap_or_default();
    let (at, body) = reader.hub.json(write).ok_or_else(|| Problem::internal(&"an open hub has no map"))?;
    let (body, suffix) = if show.is_called_off() {
        (Bytes::from(serde_json::to_vec(&SeatsView::called_off(&show, at)).unwrap_or_default()), "-off")
    } else {
        (body, "")
    };
    let etag = format!("\"{}-{}{suffix}\"", at.epoch, at.version);
    let etag = HeaderValue::try_from(etag).map_err(|cause| Problem::internal(&cause))?;
    // A buyer needs fresh states: caches store nothing shared, and a client revalidates with its `ETag`.
    let caching = [(header::ETAG, etag.clone()), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE))];
    if headers.get(header::IF_NONE_MATCH) == Some(&etag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((caching, json, Body::from(body)).into_response())
}

/// The version a returning reader has, and the sections it wants.
#[derive(Deserialize)]
struct LiveQuery {
    epoch: Option<u64>,
    version: Option<u64>,
    sections: Option<String>,
}

/// Every change as it happens, as binary frames over a WebSocket, see *The live map*.
#[utoipa::path(get, path = "/shows/{show}/live", tag = "live",
    params(("epoch" = Option<u64>, Query), ("version" = Option<u64>, Query),
        ("sections" = Option<String>, Query, description = "Numbers of sections, `2,5`: only their changes")),
    responses((status = 101), (status = 403), (status = 409, description = "sales_closed: the show was cancelled"),
        (status = 429), (status = 503)))]
async fn live(
    State(state): State<SeatsState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath(show): ApiPath<Uuid>,
    ApiQuery(query): ApiQuery<LiveQuery>,
    mut request: Request,
) -> ApiResult<Response> {
    let (response, upgrade) = accept(&mut request)?;
    if !http::site::is_own_origin(&state.site, request.headers()) {
        return Err(Problem::new(Code::ForeignOrigin, "The live map is for our own pages."));
    }
    // Admission comes before any call of a store.
    let place = state.hubs.sockets.admit(&address, &visitor.owner)?;
    let show = state.catalogue.find_public_show(show).await?;
    catalogue::refuse_called_off(&show)?;
    let mut reader = state.hubs.open(&state, &show, Reads::Live).await?;
    if let Some((epoch, version)) = query.epoch.zip(query.version) {
        reader.resume(MapVersion { epoch, version });
    }
    if let Some(sections) = query.sections.as_deref().filter(|text| !text.is_empty()) {
        let sections = sections_of(sections).ok_or_else(unreadable_sections)?;
        reader.follow(&sections).map_err(|NoSuchSection(section)| no_such_section(section))?;
    }
    let context = SocketContext { show, owner: visitor.owner.clone() };
    // Tracked, so that a stopping server waits until every reader got its drain frame.
    let tasks = state.tasks.clone();
    tasks.spawn(async move {
        if let Some(connection) = connected(upgrade).await {
            socket::serve(state, context, connection, reader).await;
        }
        drop(place);
    });
    Ok((visitor, response).into_response())
}

/// Parses `2,5` into sorted numbers without duplicates.
fn sections_of(text: &str) -> Option<Vec<u16>> {
    let mut sections = text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<u16>>>()?;
    sections.sort_unstable();
    sections.dedup();
    (sections.len() <= MAX_SECTIONS_PER_READER).then_some(sections)
}

fn unreadable_sections() -> Problem {
    let detail = format!("Sections are at most {MAX_SECTIONS_PER_READER} numbers with commas between them.");
    Problem::new(Code::Malformed, detail)
}

fn no_such_section(section: u16) -> Problem {
    Problem::new(Code::Malformed, format!("The room has no section {section}."))
}

/// Suggestions without `most` in the query.
const USUAL_SUGGESTIONS: usize = 3;
/// Limits searches to two at a time per replica, of different shows: an arena takes milliseconds of a core, and sales have
/// priority.
static SEARCHES: Semaphore = Semaphore::const_new(2);
/// Maximum wait for the slots of a search.
const SEARCH_SLOT_DEADLINE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BestQuery {
    count: usize,
    category: Option<String>,
    most: Option<usize>,
}

/// The best seats that are free just now, together where that can be. Nothing is held by asking.
///
/// Best available: `?count=3&category=gold&most=3` adjacent seats, best first; holds nothing.
#[utoipa::path(get, path = "/shows/{show}/best", tag = "live",
    params(("count" = usize, Query, description = "How many seats, 1 to 10"),
        ("category" = Option<String>, Query, description = "Name of a category, `gold`: only its seats"),
        ("most" = Option<usize>, Query, description = "Suggestions at most, 1 to 8; 3 unless said")),
    responses((status = 200, body = BestView), (status = 400, description = "malformed, seat_count"),
        (status = 409, description = "sales_closed: the show was cancelled")))]
async fn best(
    State(state): State<SeatsState>,
    ApiPath(show): ApiPath<Uuid>,
    ApiQuery(query): ApiQuery<BestQuery>,
) -> ApiResult<Json<BestView>> {
    let show = state.catalogue.find_public_show_or_rehearsal(show).await?;
    catalogue::refuse_called_off(&show)?;
    if !(1..=MAX_SEATS_PER_HOLD).contains(&query.count) {
        return Err(Problem::new(Code::SeatCount, format!("Ask for 1 to {MAX_SEATS_PER_HOLD} seats.")));
    }
    let category = query.category.as_deref().map(|name| category_of(&show, name)).transpose()?;
    let most = query.most.unwrap_or(USUAL_SUGGESTIONS).clamp(1, MAX_SUGGESTIONS);
    let reader = state.hubs.open(&state, &show, Reads::Once).await?;
    let request = SeatRequest { count: query.count, category };
    let (at, found) = suggest(&show, &reader.hub, request).await?;
    let suggestions = found.iter().take(most).map(|suggestion| {
        let seats: Vec<_> = suggestion.seats.iter().map(|seat| show.line(*seat)).collect();
        let total = seats.iter().fold(0_i64, |sum, line| sum.saturating_add(line.price.minor));
        SuggestionView {
            seats,
            total: Money::new(total, show.currency),
            together: suggestion.together,
            orphans: suggestion.orphans as u32,
        }
    });
    Ok(Json(BestView { epoch: at.epoch, version: at.version, suggestions: suggestions.collect() }))
}

/// Finds suggestions at the present, once per version for all callers with the same request. The search runs on a
/// blocking thread, so it does not hold up requests. It returns up to [`MAX_SUGGESTIONS`], the best first.
///
/// # Errors
/// `overloaded` without a slot in time.
async fn suggest(show: &Arc<Show>, hub: &Arc<Hub>, request: SeatRequest) -> ApiResult<(MapVersion, Arc<[Suggestion]>)> {
    // A show that moves to another room has a hub of the old room for a moment.
    let key = (show.layout_id, request);
    if let Some(known) = hub.suggestions(key) {
        return Ok(known);
    }
    let slots = wait_for_slots(&hub.search, &SEARCHES).await?;
    // Another caller may have searched meanwhile.
    if let Some(known) = hub.suggestions(key) {
        return Ok(known);
    }
    let (show, hub) = (Arc::clone(show), Arc::clone(hub));
    let search = move || {
        // The search continues when its caller is gone: its slots are freed when it ends.
        let _slots = slots;
        let (at, states) = hub.states()?;
        let state_of = |seat: SeatIndex| states.get(seat as usize).copied().unwrap_or(SeatState::Blocked);
        let found: Arc<[Suggestion]> = best_available(&show.layout, state_of, request, MAX_SUGGESTIONS).into();
        hub.keep_suggestions(at, key, &found);
        Some((at, found))
    };
    let found = tokio::task::spawn_blocking(search).await.map_err(|cause| Problem::internal(&cause))?;
    found.ok_or_else(|| Problem::internal(&"an open hub has no map"))
}

/// The slots of a running search: its show's, and one of the replica's.
type SearchSlots = (OwnedSemaphorePermit, SemaphorePermit<'static>);

/// Waits for the slot of a show, then for one of the replica: searches of a show wait for each other first.
async fn wait_for_slots(of_show: &Arc<Semaphore>, of_all: &'static Semaphore) -> ApiResult<SearchSlots> {
    let slots = async { Ok::<_, AcquireError>((Arc::clone(of_show).acquire_owned().await?, of_all.acquire().await?)) };
    tokio::time::timeout(SEARCH_SLOT_DEADLINE, slots)
        .await
        .map_err(|_| Problem::new(Code::Overloaded, "Many are looking for seats. Please try again in a moment."))?
        .map_err(|cause| Problem::internal(&cause))
}

fn category_of(show: &Show, name: &str) -> ApiResult<u8> {
    let place = show.categories.iter().position(|category| category.name == name);
    place.and_then(|place| u8::try_from(place).ok()).ok_or_else(|| {
        let known = show.categories.iter().map(|category| category.name.as_str()).collect::<Vec<_>>().join(", ");
        Problem::new(Code::Malformed, format!("This show has no category {name:?}; it has {known}."))
    })
}

/// Send buffer of the kernel for one reader, bytes (Linux doubles it for its own use). The default
/// grows to megabytes, and a reader that resumes would first get outdated frames.
const SEND_BUFFER_BYTES: usize = 16 * 1024;

/// Answers the handshake. The connection is available after the response was sent.
///
/// # Errors
/// `malformed` if the request is no WebSocket handshake.
fn accept(request: &mut Request) -> ApiResult<(Response, OnUpgrade)> {
    let no_handshake = |_| Problem::new(Code::Malformed, "Ask for a WebSocket upgrade here.");
    let response = create_response_with_body(request, Body::empty).map_err(no_handshake)?;
    Ok((response, hyper::upgrade::on(request)))
}

/// Returns the upgraded connection; `None` if it broke or is no plain TCP stream.
async fn connected(upgrade: OnUpgrade) -> Option<LiveConnection<TcpStream>> {
    let upgraded =
        upgrade.await.inspect_err(|cause| tracing::debug!(%cause, "a reader disconnected during the handshake"));
    // This frees the HTTP state of the connection, mainly its buffer of eight kilobytes.
    let Ok(parts) = upgraded.ok()?.downcast::<CoalescedWrites<TokioIo<TcpStream>>>() else {
        tracing::error!("live connections need a listener of plain TCP");
        return None;
    };
    let Some(stream) = parts.io.into_inner().map(TokioIo::into_inner) else {
        // A client that pipelines requests and reads no responses.
        tracing::debug!("live connection refused: responses to earlier requests are unread");
        return None;
    };
    if let Err(cause) = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER_BYTES) {
        tracing::debug!(%cause, "set SO_SNDBUF of a live connection failed");
    }
    Some(LiveConnection::new(stream, &parts.read_buf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn search_without_a_free_slot_is_refused_and_one_of_another_show_is_not() {
        static OF_ALL: Semaphore = Semaphore::const_new(2);
        let (one, other) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        let running = wait_for_slots(&one, &OF_ALL).await;
        assert!(running.is_ok());
        let refused = wait_for_slots(&one, &OF_ALL).await;
        assert_eq!(refused.err().map(|problem| problem.code()), Some(Code::Overloaded));
        assert!(wait_for_slots(&other, &OF_ALL).await.is_ok());
    }

    #[test]
    fn section_lists_are_sorted_and_deduplicated() {
        assert_eq!(sections_of("5, 2,5"), Some(vec![2, 5]));
        for text in ["", "x", "1,,2", "-1", "70000", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"] {
            assert_eq!(sections_of(text), None, "{text:?}");
        }
    }
}

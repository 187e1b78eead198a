//! All routes and the middleware stack, in one place.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use domain::api::SERVER_TIME_HEADER;
use tower::{Service, ServiceBuilder};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{CompressionBody, CompressionLayer};
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::services::ServeFile;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use super::budget::BudgetLayer;
use super::caching::{self, PRIVATE, REVALIDATED};
use super::fast_road::FastRoad;
use super::{Code, Problem, description, files, pages, reader};
use crate::{
    AppState, accounts, api_keys, bookings, box_office, catalogue, door, email_codes, fairness, holds, idempotency,
    ids, live, organiser, payments, reports, start, telemetry, waiting_list, waiting_room, webhooks,
};

/// Largest body of an API call, bytes; ten seats and two names are far below.
const MAX_BODY_BYTES: usize = 16 * 1024;
/// Longest any request may take, the gateway's deadline included.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
/// Shorter answers fit one packet as they are.
pub(super) const MIN_COMPRESSED_BYTES: u16 = 1_024;
/// Deadline for the lock store's answer in a readiness check. A proxy checks every half a second.
const LOCK_STORE_LOOK: Duration = Duration::from_millis(100);
/// Finds a request in the logs.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Scripts and styles are files of ours; WebAssembly may be compiled; nothing else is allowed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
     img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Browsers use TLS alone for this host, for a year. Not for its subdomains: they may be other systems.
const STRICT_TRANSPORT_SECURITY: &str = "max-age=31536000";
/// What is no page allows nothing, in as many words: it goes with every file of a page.
const NO_PAGE_SECURITY_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// How the types begin of what is no page. Not scripts, whose policy is the one of a worker made of them, and not what has
/// no type: "not modified" would change the policy of a page that is kept.
const NO_PAGE_TYPES: [&str; 4] = ["text/css", "application/wasm", "application/json", "font/"];

/// The API with its description.
fn api() -> (Router<AppState>, OpenApi) {
    let info = InfoBuilder::new().title("Rowlock").version(env!("CARGO_PKG_VERSION")).build();
    let v1 = OpenApiRouter::new()
        .merge(catalogue::http::routes())
        .merge(live::routes())
        .merge(holds::routes())
        .merge(waiting_list::routes())
        .merge(waiting_room::routes())
        .merge(email_codes::routes())
        .merge(bookings::routes())
        .merge(idempotency::routes())
        .merge(payments::routes())
        .merge(accounts::routes())
        .merge(door::routes())
        .merge(reports::routes())
        .merge(api_keys::routes())
        .merge(webhooks::routes())
        .merge(fairness::routes())
        .merge(organiser::routes())
        .merge(box_office::routes());
    OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info).build()).nest("/api/v1", v1).split_for_parts()
}

/// The description of the API as it is derived from its handlers; [`description::complete`] adds what all have alike.
#[must_use]
pub fn openapi() -> OpenApi {
    api().1
}

/// The whole server. A request passes the layers from the first line down, its answer back up.
///
/// They lie around the router and not in it: there, each would be a box around every route, and every
/// request would copy all of them several times over, half of what an API call cost. In front of them is
/// the road for repeats whose answer is known; what it answers passes none of them.
pub fn build(
    state: AppState,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static {
    let stack = ServiceBuilder::new()
        .map_response(|response: axum::http::Response<_>| response.map(Body::new))
        .layer(SetRequestIdLayer::new(REQUEST_ID, RandomRequestId))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        // Failures are logged where their cause is known, not once more as a status.
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(()))
        .layer(from_fn_with_state(route_names(), telemetry::http::count))
        .layer(from_fn_with_state(state.clone(), manners))
        // A panic is a bug; the caller gets a problem and everyone else is served on.
        .layer(CatchPanicLayer::custom(panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, REQUEST_DEADLINE))
        .map_response(lightened)
        // Never on the socket or a stream, and not where it saves no packet.
        .layer(CompressionLayer::new().compress_when(
            SizeAbove::new(MIN_COMPRESSED_BYTES).and(NotForContentType::IMAGES).and(NotForContentType::SSE),
        ))
        // Below the counting, so that refusals are counted, and below the manners, so that they speak the reader's language.
        .layer(BudgetLayer::new(state.config.database_connections));
    FastRoad::new(state.clone(), stack.service(routes(state)), MAX_BODY_BYTES)
}

fn routes(state: AppState) -> Router {
    let (api, derived) = api();
    let derived = serde_json::to_value(derived).expect("a description is text, numbers and lists of them");
    let document =
        Bytes::from(description::complete(derived, &state.config.public_url, state.config.is_https()).to_string());
    let api = api.method_not_allowed_fallback(wrong_method).layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    let revalidate = (
        SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED)),
        SetResponseHeaderLayer::if_not_present(header::VARY, HeaderValue::from_static(files::VARIES_BY)),
    );

    // At the root: a worker cares for pages below its own folder only.
    let worker = |file: &str| {
        ServiceBuilder::new()
            .layer(revalidate.clone())
            .service(ServeFile::new(state.config.site_root.join("pkg").join(file)))
    };

    let plain = files::PLAIN_ROUTES.into_iter();
    plain
        .fold(Router::new(), |router, route| router.route(route, get(files::plain)))
        .merge(api)
        .route("/api/openapi.json", get(async move || ([(header::CONTENT_TYPE, "application/json")], document)))
        .merge(pages::routes())
        .route(files::ROUTE, get(files::of_version))
        .route_service(
            "/favicon.svg",
            ServiceBuilder::new()
                .layer(revalidate.clone())
                .service(ServeFile::new(state.config.site_root.join("favicon.svg"))),
        )
        .route_service("/ticket-worker.js", worker("ticket-worker.js"))
        .route_service("/door-worker.js", worker("door-worker.js"))
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(telemetry::http::metrics))
        .fallback(nothing_here)
        .with_state(state)
}

/// What is neither of the API as described nor a page.
pub(super) const OTHER_ADDRESSES: [&str; 11] = [
    "/api/openapi.json",
    files::ROUTE,
    files::PLAIN_ROUTES[0],
    files::PLAIN_ROUTES[1],
    files::PLAIN_ROUTES[2],
    "/favicon.svg",
    "/ticket-worker.js",
    "/door-worker.js",
    "/healthz",
    "/readyz",
    "/metrics",
];

/// Routes as metrics name them: those of the API as described, the pages and the rest.
fn route_names() -> &'static telemetry::Routes {
    static NAMES: LazyLock<telemetry::Routes> = LazyLock::new(|| {
        let (_, description) = api();
        let api = description.paths.paths.keys().map(String::as_str);
        telemetry::Routes::new(api.chain(OTHER_ADDRESSES).chain(pages::ADDRESSES))
    });
    &NAMES
}

/// Whether a browser sent this from a page of ours. Other clients send neither header.
#[must_use]
pub fn is_own_origin(state: &AppState, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text("origin") {
        return is_same_origin(origin, &state.config.public_url, text("host"));
    }
    matches!(text("sec-fetch-site"), None | Some("same-origin" | "none"))
}

/// True for the origin of `PUBLIC_URL`, and for its scheme with the host that this request came to. The scheme must match: a
/// page that came without TLS, which any machine on the way may have written, does not belong to a site with TLS.
fn is_same_origin(origin: &str, public_url: &str, host: Option<&str>) -> bool {
    let public_url = public_url.trim_end_matches('/');
    let (Some((scheme, authority)), Some((own_scheme, _))) = (origin.split_once("://"), public_url.split_once("://"))
    else {
        return false;
    };
    origin == public_url || (scheme == own_scheme && Some(authority) == host)
}

/// Refuses what another site's page sent; answers people in their language; sees to it that nobody keeps what nobody
/// may; puts the lock store's clock on every answer of the API, from which clients count down, and the security headers
/// on all.
async fn manners(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), request.method().clone());
    let route = request.extensions().get::<telemetry::RouteName>().map_or("", |route| route.0);
    let is_api = request.uri().path().starts_with("/api/");
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is_welcome = is_read || is_own_origin(&state, request.headers());
    let mut response = match (is_welcome, is_api) {
        (true, true) => next.run(request).await,
        (true, false) => reader::serve(request, next, state.config.is_https()).await,
        (false, _) => Problem::new(Code::ForeignOrigin, "Requests that change something must come from our own pages.")
            .into_response(),
    };
    caching::settle(&mut response, &method, route, began);
    write_manners(&state, response.headers_mut(), is_api);
    response
}

/// The headers of all answers, and those of the API's.
pub(super) fn write_manners(state: &AppState, headers: &mut HeaderMap, is_api: bool) {
    if is_api {
        let fresh = *headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(PRIVATE)) == PRIVATE;
        // A cache would tell the time of when it was filled.
        if fresh {
            headers.insert(HeaderName::from_static(SERVER_TIME_HEADER), HeaderValue::from(state.locks.now().0));
        }
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_no_page = NO_PAGE_TYPES.iter().any(|no_page| kind.starts_with(no_page));
    let policy = if is_no_page { NO_PAGE_SECURITY_POLICY } else { CONTENT_SECURITY_POLICY };
    if state.config.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT_TRANSPORT_SECURITY));
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Programs get a problem, people a page.
async fn nothing_here(uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        return Problem::not_found("address").into_response();
    }
    pages::nothing_here().await.into_response()
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    Problem::new(Code::MethodNotAllowed, format!("{method} is not possible on {}.", uri.path())).into_response()
}

/// Readiness: everything that needs no seat lock can be served. The lock store is reported and does not decide: it is away
/// for all replicas at once, and tickets, doors, tills and payments work without it.
async fn ready(State(state): State<AppState>) -> Response {
    // In a separate task, which continues after the deadline: a ping that is cancelled would delay the detection of a Redis
    // that is back.
    let asked = state.clone();
    let ping = state.tasks.spawn(async move { asked.locks.ping().await.is_ok() });
    let lock_store = tokio::time::timeout(LOCK_STORE_LOOK, ping);
    let (schema, lock_store) = tokio::join!(start::is_schema_up_to_date(&state.pg), lock_store);
    let (database, schema) = (schema.is_ok(), schema.unwrap_or(false));
    let lock_store = matches!(lock_store, Ok(Ok(true)));
    let stopping = state.stop.is_cancelled();
    let is_ready = database && schema && !stopping;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let truth = serde_json::json!({
        "database": database, "schema": schema, "lock_store": lock_store, "stopping": stopping,
    });
    (status, Json(truth)).into_response()
}

/// A body that might be compressed has room for all a compressor needs, kilobytes that every layer above would copy and
/// a box for a short answer would hold. What was not compressed goes on as it came.
fn lightened(response: axum::http::Response<CompressionBody<Body>>) -> Response {
    let as_it_came = !response.headers().contains_key(header::CONTENT_ENCODING);
    response.map(|body| if as_it_came { body.into_inner() } else { Body::new(body) })
}

fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> axum::http::Response<Body> {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Problem::internal(&words.unwrap_or("a handler panicked")).into_response()
}

fn span(request: &axum::http::Request<Body>) -> tracing::Span {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or("");
    let span = tracing::info_span!("request", method = %request.method(), path = request.uri().path(), id);
    telemetry::traces::take_over(&span, request.headers());
    span
}

#[derive(Clone, Copy)]
struct RandomRequestId;

impl MakeRequestId for RandomRequestId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        new_request_id().map(RequestId::new)
    }
}

/// A name nobody else's request has.
fn new_request_id() -> Option<HeaderValue> {
    HeaderValue::try_from(hex::encode(ids::random_bits())).ok()
}

/// The name the caller gave the request, or a new one, on its answer.
pub(super) fn write_request_id(asked: &HeaderMap, answer: &mut HeaderMap) {
    if let Some(id) = asked.get(REQUEST_ID).cloned().or_else(new_request_id) {
        answer.insert(REQUEST_ID, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_ours_by_scheme_and_host() {
        let (tls, plain, host) = ("https://seats.example/", "http://127.0.0.1:3000", Some("replica.example:8080"));
        for (origin, public_url, is_ours) in [
            ("https://seats.example", tls, true),
            ("https://replica.example:8080", tls, true),
            ("http://seats.example", tls, false),
            ("http://replica.example:8080", tls, false),
            ("https://evil.example", tls, false),
            ("https://seats.example.evil.example", tls, false),
            ("null", tls, false),
            ("http://127.0.0.1:3000", plain, true),
            ("http://replica.example:8080", plain, true),
            ("https://replica.example:8080", plain, false),
        ] {
            assert_eq!(is_same_origin(origin, public_url, host), is_ours, "{origin} at {public_url}");
        }
        assert!(!is_same_origin("https://seats.example", "https://other.example", None));
    }

    #[test]
    fn every_address_of_the_api_is_documented() {
        let documented = include_str!("../../../docs/api.md");
        let description = openapi();
        assert!(description.paths.paths.len() > 10, "the API is described");
        for path in description.paths.paths.keys() {
            assert!(documented.contains(&format!("`{path}`")), "docs/api.md lacks {path}");
        }
    }
}

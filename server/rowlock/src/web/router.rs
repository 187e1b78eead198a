//! All routes and the middleware stack, in one place.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
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
use super::{authorisation, description, files, pages, requests};
use crate::{AppState, metrics, migrations};
use admission::{fairness, waiting_room};
use backoffice::{box_office, door, organiser, reports, webhooks};
use http::caching::{self, REVALIDATED};
use http::default_headers::{MIN_COMPRESSED_BYTES, REQUEST_ID, new_request_id, write_default_headers};
use http::replay_cache::ReplayCache;
use http::site::is_own_origin;
use http::{Code, HttpState, Problem, page_locale};
use identity::{accounts, api_keys};
use platform::telemetry;
use seats::live;
use selling::{account_bookings, bookings, email_codes, holds, payment_webhooks, waiting_list};

/// Largest body of an API call, bytes; ten seats and two names are far below.
const MAX_BODY_BYTES: usize = 16 * 1024;
/// Longest any request may take, the gateway's deadline included.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
/// Deadline for the lock store's answer in a readiness check. A proxy checks every half a second.
const LOCK_STORE_LOOK: Duration = Duration::from_millis(100);
/// Prefix of the addresses of the API.
const API_PREFIX: &str = "/api/v1";

/// The API's router with a state; without one, its description.
struct Api<'a> {
    state: Option<&'a AppState>,
    router: Router,
    description: OpenApi,
}

impl Api<'_> {
    /// With the routes of one capability.
    fn with<S>(mut self, routes: OpenApiRouter<S>) -> Self
    where
        S: FromRef<AppState> + Clone + Send + Sync + 'static,
    {
        if let Some(state) = self.state {
            let router = Router::<S>::new().nest(API_PREFIX, Router::from(routes));
            self.router = self.router.merge(router.with_state(S::from_ref(state)));
        } else {
            self.description.merge(OpenApiRouter::new().nest(API_PREFIX, routes).into_openapi());
        }
        self
    }
}

fn api(state: Option<&AppState>) -> (Router, OpenApi) {
    let info = InfoBuilder::new().title("Rowlock").version(env!("CARGO_PKG_VERSION")).build();
    let description = OpenApiBuilder::new().info(info).build();
    let api = Api { state, router: Router::new(), description }
        .with(catalogue::routes())
        .with(live::routes())
        .with(holds::routes())
        .with(waiting_list::routes())
        .with(waiting_room::routes())
        .with(email_codes::routes())
        .with(bookings::routes())
        .with(account_bookings::routes())
        .with(requests::routes())
        .with(payment_webhooks::routes())
        .with(accounts::routes())
        .with(door::routes())
        .with(reports::routes())
        .with(api_keys::routes())
        .with(webhooks::routes())
        .with(fairness::routes())
        .with(organiser::routes())
        .with(box_office::routes());
    (api.router, api.description)
}

/// The description of the API as it is derived from its handlers; [`description::complete`] adds what all have alike.
#[must_use]
pub fn openapi() -> OpenApi {
    api(None).1
}

/// The whole server. A request passes the layers from the first line down, its answer back up.
///
/// They wrap the router and are not in it: there, each would be a box around every route, and every request would copy all of
/// them several times over, half of what an API call cost. In front of them is the replay cache, whose answers pass none of
/// them.
pub fn build(
    state: AppState,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static {
    let stack = ServiceBuilder::new()
        .map_response(|response: axum::http::Response<_>| response.map(Body::new))
        .layer(SetRequestIdLayer::new(REQUEST_ID, RandomRequestId))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        // Failures are logged where their cause is known, not once more as a status.
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(()))
        .layer(from_fn_with_state(route_names(), telemetry::count_request))
        .layer(from_fn_with_state(state.clone(), check_origin_and_set_headers))
        // A panic is a defect; its caller gets a problem and all other requests are served.
        .layer(CatchPanicLayer::custom(panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, REQUEST_DEADLINE))
        .map_response(lightened)
        // Never on the socket or a stream, and not where it saves no packet.
        .layer(CompressionLayer::new().compress_when(
            SizeAbove::new(MIN_COMPRESSED_BYTES).and(NotForContentType::IMAGES).and(NotForContentType::SSE),
        ))
        // Below the counting, so that refusals are counted, and below the headers, so that they are in the reader's language.
        .layer(BudgetLayer::new(state.config.database_connections));
    ReplayCache::new(HttpState::from_ref(&state), stack.service(routes(state)), MAX_BODY_BYTES)
}

/// The document at `/api/openapi.json`.
fn document(state: &AppState) -> Bytes {
    let derived = serde_json::to_value(openapi()).expect("a description is text, numbers and lists of them");
    Bytes::from(description::complete(derived, &state.site.public_url, state.site.is_https()).to_string())
}

fn routes(state: AppState) -> Router {
    let (api, _) = api(Some(&state));
    let described = state.clone();
    // Written at the first request, not at every start.
    let document = Arc::new(LazyLock::new(move || document(&described)));
    let api = api.method_not_allowed_fallback(wrong_method).layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    let revalidate = (
        SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED)),
        SetResponseHeaderLayer::if_not_present(header::VARY, HeaderValue::from_static(files::VARIES_BY)),
    );

    let file = |path: &str| {
        ServiceBuilder::new().layer(revalidate.clone()).service(ServeFile::new(state.config.site_root.join(path)))
    };

    let plain = files::PLAIN_ROUTES.into_iter();
    plain
        .fold(Router::new(), |router, route| router.route(route, get(files::plain)))
        .route(
            "/api/openapi.json",
            get(async move || ([(header::CONTENT_TYPE, "application/json")], Bytes::clone(&document))),
        )
        .merge(pages::routes())
        .route(files::ROUTE, get(files::of_version))
        .route_service("/favicon.svg", file("favicon.svg"))
        // At the root: a worker cares for pages below its own folder only.
        .route_service("/ticket-worker.js", file("pkg/ticket-worker.js"))
        .route_service("/door-worker.js", file("pkg/door-worker.js"))
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::metrics))
        .route("/demo/watched", get(watched_shows))
        .fallback(nothing_here)
        .with_state(state)
        .merge(api)
}

/// Addresses that are neither in the API's description nor a page.
pub(super) const OTHER_ADDRESSES: [&str; 12] = [
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
    "/demo/watched",
];

/// Routes as metrics name them: those of the API, which a test of the table compares with it, the pages and the rest.
fn route_names() -> &'static telemetry::Routes {
    static NAMES: LazyLock<telemetry::Routes> = LazyLock::new(|| {
        let api = authorisation::TABLE.iter().map(|(_, route, ..)| *route);
        telemetry::Routes::new(api.chain(OTHER_ADDRESSES).chain(pages::addresses()))
    });
    &NAMES
}

/// Refuses unsafe requests from other sites; sets the reader's language, the caching rules, the security headers, and on
/// every answer of the API the lock store's time, from which clients count down.
async fn check_origin_and_set_headers(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), request.method().clone());
    let route = request.extensions().get::<telemetry::RouteName>().map_or("", |route| route.0);
    let is_api = request.uri().path().starts_with("/api/");
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is_welcome = is_read || is_own_origin(&state.site, request.headers());
    let mut response = match (is_welcome, is_api) {
        (true, true) => next.run(request).await,
        (true, false) => page_locale::serve(request, next, &state.site).await,
        (false, _) => Problem::new(Code::ForeignOrigin, "Requests that change something must come from our own pages.")
            .into_response(),
    };
    caching::enforce_no_store(&mut response, &method, route, began);
    write_default_headers(&state, response.headers_mut(), is_api);
    response
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
    let (schema, lock_store) = tokio::join!(migrations::is_schema_up_to_date(&state.pg), lock_store);
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

/// The shows with open live maps, which the crowd of a demo visits; without `DEMO_CROWD` there is no such page.
async fn watched_shows(State(state): State<AppState>) -> Response {
    if state.config.demo_crowd {
        Json(state.hubs.watched_shows()).into_response()
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
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
    telemetry::traces::continue_trace(&span, request.headers());
    span
}

#[derive(Clone, Copy)]
struct RandomRequestId;

impl MakeRequestId for RandomRequestId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        new_request_id().map(RequestId::new)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::caching::{CacheClass, TABLE, cache_class};

    use super::*;
    use crate::web::authorisation::Access;

    #[test]
    fn every_route_has_a_cache_class_and_a_route_that_is_not_public_is_never_cached() {
        for (method, route, access, _) in authorisation::TABLE {
            match (*method, *access) {
                ("GET", Access::Public) => {
                    assert!(cache_class(route).is_some(), "who may keep {route}? Say so in http::caching::TABLE")
                }
                ("GET", _) => {
                    assert_eq!(
                        cache_class(route).unwrap_or(CacheClass::Never),
                        CacheClass::Never,
                        "{route} is not public"
                    )
                }
                _ => {}
            }
        }
        for route in pages::addresses().chain(OTHER_ADDRESSES) {
            assert!(cache_class(route).is_some(), "who may keep {route}? Say so in http::caching::TABLE");
        }
    }

    #[test]
    fn every_row_has_a_route_and_occurs_once() {
        let api = authorisation::TABLE.iter().map(|(_, route, ..)| *route);
        let routes: BTreeSet<&str> = api.chain(pages::addresses()).chain(OTHER_ADDRESSES).collect();
        let rows: BTreeSet<&str> = TABLE.iter().map(|(route, _)| *route).collect();
        assert_eq!(rows.len(), TABLE.len(), "no row stands twice");
        let about_nothing: Vec<_> = rows.difference(&routes).collect();
        assert!(about_nothing.is_empty(), "{about_nothing:?}");
    }
}

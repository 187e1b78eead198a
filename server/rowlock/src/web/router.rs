//! All routes and the middleware stack, in one place.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::FutureExt;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{CompressionBody, CompressionLayer};
use tower_http::services::ServeFile;
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::{Instrument, Span};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use super::budget::BudgetLayer;
use super::readiness::Readiness;
use super::{authorisation, description, files, pages, requests};
use crate::{AppState, metrics};
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

/// The whole server: the replay cache, then [`answer`] around the routes.
pub fn build(
    state: AppState,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static {
    let http = HttpState::from_ref(&state);
    let budget = BudgetLayer::new(state.config.database_connections);
    let routes = ServiceBuilder::new()
        .map_response(without_compressor)
        // Never on the socket or a stream, and not where it saves no packet.
        .layer(
            CompressionLayer::new().compress_when(
                SizeAbove::new(MIN_COMPRESSED_BYTES)
                    .and(NotForContentType::IMAGES)
                    .and(NotForContentType::SSE)
                    // Lists of sold seats: compressing megabytes of digests for each request costs more than it saves.
                    .and(NotForContentType::const_new("text/plain")),
            ),
        )
        .layer(budget)
        .service(routes(state));
    let answering = http.clone();
    let full_stack = service_fn(move |request| answer(answering.clone(), routes.clone(), request));
    ReplayCache::new(http, full_stack, MAX_BODY_BYTES)
}

/// Does for a request what every one needs: an id, a span, a count, and what [`check_origin_and_set_headers`] says.
///
/// One function, not a layer each: a request would pass all of them twice, when it arrives and when a store has answered,
/// and each would move it into another future.
async fn answer<S: RoutedService>(state: HttpState, routes: S, mut request: Request) -> Result<Response, Infallible> {
    let began = Instant::now();
    let (method, route) = (request.method().clone(), route_names().of(request.uri().path()));
    request.extensions_mut().insert(telemetry::RouteName(route));
    let id = request.headers().get(REQUEST_ID).cloned().or_else(new_request_id);
    if let Some(id) = &id {
        request.headers_mut().insert(REQUEST_ID, id.clone());
    }
    let span = span(&request, route);
    let counted = async {
        let response = check_origin_and_set_headers(&state, routes, request, route, began).await;
        telemetry::count_request(&method, route, response.status(), began);
        response
    };
    let mut response = counted.instrument(span).await;
    if let Some(id) = id {
        response.headers_mut().entry(REQUEST_ID).or_insert(id);
    }
    Ok(response)
}

/// The document at `/api/openapi.json`.
fn document(state: &AppState) -> Bytes {
    let derived = serde_json::to_value(openapi()).expect("a description is text, numbers and lists of them");
    Bytes::from(description::complete(derived, &state.site.public_url, state.site.is_https()).to_string())
}

fn routes(state: AppState) -> Router {
    let (api, _) = api(Some(&state));
    let (described, readiness) = (state.clone(), Arc::<Readiness>::default());
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
        .fold(Router::new(), |router, route| router.route(route, get(files::plain_file)))
        .route(
            "/api/openapi.json",
            get(async move || ([(header::CONTENT_TYPE, "application/json")], Bytes::clone(&document))),
        )
        .merge(pages::routes())
        .route(files::ROUTE, get(files::versioned_file))
        .route_service("/favicon.svg", file("favicon.svg"))
        // At the root: a worker cares for pages below its own folder only.
        .route_service("/ticket-worker.js", file("pkg/ticket-worker.js"))
        .route_service("/door-worker.js", file("pkg/door-worker.js"))
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(move |State(state): State<AppState>| async move { readiness.check(&state).await }))
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

/// The routes with their budgets, as [`answer`] calls them.
trait RoutedService: Service<Request, Response = Response, Error = Infallible, Future: Send> + Send {}

impl<S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Send> RoutedService for S {}

/// Refuses unsafe requests from other sites; sets the reader's language, the caching rules, the security headers, and on
/// every answer of the API the lock store's time, from which clients count down.
async fn check_origin_and_set_headers(
    state: &HttpState,
    routes: impl RoutedService,
    request: Request,
    route: &str,
    began: Instant,
) -> Response {
    let method = request.method().clone();
    let is_api = request.uri().path().starts_with("/api/");
    let is_read = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    let is_welcome = is_read || is_own_origin(&state.site, request.headers());
    let mut response = match (is_welcome, is_api) {
        (true, true) => answer_in_time(routes, request).await,
        // Boxed: otherwise a request of the API would have the size of a page's.
        (true, false) => {
            Box::pin(page_locale::serve(request, |request| answer_in_time(routes, request), &state.site)).await
        }
        (false, _) => Problem::new(Code::ForeignOrigin, "Requests that change something must come from our own pages.")
            .into_response(),
    };
    caching::enforce_no_store(&mut response, &method, route, began);
    write_default_headers(state, response.headers_mut(), is_api);
    response
}

/// A panic is a defect; its caller gets a problem and all other requests are served.
async fn answer_in_time(routes: impl RoutedService, request: Request) -> Response {
    let answered = AssertUnwindSafe(routes.oneshot(request)).catch_unwind();
    match tokio::time::timeout(REQUEST_DEADLINE, answered).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Err(panic)) => panicked(&*panic),
        Err(_elapsed) => StatusCode::GATEWAY_TIMEOUT.into_response(),
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

/// The shows with open live maps, which the crowd of a demo visits; without `DEMO_CROWD` there is no such page.
async fn watched_shows(State(state): State<AppState>) -> Response {
    if state.config.demo_crowd {
        Json(state.hubs.watched_shows()).into_response()
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

/// Removes the compressor from an uncompressed body and boxes a compressed one: a compressor takes kilobytes, which every
/// outer layer would copy.
fn without_compressor(response: axum::http::Response<CompressionBody<Body>>) -> Response {
    let is_uncompressed = !response.headers().contains_key(header::CONTENT_ENCODING);
    response.map(|body| if is_uncompressed { body.into_inner() } else { Body::new(body) })
}

fn panicked(panic: &(dyn Any + Send)) -> Response {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Problem::internal(&words.unwrap_or("a handler panicked")).into_response()
}

/// The span of a request. It has no path: keys in paths open tickets, bookings and offers.
fn span(request: &Request, route: &'static str) -> Span {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or("");
    let span = tracing::info_span!("request", method = %request.method(), route, id);
    telemetry::traces::continue_trace(&span, request.headers());
    span
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::future::Ready;

    use http::caching::{CacheClass, TABLE, cache_class};

    use super::*;
    use crate::web::authorisation::Access;

    #[tokio::test]
    async fn a_panic_of_a_handler_is_answered_with_a_problem() {
        fn defective(_: Request) -> Ready<Result<Response, Infallible>> {
            panic!("a defect")
        }
        let response = answer_in_time(service_fn(defective), Request::new(Body::empty())).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }

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

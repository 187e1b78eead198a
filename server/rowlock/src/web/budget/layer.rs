//! The layer around the routes: sheds requests, limits browsing to its slots, and measures latencies.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::{BoxFuture, Either};
use metrics::{Unit, counter, describe_counter};
use tower::{Layer, Service, ServiceExt};

use super::class::{RequestClass, RouteTerms, terms};
use super::controller::Controller;
use super::slots::{Work, WorkSlots};
use crate::web::pages::PageError;
use http::idempotency::Fingerprint;
use http::{Code, Problem};
use platform::{ids, telemetry};

/// Minimum `Retry-After` of a shed request, seconds…
const MIN_RETRY_AFTER_S: u64 = 1;
/// …and its random addition, so that clients do not all return at once.
const SPREAD_S: u64 = 4;

/// Requests shed because answers took too long: class.
const SHED: &str = "rowlock_shed_total";

/// Describes the metric and sets it to zero.
pub fn register_metrics() {
    describe_counter!(SHED, Unit::Count, "Requests refused because answers took too long, by what people were doing.");
    for class in RequestClass::ALL {
        counter!(SHED, "class" => class.label()).increment(0);
    }
}

/// Applies the latency budgets to the routes.
#[derive(Clone, Debug)]
pub struct BudgetLayer(Arc<Budgets>);

impl BudgetLayer {
    /// A layer for a server with this many connections to its database: browsing may use half of them.
    #[must_use]
    pub fn new(connections: u32) -> Self {
        let slots = usize::try_from(connections / 2).unwrap_or(usize::MAX).max(1);
        let began = Instant::now();
        Self(Arc::new(Budgets { began, controller: Controller::new(), slots: WorkSlots::new(slots) }))
    }
}

impl<S> Layer<S> for BudgetLayer {
    type Service = Budgeted<S>;

    fn layer(&self, routes: S) -> Budgeted<S> {
        Budgeted { routes, budgets: Arc::clone(&self.0) }
    }
}

#[derive(Debug)]
struct Budgets {
    /// Start of the server, from which instants are counted.
    began: Instant,
    controller: Controller,
    slots: WorkSlots,
}

/// Routes with their budgets.
#[derive(Clone, Debug)]
pub struct Budgeted<S> {
    routes: S,
    budgets: Arc<Budgets>,
}

type RouteResult = Result<Response, Infallible>;

impl<S> Service<Request> for Budgeted<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, RouteResult>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.routes.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let route = request.extensions().get::<telemetry::RouteName>();
        let Some(terms) = route.and_then(|route| terms(request.method(), route.0)) else {
            return Either::Left(self.routes.call(request));
        };
        let (budgets, routes) = (Arc::clone(&self.budgets), self.routes.clone());
        Either::Right(Box::pin(async move { Ok(budgets.answer(terms, routes, request).await) }))
    }
}

impl Budgets {
    async fn answer<S>(self: Arc<Self>, terms: RouteTerms, routes: S, request: Request) -> Response
    where
        S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> + Send + 'static,
    {
        let class = terms.class;
        let is_api = request.uri().path().starts_with("/api/");
        let at = self.now();
        self.turn(at);
        if self.controller.refuses(class, ids::jitter) {
            return refusal(class, is_api);
        }
        let measured = (terms.is_measured && has_full_body(&request))
            .then(|| MeasuredRequest::begin(Arc::clone(&self), class, at));
        let work = routes.oneshot(request);
        let Ok(response) = if terms.is_measured && class == RequestClass::Browsing {
            let Some(slot) = self.slots.take(class.budget()).await else { return refusal(class, is_api) };
            Work::new(work.boxed(), slot).await
        } else {
            work.await
        };
        if let Some(measured) = measured {
            measured.end();
        }
        response
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ends the window, and logs each change once.
    fn turn(&self, at: Duration) {
        for change in self.controller.turn(at) {
            let (class, budget_s) = (change.class.label(), change.class.budget().as_secs());
            if change.is_refused {
                tracing::warn!(class, budget_s, "latency over budget: shedding requests of this class");
            } else {
                tracing::warn!(class, budget_s, "latency within budget: no request of this class is shed any more");
            }
        }
    }
}

/// Returns true if the whole request has arrived. A slow sender must not count as a queue.
fn has_full_body(request: &Request) -> bool {
    request.body().is_end_stream() || request.extensions().get::<Fingerprint>().is_some()
}

/// A request whose latency is measured. Dropping it ends the measurement.
struct MeasuredRequest {
    budgets: Arc<Budgets>,
    class: RequestClass,
    began: Duration,
    is_answered: bool,
}

impl MeasuredRequest {
    fn begin(budgets: Arc<Budgets>, class: RequestClass, at: Duration) -> Self {
        budgets.controller.begin(class, at);
        Self { budgets, class, began: at, is_answered: false }
    }

    fn end(mut self) {
        self.is_answered = true;
    }
}

impl Drop for MeasuredRequest {
    fn drop(&mut self) {
        let at = self.budgets.now();
        self.budgets.controller.end(self.class, self.began, at, self.is_answered);
        self.budgets.turn(at);
    }
}

/// The answer to a shed request: a problem for programs, a page for people.
fn refusal(class: RequestClass, is_api: bool) -> Response {
    counter!(SHED, "class" => class.label()).increment(1);
    let mut response = if is_api {
        let detail = "Very many people are here at once. Nothing was lost; please try again in a moment.";
        Problem::new(Code::Overloaded, detail).into_response()
    } else {
        PageError::Busy.into_response()
    };
    let pause_s = MIN_RETRY_AFTER_S + ids::jitter(SPREAD_S);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(pause_s));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;

    /// A request with the route that the layer reads.
    fn request(route: &'static str, body: Body) -> Request {
        let mut request = Request::builder().uri(route).body(body).expect("a request");
        request.extensions_mut().insert(telemetry::RouteName(route));
        request
    }

    #[tokio::test]
    async fn a_shed_request_has_a_retry_after_and_for_programs_a_code() {
        for (is_api, kind) in [(true, "application/problem+json"), (false, "text/html; charset=utf-8")] {
            let mut pauses = std::collections::BTreeSet::new();
            for _ in 0..200 {
                let response = refusal(RequestClass::Browsing, is_api);
                assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
                assert_eq!(response.headers()[header::CONTENT_TYPE], kind);
                assert_eq!(response.headers()[header::CACHE_CONTROL], http::caching::PRIVATE);
                let pause = response.headers()[header::RETRY_AFTER].to_str().expect("text").to_owned();
                pauses.insert(pause.parse::<u64>().expect("a number"));
            }
            assert_eq!(pauses, (1..=5).collect(), "spread over five seconds");
        }
        let body = to_bytes(refusal(RequestClass::Browsing, true).into_body(), 10_000).await.expect("a body");
        assert!(String::from_utf8_lossy(&body).contains("\"overloaded\""));
    }

    #[test]
    fn a_slow_sender_is_not_measured() {
        let slow = Body::from_stream(futures::stream::pending::<Result<axum::body::Bytes, Infallible>>());
        assert!(!has_full_body(&request("/api/v1/shows/{show}/holds", slow)));
        assert!(has_full_body(&request("/search", Body::empty())));
    }

    /// Of ten connections, five hanging browsing requests take half. The sixth waits; a payment does not.
    #[tokio::test]
    async fn browsing_takes_half_of_the_connections_at_most() {
        let hangs = tower::service_fn(|request: Request| async move {
            if request.uri().path() == "/search" {
                std::future::pending::<()>().await;
            }
            RouteResult::Ok(StatusCode::NO_CONTENT.into_response())
        });
        let layer = BudgetLayer::new(10);
        let (budgets, routes) = (Arc::clone(&layer.0), layer.layer(hangs));
        let mut hanging: Vec<_> =
            (0..6).map(|_| Box::pin(routes.clone().oneshot(request("/search", Body::empty())))).collect();
        for one in &mut hanging {
            assert!(futures::poll!(one).is_pending());
        }
        assert!(budgets.slots.take(Duration::ZERO).await.is_none(), "five places, and all are taken");
        for route in ["/api/v1/bookings", "/shows/{id}", "/staff/{theatre}/reports"] {
            let Ok(answer) = routes.clone().oneshot(request(route, Body::empty())).await;
            assert_eq!(answer.status(), StatusCode::NO_CONTENT, "{route}");
        }
        let Ok(last) = hanging.pop().expect("six").await;
        assert_eq!(last.status(), StatusCode::SERVICE_UNAVAILABLE, "after two seconds");
    }
}

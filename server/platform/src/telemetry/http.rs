//! `/metrics`, and the counting of requests.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::{counter, histogram};
use sha2::{Digest, Sha256};

use super::routes::{RouteName, Routes};
use super::{HTTP_DURATION, HTTP_REQUESTS, RECORDER, gauges, traces};
use crate::AppState;

/// The text format's name.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counts a request and how long it took until its answer began.
pub async fn count(State(routes): State<&'static Routes>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = routes.of(request.uri().path());
    request.extensions_mut().insert(RouteName(route));
    let method = name_of(request.method());
    let response = next.run(request).await;
    traces::describe(method, route, response.status().as_u16());
    counter!(HTTP_REQUESTS, "method" => method, "route" => route, "status" => status_text(response.status()))
        .increment(1);
    histogram!(HTTP_DURATION, "method" => method, "route" => route).record(began.elapsed());
    response
}

/// Anybody may send any word as a method.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn status_text(status: StatusCode) -> String {
    status.as_str().to_owned()
}

/// All metrics, for whoever has `METRICS_TOKEN`; without one set there is no such page.
pub async fn metrics(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let (Some(token), Some(recorder)) = (&state.config.metrics_token, RECORDER.get()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    // Digests are compared, so the time it takes says nothing about the token.
    if token.is_empty() || Sha256::digest(given) != Sha256::digest(token) {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    gauges::refresh(&state).await;
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], recorder.render()).into_response()
}

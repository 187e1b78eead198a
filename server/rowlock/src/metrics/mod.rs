//! `/metrics`: every metric of the server in Prometheus' text format, gauges read on each scrape.

mod gauges;
#[cfg(test)]
mod rules;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use metrics::describe_gauge;
use platform::telemetry;
use sha2::{Digest, Sha256};

use crate::AppState;
use crate::web::budget;

/// The text format's name.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Starts recording, once a process.
///
/// # Errors
/// When the process has another recorder already.
pub fn install() -> anyhow::Result<()> {
    telemetry::install(register)
}

/// Describes every metric and sets it to zero.
fn register() {
    telemetry::register();
    http::idempotency::metrics::register();
    budget::register_metrics();
    for (name, unit, meaning) in gauges::DESCRIBED {
        describe_gauge!(name, unit, meaning);
    }
}

/// All metrics, for requests with `METRICS_TOKEN`; without that setting there is no such page.
pub async fn metrics(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let Some(token) = &state.config.metrics_token else { return StatusCode::NOT_FOUND.into_response() };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    // Digests are compared, so that the time it takes reveals nothing about the token.
    if token.is_empty() || Sha256::digest(given) != Sha256::digest(token) {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    gauges::refresh(&state).await;
    match telemetry::render() {
        Some(text) => ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

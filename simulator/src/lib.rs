//! A simulated payment gateway. It is a separate process with its own page and memory, reached by HTTP
//! only, so that the demo and the tests use it like a real gateway. And the simulated visitors of the demo.
//!
//! It has no real money, no real card numbers, and no state that survives a restart.
//!
//! - [`cards`] test cards · `ledger` all payments · `charging` order of verdicts and webhooks
//! - `api` the merchant API · `stripe` the same as Stripe's API · `page` the payer's page ·
//!   [`webhooks`] webhook delivery
//! - [`crowd`] the visitors of the demo, a process of their own
//!
//! Of the workspace it may use `domain` only. To add a test card: `cards.rs`. To add another gateway's protocol: a
//! folder like `stripe`, a variant of [`payment::Protocol`], and its routes in [`router`].

mod api;
pub mod cards;
mod charging;
mod clock;
pub mod crowd;
mod ledger;
mod page;
pub mod payment;
mod stripe;
pub mod webhooks;

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use charging::{Settings, Simulator};

/// Maximum size of a request body, bytes.
const MAX_BODY_BYTES: usize = 16 * 1024;
/// Timeout of running requests after the stop signal.
const STOP_DEADLINE: Duration = Duration::from_secs(2);

/// Builds all routes.
pub fn router(simulator: Simulator) -> Router {
    Router::new()
        .merge(api::routes(&simulator))
        .merge(stripe::routes(&simulator))
        .merge(page::routes())
        .route("/healthz", get(async || "ok"))
        .fallback(async || (StatusCode::NOT_FOUND, "There is nothing here.\n"))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(simulator)
}

/// Serves until `stop` completes, then waits up to [`STOP_DEADLINE`] for running requests.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    simulator: Simulator,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopping, stopped) = oneshot::channel();
    let server = axum::serve(listener, router(simulator)).with_graceful_shutdown(async move {
        stop.await;
        let _server_is_gone = stopping.send(());
    });
    let overdue = async {
        // Wait forever when the server ended by itself.
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(STOP_DEADLINE).await;
    };
    tokio::select! {
        served = server => served,
        () = overdue => Ok(()),
    }
}

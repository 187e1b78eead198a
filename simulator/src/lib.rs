//! A payment gateway to practise against. It plays a third party: its own process, its own page, its
//! own memory, reached by HTTP only, so that the demo and the tests take the road a real one takes.
//!
//! What is not here: real money, real card numbers, anything that survives a restart.
//!
//! - [`cards`] how a payment can go · [`ledger`] all payments · [`charging`] what happens when
//! - `api` the merchant's JSON · [`stripe`] the same in Stripe's words · `page` the payer's page ·
//!   [`webhooks`] telling the merchant

mod api;
pub mod cards;
pub mod charging;
mod clock;
pub mod ledger;
mod page;
pub mod payment;
pub mod stripe;
pub mod webhooks;

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use charging::{Settings, Simulator};

/// Largest request body, bytes.
const MAX_BODY_BYTES: usize = 16 * 1024;
/// How long requests under way may take after the signal to stop.
const STOP_DEADLINE: Duration = Duration::from_secs(2);

/// All routes.
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

/// Serves until `stop` is done, then gives requests under way [`STOP_DEADLINE`].
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
        // Never, when the server ended by itself.
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

//! Putting the parts together, and taking them apart again in order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::seat_locks::RedisLocks;
use crate::{AppState, Parts, bookings, catalogue, idempotency, live, outbox, payments, seat_locks, tickets, web};

/// Waiting for a free database connection longer than this is an answer: not now.
const POOL_DEADLINE: Duration = Duration::from_secs(5);
/// Open work is waited for this long when stopping.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Postgres.
///
/// # Errors
/// When the address is unusable or nobody answers there.
pub async fn database(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    let options: PgConnectOptions = url.parse().context("DATABASE_URL")?;
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(POOL_DEADLINE)
        .connect_with(options.application_name("rowlock"))
        .await
        .context("Postgres does not answer at DATABASE_URL")
}

/// Brings the schema up to date.
///
/// # Errors
/// When a migration fails or one that was applied has changed since.
pub async fn migrate(pg: &PgPool) -> anyhow::Result<()> {
    sqlx::migrate!("../migrations").run(pg).await.context("the schema could not be brought up to date")
}

/// Everything a request may need, from settings.
///
/// # Errors
/// When something cannot be reached or a setting is unusable.
pub async fn assemble(config: Config) -> anyhow::Result<AppState> {
    // One provider for all TLS of the process; a second call in a test process is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pg = database(&config.database_url, config.database_connections).await?;
    let locks = RedisLocks::connect(&config.redis_url, &config.redis_prefix)
        .await
        .context("Redis does not answer at REDIS_URL")?;
    let gateway =
        payments::SimulatorGateway::new(&config.simulator_url, &config.simulator_api_key, &config.public_url)?;
    let mailer = tickets::Mailer::from_config(&config)?;
    Ok(AppState::new(Parts {
        catalogue: catalogue::Catalogue::new(pg.clone()),
        pg,
        locks: Arc::new(locks),
        watched: seat_locks::Watched::default(),
        hubs: live::Hubs::default(),
        gateway: Arc::new(gateway),
        mailer,
        outbox_wake: outbox::Wake::default(),
        stop: CancellationToken::new(),
        tasks: TaskTracker::new(),
        config,
    }))
}

/// Starts the background work of a replica.
pub fn spawn_background(state: &AppState) {
    state.tasks.spawn(seat_locks::sweep_forever(state.clone()));
    state.tasks.spawn(live::follow_changes(state.clone()));
    for lane in [outbox::Lane::Gateway, outbox::Lane::House] {
        state.tasks.spawn(outbox::relay_forever(state.clone(), lane));
    }
    state.tasks.spawn(bookings::reconcile_forever(state.clone()));
    state.tasks.spawn(idempotency::purge_forever(state.clone()));
}

/// Serves until `state.stop`: then readers are told to come back, open requests finish, and background
/// work ends.
///
/// # Errors
/// When the listener fails.
pub async fn serve(state: AppState, listener: TcpListener) -> anyhow::Result<()> {
    spawn_background(&state);
    let router = web::router::build(state.clone());
    let stop = state.stop.clone();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await });
    let stopped = async {
        state.stop.cancelled().await;
        tokio::time::sleep(STOP_DEADLINE).await;
    };
    tokio::select! {
        served = server => served?,
        () = stopped => tracing::warn!("stopping with requests still open"),
    }
    state.tasks.close();
    if tokio::time::timeout(STOP_DEADLINE, state.tasks.wait()).await.is_err() {
        tracing::warn!("stopping with background work still open; another replica or the next start finishes it");
    }
    Ok(())
}

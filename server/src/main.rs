//! `rowlock`: serve, migrate, release-holds, demo.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use server::seat_locks::{ReleasedAll, SeatLocks, StoreError};
use server::{AppState, catalogue, clock, config::Config, start};
use tracing_subscriber::EnvFilter;
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A live seat map that never sells a seat twice.
#[derive(Parser)]
#[command(name = "rowlock", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the site and the API.
    Serve(Box<Config>),
    /// Bring the schema up to date.
    Migrate {
        /// Postgres, `postgres://…`.
        #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
        database_url: String,
    },
    /// Let every hold of a show go, but for those being paid: the room is closed, the show is called off.
    ReleaseHolds {
        /// The show.
        show: Uuid,
        /// Redis: one server, sentinels or a Cluster, as for `serve`.
        #[arg(long, env = "REDIS_URL", hide_env_values = true)]
        redis_url: String,
        /// Put in front of every Redis key.
        #[arg(long, env = "REDIS_PREFIX", default_value = "")]
        redis_prefix: String,
    },
    /// Load the demo chain of cinemas with shows for the days from now.
    Demo {
        /// Postgres, `postgres://…`.
        #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
        database_url: String,
        /// Folder of the demo's data.
        #[arg(long, default_value = "demo")]
        dir: PathBuf,
        /// How many days of shows.
        #[arg(long, default_value_t = 7)]
        days: u32,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .init();
    match Cli::parse().command {
        Command::Serve(config) => serve(*config).await,
        Command::Migrate { database_url } => start::migrate(&start::database(&database_url, 1).await?).await,
        Command::ReleaseHolds { show, redis_url, redis_prefix } => {
            let (_, locks) = start::lock_store(&redis_url, &redis_prefix).await?;
            match locks.release_all(show).await {
                Ok(ReleasedAll { released, paying }) => println!("{released} holds let go, {paying} being paid stay"),
                Err(StoreError::NoMap(_)) => println!("nobody holds a seat in that show"),
                Err(cause) => return Err(cause.into()),
            }
            Ok(())
        }
        Command::Demo { database_url, dir, days } => {
            let pg = start::database(&database_url, 2).await?;
            let loaded = catalogue::demo::load(&pg, &dir, clock::now(), days).await?;
            tracing::info!(?loaded, "the demo chain is in place");
            Ok(())
        }
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let listener = start::listen(config.listen).with_context(|| format!("cannot listen on {}", config.listen))?;
    let public_url = config.public_url.clone();
    let state = start::assemble(config).await?;
    tokio::spawn(stop_on_signal(state.clone()));
    tracing::info!(listen = %listener.local_addr()?, public_url, "serving");
    start::serve(state, listener).await;
    Ok(())
}

/// Ctrl-C or SIGTERM: stop kindly.
async fn stop_on_signal(state: AppState) {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        _ = interrupted => {}
        () = terminated => {}
    }
    tracing::info!("stopping");
    state.stop.cancel();
}

//! `rowlock`: parses the arguments and runs a command: serve, check, migrate, demo, or one of `commands/`, which staff
//! use until they have pages for them.

mod commands;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use platform::{clock, telemetry};
use rowlock::config::{CommandLineError, Config, SettingError, parse_command_line};
use rowlock::{AppState, check, migrations, start, web};
use uuid::Uuid;

use commands::admin::{self, AdminCommand};
use commands::parked::{self, ParkedCommand};
use commands::theatre::{self, TheatreCommand};
use commands::waiting_room::{self, WaitingRoomCommand};
use commands::{Database, cancelling};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A live seat map that never sells a seat twice.
#[derive(Parser)]
#[command(name = "rowlock", version)]
struct Cli {
    /// A file of settings, in TOML; the environment and flags go before it.
    #[arg(long, env = "ROWLOCK_CONFIG", global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the site and the API.
    Serve(Box<Config>),
    /// Look whether a system that runs can sell, from one end to the other. Sells nothing.
    Check {
        #[command(flatten)]
        config: Box<Config>,
        /// One JSON object in place of the table.
        #[arg(long)]
        json: bool,
    },
    /// Bring the schema up to date.
    Migrate {
        #[command(flatten)]
        database: Database,
    },
    /// Let every hold of a show go, but for those being paid: the room is closed, the show is cancelled.
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
    /// Cancel a booking, or some of its seats, in full; the buyer gets a mail.
    CancelBooking {
        /// Its reference, for example `K7QM-2XPA`.
        reference: String,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
        /// Only this seat, for example `C7`; may be given several times.
        #[arg(long = "seat")]
        seats: Vec<String>,
        #[command(flatten)]
        database: Database,
    },
    /// Call a show off: nothing more is sold, and every booking is undone in full.
    CancelShow {
        /// The show.
        show: Uuid,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        database: Database,
    },
    /// Effects whose retries are exhausted and that wait for a person.
    Parked {
        #[command(subcommand)]
        what: Option<ParkedCommand>,
        #[command(flatten)]
        database: Database,
    },
    /// The waiting room of a show.
    WaitingRoom {
        #[command(subcommand)]
        what: WaitingRoomCommand,
        #[command(flatten)]
        database: Database,
    },
    /// Theatres, before there is a manager who could write one down.
    Theatre {
        #[command(subcommand)]
        what: TheatreCommand,
        #[command(flatten)]
        database: Database,
    },
    /// Accounts of people who work here.
    Admin {
        #[command(subcommand)]
        what: AdminCommand,
        #[command(flatten)]
        database: Database,
    },
    /// Load the demo chain of cinemas with shows for the days from now.
    Demo {
        #[command(flatten)]
        database: Database,
        /// Folder of the demo's data.
        #[arg(long, default_value = "demo")]
        dir: PathBuf,
        /// Number of days with shows.
        #[arg(long, default_value_t = 7)]
        days: u32,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let cli = match parse_command_line::<Cli>(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => cli,
        Err(CommandLineError::Arguments(cause)) => cause.exit(),
        Err(CommandLineError::Settings(wrong)) => return Ok(refused(&wrong)),
    };
    let traces = telemetry::traces::begin(matches!(cli.command, Command::Serve(_)))?;
    if let Some(file) = &cli.config {
        tracing::info!(file = %file.display(), "settings read from a file as well");
    }
    match cli.command {
        Command::Serve(config) => {
            let wrong = config.validate();
            if !wrong.is_empty() {
                return Ok(refused(&wrong));
            }
            let served = serve(*config).await;
            traces.end().await;
            served
        }
        Command::Check { config, json } => {
            let report = check::check(&config).await;
            if json {
                println!("{}", report.json())
            } else {
                print!("{}", report.table())
            }
            return Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Migrate { database } => migrations::migrate(&database.connect(1).await?).await,
        Command::ReleaseHolds { show, redis_url, redis_prefix } => {
            cancelling::release_holds(show, &redis_url, &redis_prefix).await
        }
        Command::CancelBooking { reference, reason, seats, database } => {
            cancelling::booking(&reference, &seats, &reason, &database).await
        }
        Command::CancelShow { show, reason, database } => cancelling::show(show, &reason, &database).await,
        Command::Parked { what, database } => parked::run(what.unwrap_or(ParkedCommand::List), &database).await,
        Command::WaitingRoom { what, database } => waiting_room::run(what, &database).await,
        Command::Theatre { what, database } => theatre::run(what, &database).await,
        Command::Admin { what, database } => admin::run(what, &database).await,
        Command::Demo { database, dir, days } => {
            let pg = database.connect(2).await?;
            let loaded = catalogue::demo::load(&pg, &dir, clock::now(), days).await?;
            tracing::info!(?loaded, "demo chain loaded");
            Ok(())
        }
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Settings that cannot be used: as clap ends where words are wrong.
const BAD_SETTINGS: u8 = 2;

/// Names all that is wrong with the settings.
fn refused(wrong: &[SettingError]) -> ExitCode {
    eprintln!("these settings cannot be used:");
    for wrong in wrong {
        eprintln!("  {wrong}");
    }
    ExitCode::from(BAD_SETTINGS)
}

async fn serve(config: Config) -> anyhow::Result<()> {
    web::connections::raise_file_limit();
    let listener = start::listen(config.listen).with_context(|| format!("cannot listen on {}", config.listen))?;
    let public_url = config.site.public_url.clone();
    let state = start::assemble(config).await?;
    tokio::spawn(stop_on_signal(state.clone()));
    tracing::info!(listen = %listener.local_addr()?, public_url, "serving");
    start::serve(state, listener).await;
    Ok(())
}

/// Stops gracefully at Ctrl-C or SIGTERM.
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

//! `rowlock`: serve, check, migrate, release-holds, demo, and what staff do until they have pages for it:
//! cancel-booking, cancel-show, parked, admin.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use domain::api_waiting_room::WaitingRoomRequest;
use server::config::{Config, Refused, Wrong, given};
use server::seat_locks::{ReleasedAll, SeatLocks, StoreError};
use server::{AppState, accounts, bookings, catalogue, check, clock, outbox, start, telemetry};
use uuid::Uuid;

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
    /// Undo a booking, or some of its seats, in full; the buyer is told why.
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
    /// Effects that were tried in vain and wait for a person.
    Parked {
        #[command(subcommand)]
        what: Option<Parked>,
        #[command(flatten)]
        database: Database,
    },
    /// The waiting room of a show.
    WaitingRoom {
        #[command(subcommand)]
        what: WaitingRoom,
        #[command(flatten)]
        database: Database,
    },
    /// Accounts of people who work here.
    Admin {
        #[command(subcommand)]
        what: Admin,
        #[command(flatten)]
        database: Database,
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

#[derive(clap::Args)]
struct Database {
    /// Postgres, `postgres://…`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
}

#[derive(Subcommand)]
enum WaitingRoom {
    /// Have the show entered through one, or change the one it has.
    On {
        /// The show.
        show: Uuid,
        /// When it opens, for example `2026-12-01T10:00:00Z`.
        #[arg(long)]
        opens_at: String,
        /// People let in a second at most, 1 to 1,000.
        #[arg(long)]
        per_second: u32,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
    /// Open the show to everybody; tickets of the room are worth nothing any more.
    Off {
        /// The show.
        show: Uuid,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Subcommand)]
enum Admin {
    /// Make somebody a manager: of every theatre there is, or of those named. The password is read from
    /// ROWLOCK_PASSWORD, or asked for; one who has an account keeps theirs.
    Create {
        /// Address they sign in with.
        #[arg(long)]
        email: String,
        /// Their name.
        #[arg(long)]
        name: String,
        /// Slug of a theatre, for example `aurora-lisbon`; may be given several times.
        #[arg(long = "theatre")]
        theatres: Vec<String>,
    },
    /// Close an account: nobody signs in to it any more, and whoever is signed in is not from now on.
    Close {
        /// Its address.
        #[arg(long)]
        email: String,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Subcommand)]
enum Parked {
    /// Name them.
    List,
    /// Have one tried again.
    Retry {
        /// Its number in the list.
        id: i64,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
    /// Take one off the list: somebody did it in another way.
    Settle {
        /// Its number in the list.
        id: i64,
        /// How, in one line.
        #[arg(long)]
        reason: String,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let cli = match given::<Cli>(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => cli,
        Err(Refused::Words(cause)) => cause.exit(),
        Err(Refused::Settings(wrong)) => return Ok(refused(&wrong)),
    };
    let traces = telemetry::traces::begin(matches!(cli.command, Command::Serve(_)))?;
    if let Some(file) = &cli.config {
        tracing::info!(file = %file.display(), "settings are read from a file as well");
    }
    match cli.command {
        Command::Serve(config) => {
            let wrong = config.wrong();
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
        Command::CancelBooking { reference, reason, seats, database } => {
            let pg = start::database(&database.database_url, 1).await?;
            let undone = bookings::cancel_booking(&pg, &reference, &seats, &reason, clock::now()).await;
            println!("cancelled; {} goes back to the buyer", undone.map_err(in_words)?.back);
            Ok(())
        }
        Command::CancelShow { show, reason, database } => cancel_show(show, &reason, &database).await,
        Command::Parked { what, database } => parked(what.unwrap_or(Parked::List), &database).await,
        Command::WaitingRoom { what, database } => waiting_room(what, &database).await,
        Command::Admin { what, database } => admin(what, &database).await,
        Command::Demo { database_url, dir, days } => {
            let pg = start::database(&database_url, 2).await?;
            let loaded = catalogue::demo::load(&pg, &dir, clock::now(), days).await?;
            tracing::info!(?loaded, "the demo chain is in place");
            Ok(())
        }
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Settings that cannot be used: as clap ends where words are wrong.
const BAD_SETTINGS: u8 = 2;

/// Names all that is wrong with the settings.
fn refused(wrong: &[Wrong]) -> ExitCode {
    eprintln!("these settings cannot be used:");
    for wrong in wrong {
        eprintln!("  {wrong}");
    }
    ExitCode::from(BAD_SETTINGS)
}

/// A refusal, for the one at the keyboard.
fn in_words(problem: server::web::Problem) -> anyhow::Error {
    anyhow::anyhow!("{}", problem.detail())
}

/// How often the command looks at bookings that somebody is moving just now; replicas do not give up.
const MAX_BUSY_LOOKS: u32 = 50;
/// How often it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

async fn cancel_show(show: Uuid, reason: &str, database: &Database) -> anyhow::Result<()> {
    let pg = start::database(&database.database_url, 2).await?;
    if !bookings::call_off(&pg, show, reason, clock::now()).await.map_err(in_words)? {
        eprintln!("it was called off before; going on with what is left");
    }
    let (mut undone, mut busy) = (0, 0);
    while busy < MAX_BUSY_LOOKS {
        match bookings::undo_batch(&pg, show, clock::now()).await.map_err(in_words)? {
            bookings::Batch::Undone(count) => {
                (undone, busy) = (undone + count, 0);
                eprintln!("{undone} bookings undone");
            }
            bookings::Batch::Busy => {
                busy += 1;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            bookings::Batch::NoneLeft => break,
        }
    }
    if busy == MAX_BUSY_LOOKS {
        eprintln!("the servers go on with what is left");
    }
    println!("called off; {undone} bookings undone here, refunds and mails are on their way");
    Ok(())
}

async fn waiting_room(what: WaitingRoom, database: &Database) -> anyhow::Result<()> {
    let pg = start::database(&database.database_url, 1).await?;
    let (show, request) = match what {
        WaitingRoom::On { show, opens_at, per_second, reason } => {
            let (opens_at, per_second) = (Some(opens_at), Some(per_second));
            (show, WaitingRoomRequest { on: true, opens_at, per_second, reason })
        }
        WaitingRoom::Off { show, reason } => {
            (show, WaitingRoomRequest { on: false, opens_at: None, per_second: None, reason })
        }
    };
    let show = catalogue::Catalogue::new(pg.clone()).known_show(show).await.map_err(in_words)?;
    let mut tx = pg.begin().await?;
    server::waiting_room::set_up(&mut tx, &show, None, &request, None, clock::now())
        .await
        .map_err(|refused| in_words(refused.problem()))?;
    tx.commit().await?;
    println!("the waiting room is {}; servers know within seconds", if request.on { "on" } else { "off" });
    Ok(())
}

async fn admin(what: Admin, database: &Database) -> anyhow::Result<()> {
    let pg = start::database(&database.database_url, 2).await?;
    match what {
        Admin::Create { email, name, theatres } => {
            let known = catalogue::Catalogue::new(pg.clone()).theatres(None).await?;
            let theatres = if theatres.is_empty() { known.iter().map(|at| at.id.clone()).collect() } else { theatres };
            anyhow::ensure!(!theatres.is_empty(), "there is no theatre to be a manager of yet");
            if let Some(unknown) = theatres.iter().find(|slug| !known.iter().any(|at| at.id == **slug)) {
                anyhow::bail!("there is no theatre {unknown}; known are those of /api/v1/cities/…/theatres");
            }
            let person = domain::api::Person { name, email };
            let password = password()?;
            let made = accounts::create_manager(&pg, &person, &password, &theatres, clock::now()).await;
            let made = made.map_err(in_words)?;
            match (made.was_there, made.has_password) {
                (true, false) => eprintln!("there is such an account already; its password stays"),
                (true, true) => eprintln!(
                    "there was such an account already, but its address was never confirmed: it has the new password \
                     now, and whoever was signed in to it is not any more"
                ),
                (false, _) => {}
            }
            println!("account {} is a manager of {}", made.account, theatres.join(", "));
            Ok(())
        }
        Admin::Close { email, reason } => {
            let account = accounts::close(&pg, &email, &reason, clock::now()).await.map_err(in_words)?;
            println!("account {account} is closed; servers know within seconds");
            Ok(())
        }
    }
}

/// From the environment, or asked for. Never from the command line, where everybody on the machine can read it.
fn password() -> anyhow::Result<domain::api_accounts::Password> {
    use domain::api_accounts::Password;
    if let Ok(password) = std::env::var("ROWLOCK_PASSWORD") {
        return Ok(Password::new(password));
    }
    anyhow::ensure!(std::io::stdin().is_terminal(), "set ROWLOCK_PASSWORD, or run this at a terminal to be asked");
    let (first, again) = (asked("Password: ")?, asked("Once more: ")?);
    anyhow::ensure!(first == again, "these are two different passwords; nothing was done");
    Ok(Password::new(first))
}

/// A line from the terminal that does not show it.
fn asked(what: &str) -> anyhow::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    eprint!("{what}");
    let terminal = std::io::stdin();
    let usual = tcgetattr(&terminal)?;
    let mut silent = usual.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let mut line = String::new();
    let read = terminal.read_line(&mut line);
    tcsetattr(&terminal, OptionalActions::Now, &usual)?;
    eprintln!();
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn parked(what: Parked, database: &Database) -> anyhow::Result<()> {
    let pg = start::database(&database.database_url, 1).await?;
    match what {
        Parked::List => {
            let list = outbox::parked(&pg).await?;
            for job in &list {
                let amount = job.amount.map(|amount| format!(" {amount}")).unwrap_or_default();
                let since = clock::rfc3339(job.since);
                println!(
                    "{}  {}  {}{amount}  since {since}, {} tries: {}",
                    job.id, job.reference, job.effect, job.attempts, job.why
                );
            }
            eprintln!("{} wait for a person", list.len());
            Ok(())
        }
        Parked::Retry { id, reason } => {
            bookings::retry_parked(&pg, id, &reason, clock::now()).await.map_err(in_words)?;
            println!("{id} will be tried again");
            Ok(())
        }
        Parked::Settle { id, reason } => {
            bookings::settle_parked(&pg, id, &reason, clock::now()).await.map_err(in_words)?;
            println!("{id} is settled");
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

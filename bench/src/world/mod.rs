//! The environment of a run: a private database and Redis prefix, servers under test, and shows.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use tokio::runtime::Runtime;
use uuid::Uuid;

mod catalogue;
mod processes;
mod store;

pub use catalogue::Show;
pub use processes::{BenchServer, Process, free_port};
pub use store::{ANSWER_HEAD, HOLD_MS, LockAttempt, Script, Store};

use crate::checker::{self, BOOKED, Findings, Ledger};
use crate::cpu;
use crate::random::Random;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Programs, stores and folders that every benchmark needs.
#[derive(Clone, Debug, clap::Args)]
pub struct RunPaths {
    /// The server program under test.
    #[arg(long, env = "ROWLOCK_SERVER", default_value = "target/benchmark/rowlock", global = true)]
    pub server: PathBuf,
    /// The payment simulator program.
    #[arg(long, env = "ROWLOCK_SIMULATOR", default_value = "target/benchmark/payment-simulator", global = true)]
    pub simulator: PathBuf,
    /// Folder of the server's Lua scripts, which are under test.
    #[arg(long, default_value = "server/seats/src/seat_locks/lua", global = true)]
    pub scripts: PathBuf,
    /// Postgres URL; a database is created for the run and dropped after it.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, default_value = "", global = true)]
    pub database_url: String,
    /// Redis URL, on this machine: its CPU time is read from /proc.
    #[arg(long, env = "REDIS_URL", hide_env_values = true, default_value = "", global = true)]
    pub redis_url: String,
    /// Folder for the logs of started programs.
    #[arg(long, env = "ROWLOCK_BENCH_LOGS", default_value = "target/bench", global = true)]
    pub logs: PathBuf,
}

pub struct World {
    pub paths: RunPaths,
    pub pg: PgPool,
    pub store: Store,
    pub random: Random,
    pub runtime: Runtime,
    postmaster: u32,
    database: String,
    database_url: String,
}

impl World {
    /// Creates the database with its schema; `Drop` removes it.
    pub fn create(paths: &RunPaths) -> Result<Self> {
        anyhow::ensure!(
            !paths.database_url.is_empty() && !paths.redis_url.is_empty(),
            "DATABASE_URL and REDIS_URL are not set; `cargo xtask bench` starts both stores and sets them"
        );
        let mut random = Random::fresh();
        let name = random.hex();
        let database = format!("rowlock_bench_{name}");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let options: PgConnectOptions = paths.database_url.parse().context("DATABASE_URL")?;
        let (pg, postmaster) = runtime.block_on(async {
            let mut admin = PgConnection::connect_with(&options).await.context("Postgres does not answer")?;
            let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {database}"));
            sqlx::query(create).execute(&mut admin).await?;
            let backend: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut admin).await?;
            let pg = PgPoolOptions::new().max_connections(2).connect_with(options.clone().database(&database)).await?;
            let postmaster = cpu::parent_of(backend.unsigned_abs()).context("Postgres runs on another machine")?;
            anyhow::Ok((pg, postmaster))
        })?;
        let database_url = with_database(&paths.database_url, &database);
        let store = Store::open(&paths.redis_url, &format!("b{name}:"), &paths.scripts)?;
        let paths = paths.clone();
        let world = Self { paths, pg, store, random, runtime, postmaster, database, database_url };
        world.command(&["migrate"]).context("the schema cannot be created")?;
        Ok(world)
    }

    pub fn postgres_setting(&self, name: &str) -> Result<String> {
        let asked = sqlx::query_scalar("SELECT current_setting($1)").bind(name.to_owned());
        Ok(self.runtime.block_on(asked.fetch_one(&self.pg))?)
    }

    /// Returns the process id of Postgres, the parent of its other processes.
    pub const fn postmaster(&self) -> u32 {
        self.postmaster
    }

    pub fn postgres_cpu(&self) -> Result<cpu::Cpu> {
        let mut pids = cpu::children_of(self.postmaster);
        pids.push(self.postmaster);
        // Skip backends that ended meanwhile; pooled connections keep theirs.
        pids.retain(|pid| cpu::parent_of(*pid).is_some());
        cpu::Cpu::of(&pids)
    }

    /// Reads a show's claims, tickets, payments and bookings.
    pub fn ledger(&self, show: &Show) -> Result<Ledger> {
        Ok(Ledger {
            sold: self.seats_and_bookings(
                show,
                "SELECT seat_no, booking_id FROM seat_claims WHERE show_id = $1 AND state = 'sold'",
            )?,
            open_claims: self
                .count_of_show(show, "SELECT count(*) FROM seat_claims WHERE show_id = $1 AND state = 'claimed'")?,
            tickets: self.seats_and_bookings(
                show,
                "SELECT ticket.seat_no, ticket.booking_id
                 FROM tickets ticket JOIN bookings booking ON booking.id = ticket.booking_id
                 WHERE booking.show_id = $1",
            )?,
            paid: self.count_of_show(
                show,
                "SELECT count(*) FROM payments payment JOIN bookings booking ON booking.id = payment.booking_id
                 WHERE booking.show_id = $1 AND payment.state = 'succeeded' AND payment.refund_state IS NULL",
            )?,
            confirmed: self
                .count_of_show(show, "SELECT count(*) FROM bookings WHERE show_id = $1 AND state = 'CONFIRMED'")?,
        })
    }

    fn seats_and_bookings(&self, show: &Show, query: &'static str) -> Result<Vec<(u32, Uuid)>> {
        let rows = sqlx::query_as::<_, (i32, Uuid)>(query).bind(show.id).fetch_all(&self.pg);
        let numbered = |(seat, booking): (i32, Uuid)| (seat.unsigned_abs(), booking);
        Ok(self.runtime.block_on(rows)?.into_iter().map(numbered).collect())
    }

    /// Counts with a query whose parameter is the show.
    pub fn count_of_show(&self, show: &Show, query: &'static str) -> Result<u64> {
        let counted = sqlx::query_scalar::<_, i64>(query).bind(show.id).fetch_one(&self.pg);
        Ok(self.runtime.block_on(counted)?.unsigned_abs())
    }

    /// Counts with a query without parameters; a negative result counts as 0.
    pub fn count(&self, query: &'static str) -> Result<u64> {
        let count = self.runtime.block_on(sqlx::query_scalar::<_, i64>(query).fetch_one(&self.pg))?;
        Ok(count.max(0).unsigned_abs())
    }

    /// Returns the number of outbox rows: pending effects.
    pub fn pending_effects(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM outbox")
    }

    /// Waits until the show is sold out, then compares the purchases with Postgres, Redis and every server's map.
    pub fn check_sold_out(
        &mut self,
        servers: &[BenchServer],
        show: &Show,
        bought: &[(u32, Uuid)],
        timeout: Duration,
    ) -> Result<Findings> {
        let mut found = self.wait_until_sold_out(servers, show, timeout)?;
        let stored = self.store.stored(show)?;
        found.join(checker::sale(bought, &self.ledger(show)?, &stored.map));
        for (number, server) in (1..).zip(servers) {
            found.join(checker::view(&format!("server {number}"), &server.seat_states(show)?, &stored.map));
        }
        Ok(found)
    }

    /// Waits until every server shows every seat as sold and no effect is pending.
    fn wait_until_sold_out(&self, servers: &[BenchServer], show: &Show, timeout: Duration) -> Result<Findings> {
        let (mut found, mut open) = (Findings::default(), 0);
        let is_settled = wait_until(timeout, POLL_INTERVAL, || {
            open = self.pending_effects()?;
            let mut is_settled = open == 0;
            for server in servers {
                is_settled &= server.seat_states(show)?.iter().all(|state| *state == BOOKED);
            }
            Ok(is_settled)
        })?;
        if !is_settled {
            let seconds = timeout.as_secs();
            found.add(|| format!("{seconds} s after the sale the map is not sold out, or {open} effects are open"));
        }
        Ok(found)
    }

    /// Returns the number of charges without a received webhook; every charge has exactly one.
    pub fn charges_without_webhook(&self) -> Result<u64> {
        self.count(
            "SELECT (SELECT count(*) FROM payments WHERE state = 'succeeded') - (SELECT count(*) FROM webhook_events)",
        )
    }
}

/// Locks a mutex, also after a thread panicked under it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls until `is_met` returns `true`. Returns `false` when the timeout expired first.
pub fn wait_until(timeout: Duration, interval: Duration, mut is_met: impl FnMut() -> Result<bool>) -> Result<bool> {
    let began = Instant::now();
    while !is_met()? {
        if began.elapsed() > timeout {
            return Ok(false);
        }
        std::thread::sleep(interval);
    }
    Ok(true)
}

impl Drop for World {
    fn drop(&mut self) {
        let drop_database = async {
            self.pg.close().await;
            let mut admin = PgConnection::connect(&self.paths.database_url).await?;
            let drop = format!("DROP DATABASE {} WITH (FORCE)", self.database);
            sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&mut admin).await?;
            anyhow::Ok(())
        };
        if let Err(error) = self.runtime.block_on(drop_database) {
            eprintln!("the database {} could not be dropped: {error:#}", self.database);
        }
        if let Err(error) = self.store.delete_all() {
            eprintln!("keys in Redis could not be deleted: {error:#}");
        }
    }
}

/// Replaces the database name of a URL: the part between the last `/` and a `?`.
fn with_database(url: &str, database: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let host_from = address.find("://").map_or(0, |at| at + 3);
    let host_to = address[host_from..].find('/').map_or(address.len(), |at| host_from + at);
    let mut url = format!("{}/{database}", &address[..host_to]);
    if let Some(query) = query {
        // Writing to a string cannot fail.
        let _ = write!(url, "?{query}");
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_name_is_replaced() {
        assert_eq!(
            with_database("postgres://u:p@h:1/old?sslmode=disable", "new"),
            "postgres://u:p@h:1/new?sslmode=disable"
        );
        assert_eq!(with_database("postgres://h", "new"), "postgres://h/new");
    }
}

//! The world of a run: a database and a Redis prefix of its own, servers under test, shows to fight over.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use tokio::runtime::Runtime;

mod catalogue;
mod ledger;
mod processes;
mod store;

pub use catalogue::Show;
pub use processes::{Process, Server, free_port};
pub use store::{HOLD_MS, Script, Store};

use crate::cpu;
use crate::random::Random;

/// Where things are; what every benchmark needs.
#[derive(Clone, Debug, clap::Args)]
pub struct Places {
    /// The server under test.
    #[arg(long, env = "ROWLOCK_SERVER", default_value = "target/release/rowlock", global = true)]
    pub server: PathBuf,
    /// The payment simulator.
    #[arg(long, env = "ROWLOCK_SIMULATOR", default_value = "target/release/payment-simulator", global = true)]
    pub simulator: PathBuf,
    /// The server's Lua scripts: they are under test as well.
    #[arg(long, default_value = "server/src/seat_locks/lua", global = true)]
    pub scripts: PathBuf,
    /// Postgres, where a database is made for the run and dropped after it.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, default_value = "", global = true)]
    pub database_url: String,
    /// Redis, on this machine: its CPU time is read from /proc.
    #[arg(long, env = "REDIS_URL", hide_env_values = true, default_value = "", global = true)]
    pub redis_url: String,
    /// Folder for the logs of what is started.
    #[arg(long, env = "ROWLOCK_BENCH_LOGS", default_value = "target/bench", global = true)]
    pub logs: PathBuf,
}

/// A run's world.
pub struct World {
    /// Where things are.
    pub places: Places,
    /// Postgres, this run's database.
    pub pg: PgPool,
    /// Redis.
    pub store: Store,
    /// Numbers for keys and cookies.
    pub random: Random,
    /// Runs what is asynchronous.
    pub runtime: Runtime,
    postmaster: u32,
    database: String,
    database_url: String,
}

impl World {
    /// Makes the database with its schema; `Drop` removes it.
    pub fn make(places: &Places) -> Result<Self> {
        anyhow::ensure!(
            !places.database_url.is_empty() && !places.redis_url.is_empty(),
            "DATABASE_URL and REDIS_URL are not set; `cargo xtask bench` starts both stores and sets them"
        );
        let mut random = Random::fresh();
        let name = random.hex();
        let database = format!("rowlock_bench_{name}");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let options: PgConnectOptions = places.database_url.parse().context("DATABASE_URL")?;
        let (pg, postmaster) = runtime.block_on(async {
            let mut admin = PgConnection::connect_with(&options).await.context("Postgres does not answer")?;
            let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {database}"));
            sqlx::query(create).execute(&mut admin).await?;
            let backend: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut admin).await?;
            let pg = PgPoolOptions::new().max_connections(2).connect_with(options.clone().database(&database)).await?;
            let postmaster = cpu::parent_of(backend.unsigned_abs()).context("Postgres runs on another machine")?;
            anyhow::Ok((pg, postmaster))
        })?;
        let database_url = with_database(&places.database_url, &database);
        let store = Store::open(&places.redis_url, &format!("b{name}:"), &places.scripts)?;
        let places = places.clone();
        let world = Self { places, pg, store, random, runtime, postmaster, database, database_url };
        processes::migrate(&world)?;
        Ok(world)
    }

    /// A setting of Postgres.
    pub fn postgres_setting(&self, name: &str) -> Result<String> {
        let asked = sqlx::query_scalar("SELECT current_setting($1)").bind(name.to_owned());
        Ok(self.runtime.block_on(asked.fetch_one(&self.pg))?)
    }

    /// CPU time of all of Postgres.
    pub fn postgres_cpu(&self) -> Result<cpu::Cpu> {
        let mut pids = cpu::children_of(self.postmaster);
        pids.push(self.postmaster);
        // One that ended between the two readings counts for nothing; the pools keep theirs.
        pids.retain(|pid| cpu::parent_of(*pid).is_some());
        cpu::Cpu::of(&pids)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let drop_database = async {
            self.pg.close().await;
            let mut admin = PgConnection::connect(&self.places.database_url).await?;
            let drop = format!("DROP DATABASE {} WITH (FORCE)", self.database);
            sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&mut admin).await?;
            anyhow::Ok(())
        };
        if let Err(error) = self.runtime.block_on(drop_database) {
            eprintln!("the database {} stays behind: {error:#}", self.database);
        }
        if let Err(error) = self.store.forget_all() {
            eprintln!("keys in Redis stay behind: {error:#}");
        }
    }
}

/// The address with another database: what stands between the last `/` and a `?` is its name.
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
    fn only_the_name_of_the_database_is_replaced() {
        assert_eq!(
            with_database("postgres://u:p@h:1/old?sslmode=disable", "new"),
            "postgres://u:p@h:1/new?sslmode=disable"
        );
        assert_eq!(with_database("postgres://h", "new"), "postgres://h/new");
    }
}

//! Checks Postgres: reachable, version, schema, durability; and the standby for public lists: reachable, follows our primary,
//! small lag, our schema.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use sqlx::migrate::Migrator;

use super::{CheckFinding, DEADLINE, Report, Severity, clock_of, now_ms, within};
use crate::config::Config;
use crate::migrations::MIGRATOR;
use catalogue::{LAG_LIMIT, PrimaryPosition, primary_position, standby_position};
use platform::database;

const OLDEST: i32 = 140_000;
/// An effect this old is late, seconds.
const LATE_S: f64 = 300.0;
/// Interval in which a standby's position is compared with the primary's.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// SQLSTATE codes of a prepared statement that exists already or does not exist.
const STATEMENT_CONFLICTS: [&str; 2] = ["42P05", "26000"];
/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";

#[derive(platform::FromRow)]
struct ServerFacts {
    number: i32,
    name: String,
    synchronous_commit: String,
    fsync: String,
    read_only: bool,
    max_connections: i32,
    now_ms: i64,
}

const SERVER_FACTS: &str = "
    SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS name,
           current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
           pg_is_in_recovery() AS read_only, current_setting('max_connections')::int AS max_connections,
           (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now_ms";

const OUTBOX: &str = "
    SELECT count(*) FILTER (WHERE parked_why IS NOT NULL),
           coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE parked_why IS NULL)), 0)::float8
    FROM outbox";

pub(super) async fn check(config: &Config) -> (Option<PgPool>, Vec<CheckFinding>) {
    let pg = match database::connect(&config.database_url, 2).await {
        Ok(pg) => pg,
        Err(cause) => return (None, vec![CheckFinding::bad(format!("{cause:#}"))]),
    };
    let before = now_ms();
    let server = sqlx::query_as::<_, ServerFacts>(SERVER_FACTS).fetch_one(&pg).await;
    let after = now_ms();
    let mut found = match server {
        Ok(server) => check_server(&server, config, before, after),
        Err(cause) => return (None, vec![CheckFinding::bad(format!("answers nothing useful: {cause}"))]),
    };
    found.extend(prepared(&pg).await);
    let schema = schema(&pg, &MIGRATOR).await;
    let is_there = schema.state != Severity::Bad;
    found.push(schema);
    if is_there {
        found.extend(outbox(&pg).await);
    }
    (Some(pg), found)
}

fn check_server(server: &ServerFacts, config: &Config, before: i64, after: i64) -> Vec<CheckFinding> {
    let mut found = vec![if server.number < OLDEST {
        CheckFinding::bad(format!("PostgreSQL {} is too old: 14 or newer", server.name))
    } else {
        CheckFinding::good(format!("PostgreSQL {} answers", server.name))
    }];
    if server.read_only {
        found.push(CheckFinding::bad("is a replica that takes no writes: DATABASE_URL must lead to the primary"));
    }
    if server.synchronous_commit == "off" {
        found.push(CheckFinding::bad("synchronous_commit is off: a sale that was answered can be lost"));
    }
    if server.fsync == "off" {
        found.push(CheckFinding::warning("fsync is off: a power cut can take sales with it; for tests only"));
    }
    // Each replica opens as many connections, and there may be two.
    if i64::from(config.database_connections) * 2 > i64::from(server.max_connections) {
        found.push(CheckFinding::warning(format!(
            "max_connections is {}, and each replica wants {} (DATABASE_CONNECTIONS): two do not fit without PgBouncer",
            server.max_connections, config.database_connections
        )));
    }
    found.push(clock_of("its", server.now_ms, before, after));
    found
}

/// Checks that a pooler separates prepared statements: two of our connections use the same names.
async fn prepared(pg: &PgPool) -> Option<CheckFinding> {
    let attempt = async {
        let (mut one, mut two) = (pg.acquire().await?, pg.acquire().await?);
        for connection in [&mut *one, &mut *two] {
            sqlx::query_scalar::<_, i32>("SELECT $1 + 1").bind(1_i32).fetch_one(connection).await?;
        }
        Ok::<_, sqlx::Error>(())
    };
    match attempt.await {
        Ok(()) => None,
        Err(sqlx::Error::Database(cause)) if cause.code().is_some_and(|code| STATEMENT_CONFLICTS.contains(&&*code)) => {
            Some(CheckFinding::bad(
                "mixes prepared statements up: PgBouncer in transaction mode must be 1.21 or newer, with \
                 max_prepared_statements",
            ))
        }
        Err(cause) => Some(CheckFinding::bad(format!("does not give two connections at once: {cause}"))),
    }
}

/// Checks that exactly the migrations of this program are applied.
async fn schema(pg: &PgPool, known: &Migrator) -> CheckFinding {
    let applied: Result<Vec<(i64, Vec<u8>, bool)>, _> =
        sqlx::query_as("SELECT version, checksum, success FROM _sqlx_migrations").fetch_all(pg).await;
    let applied = match applied {
        Ok(applied) => applied,
        Err(sqlx::Error::Database(cause)) if cause.code().as_deref() == Some(UNDEFINED_TABLE) => {
            return CheckFinding::bad("has no schema of ours: rowlock migrate");
        }
        Err(cause) => return CheckFinding::bad(format!("its schema cannot be read: {cause}")),
    };
    let (mut missing, mut changed) = (Vec::new(), Vec::new());
    for migration in known.iter() {
        match applied.iter().find(|(version, ..)| *version == migration.version) {
            Some((_, checksum, true)) if *checksum == *migration.checksum => {}
            Some((version, ..)) => changed.push(version.to_string()),
            None => missing.push(migration.version.to_string()),
        }
    }
    let newer = applied.iter().filter(|(version, ..)| !known.iter().any(|known| known.version == *version)).count();
    if !changed.is_empty() {
        return CheckFinding::bad(format!(
            "migrations {} are not those of this program, or failed",
            changed.join(", ")
        ));
    }
    if !missing.is_empty() {
        return CheckFinding::bad(format!("migrations {} are missing: rowlock migrate", missing.join(", ")));
    }
    if newer > 0 {
        return CheckFinding::warning(format!(
            "has {newer} migrations this program does not know: is an upgrade under way?"
        ));
    }
    CheckFinding::good(format!("the schema is up to date: {} migrations", applied.len()))
}

async fn outbox(pg: &PgPool) -> Vec<CheckFinding> {
    let (parked, oldest_s): (i64, f64) = match sqlx::query_as(OUTBOX).fetch_one(pg).await {
        Ok(stand) => stand,
        Err(cause) => return vec![CheckFinding::bad(format!("its queues cannot be read: {cause}"))],
    };
    let mut found = Vec::new();
    if parked > 0 {
        found.push(CheckFinding::warning(format!("{parked} effects wait for a person: rowlock parked")));
    }
    if oldest_s > LATE_S {
        found.push(CheckFinding::warning(format!(
            "an effect of a booking is {oldest_s:.0} s late: does any server run?"
        )));
    }
    found
}

/// Checks the standby. Every failure is a warning: the primary is read instead, and every seat can be sold.
pub(super) async fn standby(config: &Config, primary: Option<&PgPool>, report: &mut Report) {
    let Some(url) = &config.catalogue_database_url else { return };
    let began = Instant::now();
    let found = match database::connect_later(url, 1, DEADLINE / 3) {
        Ok(standby) => within(check_standby(&standby, primary)).await.unwrap_or_else(|late| vec![late]),
        Err(cause) => vec![CheckFinding::bad(format!("CATALOGUE_DATABASE_URL: {cause}"))],
    };
    let found = found.into_iter().map(|found| CheckFinding { state: found.state.min(Severity::Warning), ..found });
    report.add("postgres standby", began.elapsed(), found);
}

async fn check_standby(standby: &PgPool, primary: Option<&PgPool>) -> Vec<CheckFinding> {
    let there = match standby_position(standby).await {
        Ok(there) => there,
        Err(cause) => return vec![CheckFinding::bad(format!("does not answer at CATALOGUE_DATABASE_URL: {cause}"))],
    };
    if !there.follows {
        return vec![CheckFinding::bad("is no standby, it takes its own writes: nothing is read from it")];
    }
    let outcome = match primary {
        Some(primary) => primary_position(primary).await,
        None => Err(sqlx::Error::PoolClosed),
    };
    let near = match outcome {
        Ok(here) if here.identity != there.identity => {
            return vec![CheckFinding::bad("is of another database than DATABASE_URL: nothing is read from it")];
        }
        Ok(here) => wait_for_position(standby, &here).await,
        Err(_) => CheckFinding::skipped("how far it is behind is not known: the primary does not say where it is"),
    };
    vec![near, schema(standby, &MIGRATOR).await]
}

/// Waits until the standby has reached this position of the primary, and reports how long that took.
async fn wait_for_position(standby: &PgPool, primary: &PrimaryPosition) -> CheckFinding {
    let began = Instant::now();
    loop {
        let behind = match standby_position(standby).await {
            Ok(there) => primary.position - there.position.unwrap_or_default(),
            Err(cause) => return CheckFinding::bad(format!("answers no more: {cause}")),
        };
        let took = began.elapsed();
        if behind <= 0 {
            return CheckFinding::good(format!("follows the primary, {} ms behind at most", took.as_millis()));
        }
        if took >= LAG_LIMIT {
            return CheckFinding::bad(format!(
                "is {behind} bytes behind for more than {} s: nothing is read from it until it is nearer",
                LAG_LIMIT.as_secs()
            ));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

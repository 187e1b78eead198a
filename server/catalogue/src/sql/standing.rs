//! How far the primary has written, and how far a server that follows it has come.
//!
//! Positions in the write-ahead log are compared, not clocks: nothing is to come where nothing was written, and a
//! standby that no longer hears of its primary cannot tell by itself.

use sqlx::{FromRow, PgPool};

/// Which database of which cluster. A copy made of the files, as a standby is, has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Identity {
    cluster: i64,
    database: i64,
}

#[cfg(test)]
impl Identity {
    pub(crate) const fn of(cluster: i64, database: i64) -> Self {
        Self { cluster, database }
    }
}

/// How far the primary has written.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct Written {
    /// Which database it is.
    #[sqlx(flatten)]
    pub identity: Identity,
    /// Whatever could be seen when it was asked is at this byte of the log or before.
    pub position: i64,
}

/// How far another server has come.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct Replayed {
    /// Which database it is.
    #[sqlx(flatten)]
    pub identity: Identity,
    /// Whether it follows somebody. One that was promoted, or never followed, takes writes of its own.
    pub follows: bool,
    /// Whatever is before this byte of the log can be seen here.
    pub position: Option<i64>,
}

/// Asks the primary.
///
/// # Errors
/// When it cannot be asked, or takes no writes.
pub async fn written(primary: &PgPool) -> Result<Written, sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster,
                (SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database,
                pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8 AS position",
    )
    .fetch_one(primary)
    .await
}

/// Asks a server that should follow it.
///
/// # Errors
/// When it cannot be asked.
pub async fn replayed(standby: &PgPool) -> Result<Replayed, sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster,
                (SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database,
                pg_is_in_recovery() AS follows,
                pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::int8 AS position",
    )
    .fetch_one(standby)
    .await
}

//! Replication positions: of the primary's log, and of a standby's replay.
//!
//! Positions in the write-ahead log are compared, not clocks: a standby of an idle primary has no lag, and a standby that lost
//! its primary does not know its own lag.

use sqlx::{FromRow, PgPool};

/// Which database of which cluster. A copy made of the files, as a standby is, has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct DatabaseIdentity {
    cluster: i64,
    database: i64,
}

#[cfg(test)]
impl DatabaseIdentity {
    pub(crate) const fn of(cluster: i64, database: i64) -> Self {
        Self { cluster, database }
    }
}

/// The position of the primary.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct PrimaryPosition {
    /// Which database it is.
    #[sqlx(flatten)]
    pub identity: DatabaseIdentity,
    /// All data that was visible at the time of the query is at this byte of the log or before.
    pub position: i64,
}

/// The position of another server.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct StandbyPosition {
    /// Which database it is.
    #[sqlx(flatten)]
    pub identity: DatabaseIdentity,
    /// True if it is a standby. A promoted or independent server takes its own writes.
    pub follows: bool,
    /// All data before this byte of the log is visible here.
    pub position: Option<i64>,
}

/// Reads the primary's position.
///
/// # Errors
/// When the query fails, or the server takes no writes.
pub async fn primary_position(primary: &PgPool) -> Result<PrimaryPosition, sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster,
                (SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database,
                pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8 AS position",
    )
    .fetch_one(primary)
    .await
}

/// Reads the position of a server that should follow it.
pub async fn standby_position(standby: &PgPool) -> Result<StandbyPosition, sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster,
                (SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database,
                pg_is_in_recovery() AS follows,
                pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::int8 AS position",
    )
    .fetch_one(standby)
    .await
}

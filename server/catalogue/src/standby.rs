//! The standby of Postgres for public lists: read while its lag is small, skipped while it does not answer
//! (docs/decisions/0046).
//!
//! A background task measures the lag once a second; no request waits for it.

mod marks;

use std::fmt;
use std::mem::discriminant;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::time::timeout;

use self::marks::{Marks, StandbyState};
use crate::CatalogueState;
use platform::background::PeriodicLoop;
use platform::breaker::{Breaker, BreakerLimits, Pass};
use platform::ids;
use platform::telemetry::CatalogueRead;

pub use self::marks::{
    DatabaseIdentity, LAG_LIMIT, PrimaryPosition, StandbyPosition, primary_position, standby_position,
};

/// Maximum number of connections to the standby; at five milliseconds per read they serve 1,600 reads a second.
pub const CONNECTIONS: u32 = 8;
/// Deadline of a read, waiting for a connection included; after it the primary is read.
pub const ANSWER_DEADLINE: Duration = Duration::from_millis(500);
/// Deadline of the query for the primary's position.
const MARK_DEADLINE: Duration = Duration::from_secs(1);
/// Interval of the comparison: with both deadlines it runs more than once within [`LAG_LIMIT`].
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// SQLSTATE of a query that conflicted with replay: a healthy standby returns it too.
const RECOVERY_CONFLICT: &str = "40001";

/// Limits of the breaker. At most this many requests wait for the deadline before it opens.
static BREAKER: BreakerLimits = BreakerLimits {
    failures_to_open: 3,
    window: Duration::from_secs(10),
    first_open_ms: 1_000,
    max_open_ms: 15_000,
    probe_timeout: Duration::from_secs(5),
};

/// A standby, its breaker and its replication state.
pub struct Standby {
    pool: PgPool,
    /// A separate connection to the primary for marks: in a rush the pool is busy, and without marks all reads would go to
    /// the primary too.
    primary: PgPool,
    breaker: Mutex<Breaker>,
    /// The result of the last comparison; `None` before the first.
    state: Mutex<Option<StandbyState>>,
}

impl Standby {
    /// A standby with connections `pool`, and `primary` to its primary. Neither needs to answer yet.
    #[must_use]
    pub fn new(pool: PgPool, primary: PgPool) -> Self {
        let (breaker, state) = (Mutex::new(Breaker::new(&BREAKER)), Mutex::new(None));
        Self { pool, primary, breaker, state }
    }

    /// Reads from the standby; the error is the reason why the primary must be read instead.
    pub(super) async fn read<T, F>(&self, ask: impl Fn(PgPool) -> F) -> Result<T, CatalogueRead>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        self.check_readable(Instant::now())?;
        match timeout(ANSWER_DEADLINE, ask(self.pool.clone())).await {
            Ok(Ok(found)) => {
                self.breaker().succeeded();
                Ok(found)
            }
            Ok(Err(cause)) => {
                if is_breaker_failure(&cause) {
                    self.failed(Pass::Ordinary, &cause);
                }
                Err(CatalogueRead::Failed)
            }
            Err(late) => {
                self.failed(Pass::Ordinary, &late);
                Err(CatalogueRead::Failed)
            }
        }
    }

    /// Refuses reads while the breaker is open, or unless the lag is known to be small.
    fn check_readable(&self, now: Instant) -> Result<(), CatalogueRead> {
        // The comparison is the probe; a visitor's read never is.
        if self.breaker().is_open() {
            return Err(CatalogueRead::CircuitOpen);
        }
        match *self.state() {
            Some(StandbyState::Near { until }) if now < until => Ok(()),
            None | Some(StandbyState::Near { .. } | StandbyState::Behind) => Err(CatalogueRead::Behind),
            Some(StandbyState::NotAStandby | StandbyState::Another) => Err(CatalogueRead::Unfit),
        }
    }

    /// Sets a mark, and compares the position of the standby with the marks.
    async fn compare(&self, marks: &mut Marks) {
        let asked = Instant::now();
        match timeout(MARK_DEADLINE, primary_position(&self.primary)).await {
            Ok(Ok(written)) => marks.set(asked, &written),
            // Without new marks the standby soon counts as behind, which is logged.
            Ok(Err(cause)) => tracing::debug!(%cause, "read the primary's log position failed"),
            Err(late) => tracing::debug!(%late, "read the primary's log position timed out"),
        }
        let admitted = self.breaker().admit(Instant::now());
        let Ok(pass) = admitted else { return };
        match timeout(ANSWER_DEADLINE, standby_position(&self.pool)).await {
            Ok(Ok(replayed)) => {
                self.breaker().succeeded();
                self.set_state(marks.state(&replayed, Instant::now()));
            }
            Ok(Err(cause)) => self.failed(pass, &cause),
            Err(late) => self.failed(pass, &late),
        }
    }

    /// Stores the state, and logs a change.
    fn set_state(&self, now: StandbyState) {
        let before = self.state().replace(now);
        if before.is_some_and(|before| discriminant(&before) == discriminant(&now)) {
            return;
        }
        match now {
            StandbyState::Near { .. } => tracing::info!("public lists are read from CATALOGUE_DATABASE_URL"),
            StandbyState::Behind => {
                tracing::warn!(limit_s = LAG_LIMIT.as_secs(), "CATALOGUE_DATABASE_URL lags too far behind: not read");
            }
            StandbyState::NotAStandby => tracing::error!("CATALOGUE_DATABASE_URL is not a standby: not read"),
            StandbyState::Another => {
                tracing::error!("CATALOGUE_DATABASE_URL follows another primary: not read")
            }
        }
    }

    fn failed(&self, pass: Pass, cause: &dyn fmt::Display) {
        if self.breaker().failed(Instant::now(), pass, ids::jitter) {
            tracing::warn!(%cause, "read CATALOGUE_DATABASE_URL failed repeatedly; breaker opened");
        }
    }

    // Both are held for a few assignments only, never across an await.
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, Option<StandbyState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if the error counts as a failure for the breaker. An invalid row does not: the primary has it too.
fn is_breaker_failure(cause: &sqlx::Error) -> bool {
    match cause {
        sqlx::Error::Database(error) => error.code().as_deref() != Some(RECOVERY_CONFLICT),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => false,
        _ => true,
    }
}

/// Compares the standby, if one is configured, with its primary until the server stops.
pub async fn compare_forever(state: CatalogueState) {
    let Some(standby) = state.catalogue.listings().standby() else { return };
    let mut marks = Marks::default();
    let mut rounds = PeriodicLoop::every(&state.stop, COMPARE_EVERY);
    while rounds.wait_next().await {
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = standby.compare(&mut marks) => {}
        }
    }
}

#[cfg(test)]
mod tests;

//! Marks: the primary's log position at known instants, and from these an upper bound of a standby's age.
//!
//! A standby that has replayed up to a mark shows at least what the primary showed when the mark was set. So our own clock
//! alone gives its age, and an idle primary makes no standby old: every mark is reached.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sqlx::PgPool;

/// Maximum age of data that is read from a standby.
pub const LAG_LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandbyState {
    /// The lag may be too large, or the primary's position is unknown.
    Behind,
    /// The lag is small enough until this instant.
    Near { until: Instant },
    /// The server is not a standby.
    NotAStandby,
    /// The server follows another primary.
    Another,
}

/// The marks of a primary within [`LAG_LIMIT`], the oldest first.
#[derive(Debug, Default)]
pub(super) struct Marks {
    of: Option<DatabaseIdentity>,
    set: VecDeque<(Instant, i64)>,
}

impl Marks {
    /// Sets a mark. `asked` is before the primary's answer: all data visible then is at the mark or before.
    pub(super) fn set(&mut self, asked: Instant, written: &PrimaryPosition) {
        if self.of.replace(written.identity) != Some(written.identity) {
            self.set.clear();
        }
        while self.set.front().is_some_and(|(at, _)| asked.saturating_duration_since(*at) > LAG_LIMIT) {
            self.set.pop_front();
        }
        self.set.push_back((asked, written.position));
    }

    /// The state of a standby that has replayed so far.
    pub(super) fn state(&self, replayed: &StandbyPosition, now: Instant) -> StandbyState {
        if !replayed.follows {
            return StandbyState::NotAStandby;
        }
        if self.of.is_some_and(|identity| identity != replayed.identity) {
            return StandbyState::Another;
        }
        let reached = replayed.position.and_then(|position| self.set.iter().rev().find(|(_, at)| *at <= position));
        match reached.map(|(asked, _)| *asked + LAG_LIMIT) {
            Some(until) if now < until => StandbyState::Near { until },
            _ => StandbyState::Behind,
        }
    }
}

/// Identifies a database of a Postgres cluster. A standby has the identity of its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, platform::FromRow)]
pub struct DatabaseIdentity {
    cluster: i64,
    database: i64,
}

/// The position of the primary.
#[derive(Clone, Copy, Debug, platform::FromRow)]
pub struct PrimaryPosition {
    /// Which database it is.
    #[flatten]
    pub identity: DatabaseIdentity,
    /// All data that was visible at the time of the query is at this byte of the log or before.
    pub position: i64,
}

/// The position of another server.
#[derive(Clone, Copy, Debug, platform::FromRow)]
pub struct StandbyPosition {
    /// Which database it is.
    #[flatten]
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
pub async fn primary_position(primary: &PgPool) -> sqlx::Result<PrimaryPosition> {
    let sql = "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster,
                      (SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database,
                      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8 AS position";
    sqlx::query_as(sql).fetch_one(primary).await
}

/// Reads the position of a server that should follow it.
///
/// # Errors
/// When the query fails.
pub async fn standby_position(standby: &PgPool) -> sqlx::Result<StandbyPosition> {
    let sql = "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster,
                      (SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database,
                      pg_is_in_recovery() AS follows,
                      pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::int8 AS position";
    sqlx::query_as(sql).fetch_one(standby).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const OURS: DatabaseIdentity = DatabaseIdentity { cluster: 7, database: 1 };

    fn primary_position(position: i64) -> PrimaryPosition {
        PrimaryPosition { identity: OURS, position }
    }

    fn standby_position(position: i64) -> StandbyPosition {
        StandbyPosition { identity: OURS, follows: true, position: Some(position) }
    }

    #[test]
    fn the_age_is_that_of_the_last_reached_mark() {
        let start = Instant::now();
        let mut marks = Marks::default();
        assert_eq!(
            marks.state(&standby_position(1_000), start),
            StandbyState::Behind,
            "nothing is known of the primary"
        );
        for second in 0..4 {
            marks.set(start + second * SECOND, &primary_position(100 * i64::from(second + 1)));
        }
        let now = start + 3 * SECOND;
        assert_eq!(marks.state(&standby_position(400), now), StandbyState::Near { until: now + LAG_LIMIT });
        assert_eq!(
            marks.state(&standby_position(399), now),
            StandbyState::Near { until: start + 2 * SECOND + LAG_LIMIT }
        );
        assert_eq!(marks.state(&standby_position(99), now), StandbyState::Behind, "it has come to none");
        assert_eq!(marks.state(&StandbyPosition { position: None, ..standby_position(0) }, now), StandbyState::Behind);
    }

    #[test]
    fn a_standby_is_too_old_when_the_limit_has_passed_since_its_mark() {
        let start = Instant::now();
        let mut marks = Marks::default();
        marks.set(start, &primary_position(100));
        let over = start + LAG_LIMIT;
        let last = over.checked_sub(Duration::from_millis(1)).expect("an instant");
        assert_eq!(marks.state(&standby_position(100), last), StandbyState::Near { until: over });
        assert_eq!(marks.state(&standby_position(100), over), StandbyState::Behind);
        marks.set(over, &primary_position(200));
        assert_eq!(marks.state(&standby_position(199), over), StandbyState::Behind, "others have written since");
    }

    #[test]
    fn an_idle_primary_makes_no_standby_old() {
        let start = Instant::now();
        let mut marks = Marks::default();
        for second in 0..600 {
            let now = start + second * SECOND;
            marks.set(now, &primary_position(100));
            assert_eq!(marks.state(&standby_position(100), now), StandbyState::Near { until: now + LAG_LIMIT });
        }
        assert!(marks.set.len() <= 6, "marks older than the limit are of no use: {}", marks.set.len());
    }

    #[test]
    fn a_server_that_follows_no_or_another_primary_is_refused() {
        let now = Instant::now();
        let mut marks = Marks::default();
        marks.set(now, &primary_position(100));
        let promoted = StandbyPosition { follows: false, ..standby_position(100) };
        assert_eq!(marks.state(&promoted, now), StandbyState::NotAStandby);
        for other in [DatabaseIdentity { cluster: 8, database: 1 }, DatabaseIdentity { cluster: 7, database: 2 }] {
            assert_eq!(
                marks.state(&StandbyPosition { identity: other, ..standby_position(100) }, now),
                StandbyState::Another
            );
        }
        marks.set(now, &PrimaryPosition { identity: DatabaseIdentity { cluster: 8, database: 1 }, position: 90 });
        assert_eq!(marks.state(&standby_position(100), now), StandbyState::Another, "we have another primary now");
    }
}

//! Counts granted holds. They live in Redis and leave no rows, and a report shows their number.
//!
//! A granted hold costs an addition in memory. Every few seconds the counts are added to `hold_counts`.
//! A crash loses the counts since then, and a write whose answer was lost is added again:
//! this measures interest, not money.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::time::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use crate::SellingState;
use platform::background::PeriodicLoop;
use platform::clock::to_utc;

/// Interval of writes.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// Maximum shows counted at a time; further shows are left out until the next write.
const MAX_SHOWS: usize = 10_000;
/// Shows written in one statement.
const MAX_PER_WRITE: usize = 500;

/// Holds granted by show since the last write.
#[derive(Default)]
pub struct HoldCounter(Mutex<HashMap<Uuid, i64>>);

impl HoldCounter {
    /// Counts a hold granted in this show.
    pub fn granted(&self, show: Uuid) {
        self.add([(show, 1)]);
    }

    fn add(&self, counts: impl IntoIterator<Item = (Uuid, i64)>) {
        // The counts are consistent even after a panic elsewhere.
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (show, granted) in counts {
            if counted.len() < MAX_SHOWS || counted.contains_key(&show) {
                *counted.entry(show).or_default() += granted;
            }
        }
    }

    fn take(&self) -> Vec<(Uuid, i64)> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<_> = counted.drain().collect();
        // All replicas write in the same order, so that they do not deadlock.
        taken.sort_unstable();
        taken
    }
}

/// Writes the counts until the server stops, and a last time then.
pub async fn flush_forever(state: SellingState) {
    let mut rounds = PeriodicLoop::every(&state.stop, WRITE_EVERY);
    while rounds.wait_next().await {
        flush(&state).await;
    }
    flush(&state).await;
}

async fn flush(state: &SellingState) {
    let counted = state.hold_tally.take();
    for some in counted.chunks(MAX_PER_WRITE) {
        if let Err(cause) = write(&state.pg, some, state.clock.now()).await {
            tracing::warn!(%cause, shows = some.len(), "write hold counts failed; they are written later");
            state.hold_tally.add(some.iter().copied());
        }
    }
}

async fn write(pg: &PgPool, counts: &[(Uuid, i64)], now: Timestamp) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO hold_counts (show_id, day, granted)
         SELECT show.id, ($3 AT TIME ZONE city.time_zone)::date, counted.granted
         FROM unnest($1::uuid[], $2::bigint[]) AS counted (show_id, granted)
         JOIN shows show ON show.id = counted.show_id
         JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id
         JOIN cities city ON city.id = theatre.city_id
         ORDER BY show.id
         ON CONFLICT (show_id, day) DO UPDATE SET granted = hold_counts.granted + EXCLUDED.granted",
    )
    .bind(counts.iter().map(|(show, _)| *show).collect::<Vec<_>>())
    .bind(counts.iter().map(|(_, granted)| *granted).collect::<Vec<_>>())
    .bind(to_utc(now))
    .execute(pg)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_failed_write_are_added_to_newer_counts() {
        let (tally, one, other) = (HoldCounter::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        tally.granted(one);
        tally.granted(one);
        let taken = tally.take();
        assert_eq!(taken, [(one, 2)]);
        assert_eq!(tally.take(), []);
        tally.granted(other);
        tally.add(taken);
        tally.granted(one);
        assert_eq!(tally.take(), [(one, 3), (other, 1)]);
    }

    #[test]
    fn shows_above_the_limit_are_not_counted() {
        let tally = HoldCounter::default();
        for show in 0..MAX_SHOWS as u128 + 10 {
            tally.granted(Uuid::from_u128(show));
        }
        tally.granted(Uuid::from_u128(0));
        let taken = tally.take();
        assert_eq!((taken.len(), taken[0]), (MAX_SHOWS, (Uuid::from_u128(0), 2)));
    }
}

//! Counting holds. They live in Redis and leave nothing behind, and a report wants to say how many there were.
//!
//! A hold that is granted costs an addition in memory. Every few seconds what was counted is added to `hold_counts`.
//! A server that crashes takes what it counted since then with it, and a write whose answer was lost is added again:
//! this is a measure of interest, not of money.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::time::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use crate::SellingState;
use platform::background::Rounds;
use platform::clock::to_utc;

/// How often it is written down.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// Shows counted at a time; a replica that serves more leaves out the others until it has written.
const MAX_SHOWS: usize = 10_000;
/// Shows written in one statement.
const MAX_PER_WRITE: usize = 500;

/// Holds granted by show, since they were last written down.
#[derive(Default)]
pub struct Tally(Mutex<HashMap<Uuid, i64>>);

impl Tally {
    /// A hold was granted in this show.
    pub fn granted(&self, show: Uuid) {
        self.add([(show, 1)]);
    }

    fn add(&self, counts: impl IntoIterator<Item = (Uuid, i64)>) {
        // Numbers are whole after a panic elsewhere.
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
        // Replicas write in one order, and none waits for another that waits for it.
        taken.sort_unstable();
        taken
    }
}

/// Writes down what is counted until the server stops, and once more then.
pub async fn flush_forever(state: SellingState) {
    let mut rounds = Rounds::every(&state.stop, WRITE_EVERY);
    while rounds.go_on().await {
        flush(&state).await;
    }
    flush(&state).await;
}

async fn flush(state: &SellingState) {
    let counted = state.hold_tally.take();
    for some in counted.chunks(MAX_PER_WRITE) {
        if let Err(cause) = write(&state.pg, some, state.clock.now()).await {
            tracing::warn!(%cause, shows = some.len(), "holds that were counted could not be written down yet");
            state.hold_tally.add(some.iter().copied());
        }
    }
}

async fn write(pg: &PgPool, counts: &[(Uuid, i64)], now: Timestamp) -> Result<(), sqlx::Error> {
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
    fn what_could_not_be_written_is_counted_with_what_came_since() {
        let (tally, one, other) = (Tally::default(), Uuid::from_u128(1), Uuid::from_u128(2));
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
    fn it_never_grows_beyond_its_limit() {
        let tally = Tally::default();
        for show in 0..MAX_SHOWS as u128 + 10 {
            tally.granted(Uuid::from_u128(show));
        }
        tally.granted(Uuid::from_u128(0));
        let taken = tally.take();
        assert_eq!((taken.len(), taken[0]), (MAX_SHOWS, (Uuid::from_u128(0), 2)));
    }
}

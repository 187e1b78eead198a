//! Frees due holds every 100 ms, on every replica and without a leader, because sweeping twice is harmless.
//!
//! A replica sweeps the shows in which it granted holds and those it shows live. Any other show is swept by
//! the next call for it, since every script frees due holds first.
//!
//! Shows that are over are deleted here as well: their keys have no time to live, unless they were loaded more than a
//! day after the start.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use uuid::Uuid;

use super::StoreError;
use crate::{SeatsState, live};
use platform::background::PeriodicLoop;

/// Period of the sweeper.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// Shows one replica sweeps at most; the others are swept by the next call for them.
const MAX_WATCHED_SHOWS: usize = 10_000;

/// Shows of this replica that may have holds.
#[derive(Default)]
pub struct SweptShows(Mutex<HashSet<Uuid>>);

impl SweptShows {
    /// Adds a show that may have holds.
    pub fn add(&self, show: Uuid) {
        let mut shows = self.lock();
        if shows.len() < MAX_WATCHED_SHOWS {
            shows.insert(show);
        }
    }

    fn all(&self) -> Vec<Uuid> {
        self.lock().iter().copied().collect()
    }

    fn forget(&self, show: Uuid) {
        self.lock().remove(&show);
    }

    // Held for a set operation only, never across an await.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<Uuid>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Runs until the server stops.
pub async fn sweep_forever(state: SeatsState) {
    let mut rounds = PeriodicLoop::every(&state.stop, SWEEP_EVERY);
    while rounds.wait_next().await {
        for show in state.watched.all() {
            // Removed first: a hold taken during the call adds the show again.
            state.watched.forget(show);
            match state.locks.sweep(show).await {
                Ok(0) => {}
                Ok(_) => state.watched.add(show),
                Err(StoreError::NoMap(_)) => live::refresh(&state, show).await,
                Err(cause) => {
                    state.watched.add(show);
                    // The other shows may be on another shard, and an open circuit breaker returns at once.
                    tracing::debug!(%cause, %show, "sweep failed");
                }
            }
        }
    }
}

/// Period between two searches for shows that are over.
const SEARCH_EVERY: Duration = Duration::from_secs(3_600);
/// Shows deleted per search, the latest first.
const MAX_PER_SEARCH: i64 = 1_000;

/// Shows that ended a day ago, so that late payments still find them, and at most a month ago, so that some replica ran
/// since. The map of an older show, which a visitor opens, expires (`rebuild`).
const PAST_SHOWS: &str = "
    SELECT id FROM shows
    WHERE starts_at BETWEEN now() - interval '30 days' AND now() - interval '1 day'
    ORDER BY starts_at DESC LIMIT $1";

/// Runs until the server stops.
pub async fn forget_forever(state: SeatsState) {
    let mut rounds = PeriodicLoop::every(&state.stop, SEARCH_EVERY);
    while rounds.wait_next().await {
        let over = sqlx::query_scalar::<_, Uuid>(PAST_SHOWS).bind(MAX_PER_SEARCH).fetch_all(&state.pg).await;
        match over {
            Ok(shows) => {
                for show in shows {
                    // At every search again: a visitor who opens such a show loads its map again.
                    if let Err(cause) = state.locks.forget(show).await {
                        tracing::warn!(%cause, "delete a past show from the lock store failed, retrying next round");
                        break;
                    }
                }
            }
            Err(cause) => tracing::warn!(%cause, "read past shows failed"),
        }
    }
}

//! Frees due holds every 100 ms, on every replica and without a leader, because sweeping twice is harmless.
//!
//! A replica sweeps the shows in which it granted holds and those it shows live. Any other show is swept by
//! the next call for it, since every script frees due holds first.

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

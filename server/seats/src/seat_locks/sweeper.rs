//! Frees due holds every 100 ms, on every replica, without a leader: sweeping twice harms nobody.
//!
//! A replica sweeps the shows it granted holds in and those it shows to people; any other is swept by
//! the next call that touches it, since every script frees what is due first.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use uuid::Uuid;

use super::StoreError;
use crate::{SeatsState, live};
use platform::background::Rounds;

/// How often due holds are freed.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// Shows one replica watches at most; the rest wait for the next call that touches them.
const MAX_WATCHED_SHOWS: usize = 10_000;

/// Shows of this replica with holds that will be due one day.
#[derive(Default)]
pub struct Watched(Mutex<HashSet<Uuid>>);

impl Watched {
    /// Remembers a show with a hold.
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
    let mut rounds = Rounds::every(&state.stop, SWEEP_EVERY);
    while rounds.go_on().await {
        for show in state.watched.all() {
            // Forgotten first: a hold taken while we ask is remembered again when it is taken.
            state.watched.forget(show);
            match state.locks.sweep(show).await {
                Ok(0) => {}
                Ok(_) => state.watched.add(show),
                Err(StoreError::NoMap(_)) => live::refresh(&state, show).await,
                Err(cause) => {
                    state.watched.add(show);
                    // On with the rest: they may be of another shard, and the breaker makes it quick.
                    tracing::debug!(%cause, %show, "could not sweep");
                }
            }
        }
    }
}

//! The shows with a waiting list, as cached by this replica.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use uuid::Uuid;

/// Shows with a waiting list. In memory, because every hold checks it; changes of other replicas
/// arrive within a second.
#[derive(Default)]
pub struct ShowsWithWaitingList(RwLock<HashSet<Uuid>>);

impl ShowsWithWaitingList {
    /// Checks for people who wait for seats of this show.
    #[must_use]
    pub fn has(&self, show: Uuid) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&show)
    }

    pub(super) fn add(&self, show: Uuid) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(show);
    }

    pub(super) fn replace(&self, shows: HashSet<Uuid>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = shows;
    }
}

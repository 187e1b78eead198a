//! Shows with people in line, as this replica knows them.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use uuid::Uuid;

/// Shows in which somebody waits. Asked before every hold, so it is kept in memory; another replica's news
/// is here within a second.
#[derive(Default)]
pub struct Open(RwLock<HashSet<Uuid>>);

impl Open {
    /// Whether somebody waits for seats of this show.
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

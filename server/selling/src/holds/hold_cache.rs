//! The cache of holds as this replica granted or changed them. A checkout shortly afterwards need not read the hold
//! from the lock store first: it sends the cached hold, and the store compares.

use std::sync::Arc;

use uuid::Uuid;

use platform::recent::Recent;
use seats::seat_locks::StoredHold;

/// Maximum cached holds: some seconds of peak load, about 200 bytes each.
const MAX_KEPT: usize = 16_384;

/// The latest holds.
pub struct HoldCache(Recent<(String, StoredHold)>);

impl Default for HoldCache {
    fn default() -> Self {
        Self(Recent::new(MAX_KEPT))
    }
}

impl HoldCache {
    /// Caches an owner's current hold.
    pub(super) fn keep(&self, owner: &str, held: &StoredHold) {
        self.0.keep(held.hold, Arc::new((owner.to_owned(), held.clone())));
    }

    /// Returns the cached hold if it is this owner's. It may be stale or have ended.
    #[must_use]
    pub fn of(&self, hold: Uuid, owner: &str) -> Option<StoredHold> {
        self.0.of(hold).filter(|known| known.0 == owner).map(|known| known.1.clone())
    }
}

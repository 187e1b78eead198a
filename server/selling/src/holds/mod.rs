//! A customer's lock on 1 to 10 seats and places of a show: take, change, release, leave and return.
//!
//! A hold is addressed under its show, because all of its state is in that show's keys
//! (docs/decisions/0002). Elsewhere: the lock store itself (`seat_locks`) and payment (`bookings`).

mod endpoints;
mod hold_counter;
mod service;

use std::sync::Arc;

use uuid::Uuid;

use platform::recent::RecentCache;
use seats::seat_locks::StoredHold;

pub use endpoints::routes;
pub use hold_counter::{HoldCounter, flush_forever};
pub use service::{places_problem, refusal_problem, seats_problem, terms, total_with_places, view};

/// Maximum cached holds: some seconds of peak load, about 200 bytes each.
const MAX_KEPT: usize = 16_384;

/// The cache of holds as this replica granted or changed them. A checkout shortly afterwards need not read the hold
/// from the lock store first: it sends the cached hold, and the store compares.
pub struct HoldCache(RecentCache<(String, StoredHold)>);

impl Default for HoldCache {
    fn default() -> Self {
        Self(RecentCache::new(MAX_KEPT))
    }
}

impl HoldCache {
    fn keep(&self, owner: &str, held: &StoredHold) {
        self.0.insert(held.hold, Arc::new((owner.to_owned(), held.clone())));
    }

    /// Returns the cached hold if it is this owner's. It may be stale or have ended.
    #[must_use]
    pub fn of(&self, hold: Uuid, owner: &str) -> Option<StoredHold> {
        self.0.get(hold).filter(|known| known.0 == owner).map(|known| known.1.clone())
    }
}

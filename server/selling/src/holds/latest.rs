//! Holds as this replica was told of them last. Whoever checks out a moment later need not have the lock store say
//! once more what they hold: it is told, and compares.

use std::sync::Arc;

use uuid::Uuid;

use platform::recent::Recent;
use seats::seat_locks::Held;

/// Holds kept at most: some seconds of a rush, some 200 bytes each.
const MAX_KEPT: usize = 16_384;

/// The latest holds.
pub struct Latest(Recent<(String, Held)>);

impl Default for Latest {
    fn default() -> Self {
        Self(Recent::new(MAX_KEPT))
    }
}

impl Latest {
    /// Keeps an owner's hold as it is now.
    pub(super) fn keep(&self, owner: &str, held: &Held) {
        self.0.keep(held.hold, Arc::new((owner.to_owned(), held.clone())));
    }

    /// The hold as it was, if it was this owner's and that is not long ago. It may have changed, or be over.
    #[must_use]
    pub fn of(&self, hold: Uuid, owner: &str) -> Option<Held> {
        self.0.of(hold).filter(|known| known.0 == owner).map(|known| known.1.clone())
    }
}

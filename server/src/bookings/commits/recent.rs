//! Bookings as they were committed a moment ago, for those who ask next: the buyer who pays, the webhook that repeats
//! the gateway's answer, and the mail. Before one is used, its version is compared with the row's.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::Found;

/// Bookings kept at most, the latest: some seconds of a rush, some 2 KB each.
const MAX_KEPT: usize = 8_192;

/// The latest bookings of this replica.
#[derive(Default)]
pub(super) struct Recent(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    bookings: HashMap<Uuid, Arc<Found>>,
    /// In the order they came; each once.
    order: VecDeque<Uuid>,
}

impl Recent {
    /// Keeps a booking that was committed so.
    pub(super) fn keep(&self, found: Arc<Found>) {
        let mut kept = self.lock();
        let id = found.row.id;
        if kept.bookings.insert(id, found).is_none() {
            kept.order.push_back(id);
        }
        if kept.order.len() > MAX_KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.bookings.remove(&oldest);
        }
    }

    /// The booking, as of some version.
    pub(super) fn of(&self, booking: Uuid) -> Option<Arc<Found>> {
        self.lock().bookings.get(&booking).cloned()
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A small cache of records that this replica wrote or read a moment ago. A cached record may be stale: use it only where
//! the write that depends on it checks the current state, or where the result is right for a stale record too.
//!
//! It evicts the oldest at once. The crate `moka` evicts by use, some time after a write.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// The latest things of one kind, by their ids.
pub struct Recent<T> {
    kept: Mutex<Entries<T>>,
    most: usize,
}

struct Entries<T> {
    things: HashMap<Uuid, Arc<T>>,
    /// In the order they came; each once.
    order: VecDeque<Uuid>,
}

impl<T> Recent<T> {
    /// Keeps so many at most, the latest.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let kept = Entries { things: HashMap::new(), order: VecDeque::new() };
        Self { kept: Mutex::new(kept), most }
    }

    /// Keeps it, in place of what was known by that id.
    pub fn keep(&self, id: Uuid, thing: Arc<T>) {
        let mut kept = self.lock();
        if kept.things.insert(id, thing).is_none() {
            kept.order.push_back(id);
        }
        if kept.order.len() > self.most
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.things.remove(&oldest);
        }
    }

    /// As it was, if that is not long ago.
    pub fn of(&self, id: Uuid) -> Option<Arc<T>> {
        self.lock().things.get(&id).cloned()
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_as_they_were_last_and_the_oldest_go() {
        let recent = Recent::new(2);
        let ids = [1, 2, 3].map(Uuid::from_u128);
        for (id, thing) in [(ids[0], "a"), (ids[1], "b"), (ids[0], "c"), (ids[2], "d")] {
            recent.keep(id, Arc::new(thing));
        }
        assert_eq!(ids.map(|id| recent.of(id).map(|thing| *thing)), [None, Some("b"), Some("d")]);
        recent.keep(ids[1], Arc::new("e"));
        assert_eq!(recent.of(ids[1]).as_deref(), Some(&"e"));
    }
}

//! A small cache of records that this replica wrote or read a moment ago. A cached record may be stale: use it only where
//! the write that depends on it checks the current state, or where the result is right for a stale record too.
//!
//! It evicts the oldest at once. The crate `moka` evicts by use, some time after a write.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// A cache of the latest records of one kind, by id.
pub struct RecentCache<T> {
    entries: Mutex<Entries<T>>,
    max_entries: usize,
}

struct Entries<T> {
    records: HashMap<Uuid, Arc<T>>,
    /// Ids in the order of their first insertion, each once.
    order: VecDeque<Uuid>,
}

impl<T> RecentCache<T> {
    /// An empty cache of at most `max_entries` records.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        let entries = Entries { records: HashMap::new(), order: VecDeque::new() };
        Self { entries: Mutex::new(entries), max_entries }
    }

    /// Caches a record in place of the earlier one with its id; evicts the oldest beyond the limit.
    pub fn insert(&self, id: Uuid, record: Arc<T>) {
        let mut entries = self.lock();
        if entries.records.insert(id, record).is_none() {
            entries.order.push_back(id);
        }
        if entries.order.len() > self.max_entries
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.records.remove(&oldest);
        }
    }

    /// The cached record with this id; it may be stale.
    pub fn get(&self, id: Uuid) -> Option<Arc<T>> {
        self.lock().records.get(&id).cloned()
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_replaces_the_record_with_its_id_and_evicts_the_oldest() {
        let recent = RecentCache::new(2);
        let ids = [1, 2, 3].map(Uuid::from_u128);
        for (id, record) in [(ids[0], "a"), (ids[1], "b"), (ids[0], "c"), (ids[2], "d")] {
            recent.insert(id, Arc::new(record));
        }
        assert_eq!(ids.map(|id| recent.get(id).map(|record| *record)), [None, Some("b"), Some("d")]);
        recent.insert(ids[1], Arc::new("e"));
        assert_eq!(recent.get(ids[1]).as_deref(), Some(&"e"));
    }
}

//! Limits on the number of things a caller has at one time, such as connections of an address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the slots in use per caller. A caller without a slot takes no memory.
#[derive(Clone, Debug, Default)]
pub struct Concurrency(Arc<Mutex<HashMap<String, usize>>>);

/// One slot in use, free again when it is dropped.
#[derive(Debug)]
pub struct ConcurrencySlot {
    counts: Concurrency,
    whose: String,
}

impl Concurrency {
    /// Takes a slot of `whose`; `None` when `max_slots` are in use.
    #[must_use]
    pub fn take(&self, whose: &str, max_slots: usize) -> Option<ConcurrencySlot> {
        let mut counts = self.lock();
        let count = counts.get(whose).copied().unwrap_or_default();
        if count >= max_slots {
            return None;
        }
        counts.insert(whose.to_owned(), count + 1);
        drop(counts);
        Some(ConcurrencySlot { counts: self.clone(), whose: whose.to_owned() })
    }

    /// Number of callers that have a slot.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.lock().len()
    }

    // Held for a map operation only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.counts.lock().entry(std::mem::take(&mut self.whose)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_fixed_number_of_slots_and_reuses_freed_ones() {
        let slots = Concurrency::default();
        let (one, two) = (slots.take("ann", 2), slots.take("ann", 2));
        assert!(one.is_some() && two.is_some() && slots.take("ann", 2).is_none());
        assert!(slots.take("ben", 2).is_some(), "another caller");
        drop(one);
        assert!(slots.take("ann", 2).is_some());
        drop(two);
        assert_eq!(slots.callers(), 0);
    }
}

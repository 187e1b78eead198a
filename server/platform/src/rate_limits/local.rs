//! Buckets in the memory of this process, used while Redis does not answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::time::{SECOND_MS, Timestamp};

use super::{Allowance, BucketOperation, BucketOutcome, step};

/// Maximum number of buckets, besides one shared bucket per limit. Full buckets are evicted first. If none is full, new keys
/// share the bucket of their limit: that many concurrent keys are a flood.
const MAX_BUCKETS: usize = 50_000;
/// Minimum time between two evictions, milliseconds.
const EVICT_EVERY_MS: i64 = SECOND_MS;

/// The buckets, and the time of the last eviction.
#[derive(Default)]
pub(super) struct Buckets(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// The instant at which each bucket is full again, by key.
    full_at: HashMap<String, Timestamp>,
    evicted_at: i64,
}

impl Buckets {
    pub(super) fn apply(
        &self,
        of: &Allowance,
        mut key: String,
        operation: (BucketOperation, u32),
        now: Timestamp,
    ) -> BucketOutcome {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.full_at.contains_key(&key) && !table.make_room(now) {
            // The shared bucket of the limit; all other keys are longer.
            of.name.clone_into(&mut key);
        }
        let (full_at, outcome) = step(of, table.full_at.get(&key).copied(), operation, now);
        match full_at {
            Some(full_at) => drop(table.full_at.insert(key, full_at)),
            None => drop(table.full_at.remove(&key)),
        }
        outcome
    }
}

impl Table {
    /// Evicts full buckets from a full table, at most once a second: in a flood every new key would scan the table under the
    /// lock. Returns true if another bucket fits.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if self.full_at.len() >= MAX_BUCKETS && now.0 - self.evicted_at >= EVICT_EVERY_MS {
            self.evicted_at = now.0;
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        self.full_at.len() < MAX_BUCKETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Allowance = Allowance { name: "test", burst: 1, each_ms: 1_000 };

    #[test]
    fn each_key_has_its_own_bucket_and_full_buckets_are_evicted() {
        let (buckets, now) = (Buckets::default(), Timestamp(9_000));
        let take = |who: usize, now| buckets.apply(&OF, who.to_string(), (BucketOperation::Take, 0), now);
        assert_eq!(
            (take(1, now), take(1, now), take(2, now)),
            (BucketOutcome::Granted, BucketOutcome::Empty(1_000), BucketOutcome::Granted)
        );
        for who in 3..=MAX_BUCKETS {
            assert_eq!(take(who, now), BucketOutcome::Granted);
        }
        assert_eq!(take(MAX_BUCKETS + 1, now), BucketOutcome::Granted, "new keys share one bucket");
        assert_eq!(take(MAX_BUCKETS + 2, now), BucketOutcome::Empty(1_000));
        assert_eq!(take(MAX_BUCKETS + 2, now.plus_ms(1_000)), BucketOutcome::Granted, "the others are full again");
    }

    #[test]
    fn a_full_table_is_scanned_once_a_second_whatever_the_number_of_new_keys() {
        let (buckets, now) = (Buckets::default(), Timestamp(9_000));
        let take = |who: usize, now| buckets.apply(&OF, who.to_string(), (BucketOperation::Take, 0), now);
        for who in 0..MAX_BUCKETS {
            assert_eq!(take(who, now), BucketOutcome::Granted);
        }
        assert_eq!(
            take(MAX_BUCKETS + 1, now.plus_ms(999)),
            BucketOutcome::Granted,
            "scanned; new keys share one bucket"
        );
        assert_eq!(
            take(MAX_BUCKETS + 2, now.plus_ms(1_000)),
            BucketOutcome::Empty(999),
            "not scanned again within a second"
        );
        let later = now.plus_ms(1_999);
        assert_eq!(
            [take(MAX_BUCKETS + 3, later), take(MAX_BUCKETS + 4, later)],
            [BucketOutcome::Granted, BucketOutcome::Granted]
        );
    }
}

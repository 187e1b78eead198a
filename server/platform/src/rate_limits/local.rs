//! Buckets in the memory of this process, used while Redis does not answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::time::{SECOND_MS, Timestamp};

use super::{Allowance, BucketOperation, BucketOutcome, step};

/// Buckets kept at most, and one more for each limit. Those that are full are forgotten first; when none is, all who are
/// new share one bucket of their limit: so many who are counted at a time are a flood.
const MAX_BUCKETS: usize = 50_000;
/// Full buckets are evicted at most once in this time, milliseconds.
const LOOK_EVERY_MS: i64 = SECOND_MS;

/// The buckets, and the time of the last eviction.
#[derive(Default)]
pub(super) struct Buckets(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// By name, when each will be full again.
    full_at: HashMap<String, Timestamp>,
    looked_at: i64,
}

impl Buckets {
    pub(super) fn act(
        &self,
        of: &Allowance,
        mut key: String,
        act: (BucketOperation, u32),
        now: Timestamp,
    ) -> BucketOutcome {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.full_at.contains_key(&key) && !table.has_room(now) {
            // The keys of all others are longer.
            of.name.clone_into(&mut key);
        }
        let (full_at, said) = step(of, table.full_at.get(&key).copied(), act, now);
        match full_at {
            Some(full_at) => drop(table.full_at.insert(key, full_at)),
            None => drop(table.full_at.remove(&key)),
        }
        said
    }
}

impl Table {
    /// True if another bucket fits. A full table forgets full buckets first, if it has not done so within a second: in a
    /// flood of new callers each would walk through all buckets, under the lock.
    fn has_room(&mut self, now: Timestamp) -> bool {
        if self.full_at.len() >= MAX_BUCKETS && now.0 - self.looked_at >= LOOK_EVERY_MS {
            self.looked_at = now.0;
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
        let take = |who: usize, now| buckets.act(&OF, who.to_string(), (BucketOperation::Take, 0), now);
        assert_eq!(
            (take(1, now), take(1, now), take(2, now)),
            (BucketOutcome::Granted, BucketOutcome::Empty(1_000), BucketOutcome::Granted)
        );
        for who in 3..=MAX_BUCKETS {
            assert_eq!(take(who, now), BucketOutcome::Granted);
        }
        assert_eq!(take(MAX_BUCKETS + 1, now), BucketOutcome::Granted, "all who are new share one bucket");
        assert_eq!(take(MAX_BUCKETS + 2, now), BucketOutcome::Empty(1_000));
        assert_eq!(take(MAX_BUCKETS + 2, now.plus_ms(1_000)), BucketOutcome::Granted, "the others are full again");
    }

    #[test]
    fn a_full_table_is_scanned_once_a_second_whatever_the_number_of_new_keys() {
        let (buckets, now) = (Buckets::default(), Timestamp(9_000));
        let take = |who: usize, now| buckets.act(&OF, who.to_string(), (BucketOperation::Take, 0), now);
        for who in 0..MAX_BUCKETS {
            assert_eq!(take(who, now), BucketOutcome::Granted);
        }
        assert_eq!(
            take(MAX_BUCKETS + 1, now.plus_ms(999)),
            BucketOutcome::Granted,
            "looked through; all new callers share one"
        );
        assert_eq!(
            take(MAX_BUCKETS + 2, now.plus_ms(1_000)),
            BucketOutcome::Empty(999),
            "not looked through again so soon"
        );
        let later = now.plus_ms(1_999);
        assert_eq!(
            [take(MAX_BUCKETS + 3, later), take(MAX_BUCKETS + 4, later)],
            [BucketOutcome::Granted, BucketOutcome::Granted]
        );
    }
}

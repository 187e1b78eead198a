//! The buckets of this process, for while Redis is away.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::time::Timestamp;

use super::{Act, Allowance, Said, step};

/// Buckets kept at most, and one more for each limit. Those that are full are forgotten first; when none is, all who are
/// new share one bucket of their limit: so many who are counted at a time are a flood.
const MAX_BUCKETS: usize = 50_000;

/// By name, when each will be full again.
#[derive(Default)]
pub(super) struct Buckets(Mutex<HashMap<String, Timestamp>>);

impl Buckets {
    pub(super) fn act(&self, of: &Allowance, mut key: String, act: (Act, u32), now: Timestamp) -> Said {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&key) {
            buckets.retain(|_, full_at| *full_at > now);
            if buckets.len() >= MAX_BUCKETS {
                // The keys of all others are longer.
                of.name.clone_into(&mut key);
            }
        }
        let (full_at, said) = step(of, buckets.get(&key).copied(), act, now);
        match full_at {
            Some(full_at) => drop(buckets.insert(key, full_at)),
            None => drop(buckets.remove(&key)),
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Allowance = Allowance { name: "test", burst: 1, each_ms: 1_000 };

    #[test]
    fn everybody_has_a_bucket_of_their_own_and_full_ones_are_forgotten() {
        let (buckets, now) = (Buckets::default(), Timestamp(9_000));
        let take = |who: usize, now| buckets.act(&OF, who.to_string(), (Act::Take, 0), now);
        assert_eq!((take(1, now), take(1, now), take(2, now)), (Said::Granted, Said::Empty(1_000), Said::Granted));
        for who in 3..=MAX_BUCKETS {
            assert_eq!(take(who, now), Said::Granted);
        }
        assert_eq!(take(MAX_BUCKETS + 1, now), Said::Granted, "all who are new share one bucket");
        assert_eq!(take(MAX_BUCKETS + 2, now), Said::Empty(1_000));
        assert_eq!(take(MAX_BUCKETS + 2, now.plus_ms(1_000)), Said::Granted, "the others are full again");
    }
}

//! Counters of the outcomes of requests with a key, the hit ratio per layer, and their metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::VariantName;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use strum::{IntoStaticStr, VariantArray};

/// The layer that answered a request with a key, or an outcome of the comparison of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IdempotencyCount {
    /// Answered by the fingerprint, before routing.
    #[strum(serialize = "fast_road")]
    ReplayCache,
    /// Answered from this process' cache after parsing.
    Process,
    /// Shared the result of the same request, which was running in this process.
    Shared,
    /// Answered from Redis.
    Redis,
    /// Did the work, or found the answer in Postgres.
    Worked,
    /// Reached the lock store, which keeps the keys of holds; counted as work.
    Held,
    /// Redis did not answer.
    WithoutRedis,
    /// Refused: another replica was still running the request.
    StillRunning,
    /// Took over the key of a dead replica.
    TakenOver,
    /// Repaired an entry in Redis from Postgres.
    Repaired,
    /// Redis and Postgres have different answers for a key.
    Diverged,
    /// The reconciler skipped claims, because there were too many.
    Skipped,
}

/// The counters; they only grow.
#[derive(Debug, Default)]
pub struct IdempotencyCounters([AtomicU64; IdempotencyCount::VARIANTS.len()]);

impl IdempotencyCounters {
    /// Adds one.
    pub fn add(&self, count: IdempotencyCount) {
        self.0[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The count so far.
    #[must_use]
    pub fn of(&self, count: IdempotencyCount) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }
}

/// Requests with a key: outcome.
const IDEMPOTENCY: &str = "rowlock_idempotency_total";
/// Duration of replays from memory.
const REPLAY_DURATION: &str = "rowlock_idempotent_replay_duration_seconds";

/// Describes the metrics and sets them to zero.
pub fn register() {
    describe_counter!(IDEMPOTENCY, Unit::Count, "Requests with a key, by who answered them.");
    describe_histogram!(REPLAY_DURATION, Unit::Seconds, "How long answers took that this process knew already.");
    for &count in IdempotencyCount::VARIANTS {
        counter!(IDEMPOTENCY, "outcome" => count.as_str()).absolute(0);
    }
    let _registered = histogram!(REPLAY_DURATION);
}

/// Records how long the replay of an answer in memory took.
pub fn record_replay(took: Duration) {
    histogram!(REPLAY_DURATION).record(took);
}

/// Takes over the counts of this process, on a scrape.
pub fn refresh(counters: &IdempotencyCounters) {
    for &count in IdempotencyCount::VARIANTS {
        counter!(IDEMPOTENCY, "outcome" => count.as_str()).absolute(counters.of(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_own_counter() {
        let counters = IdempotencyCounters::default();
        for (place, &count) in IdempotencyCount::VARIANTS.iter().enumerate() {
            assert_eq!(count as usize, place);
            (0..=place).for_each(|_| counters.add(count));
        }
        let mut counts = IdempotencyCount::VARIANTS.iter().enumerate();
        assert!(counts.all(|(place, &count)| counters.of(count) == place as u64 + 1));
    }
}

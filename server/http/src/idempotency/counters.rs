//! Counters of the outcomes of requests with a key: the hit ratio per layer.

use std::sync::atomic::{AtomicU64, Ordering};

/// The layer that answered a request with a key, or an outcome of the comparison of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdempotencyCount {
    /// Answered by the fingerprint, before routing.
    ReplayCache,
    /// Answered from this process' cache after parsing.
    Process,
    /// Shared the result of another that was running here.
    Shared,
    /// Answered from Redis.
    Redis,
    /// Work was done, or its answer found in Postgres.
    Worked,
    /// Redis did not answer.
    WithoutRedis,
    /// Another replica was still running it.
    StillRunning,
    /// A dead replica's key was taken over.
    TakenOver,
    /// An entry in Redis was mended from Postgres.
    Repaired,
    /// Redis and Postgres have different answers for a key.
    Diverged,
    /// Answers were too many to be compared.
    Skipped,
}

impl IdempotencyCount {
    /// Its name for operators.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ReplayCache => "fast_road",
            Self::Process => "process",
            Self::Shared => "shared",
            Self::Redis => "redis",
            Self::Worked => "worked",
            Self::WithoutRedis => "without_redis",
            Self::StillRunning => "still_running",
            Self::TakenOver => "taken_over",
            Self::Repaired => "repaired",
            Self::Diverged => "diverged",
            Self::Skipped => "skipped",
        }
    }
}

/// All of them.
pub const COUNTS: [IdempotencyCount; 11] = [
    IdempotencyCount::ReplayCache,
    IdempotencyCount::Process,
    IdempotencyCount::Shared,
    IdempotencyCount::Redis,
    IdempotencyCount::Worked,
    IdempotencyCount::WithoutRedis,
    IdempotencyCount::StillRunning,
    IdempotencyCount::TakenOver,
    IdempotencyCount::Repaired,
    IdempotencyCount::Diverged,
    IdempotencyCount::Skipped,
];

/// The counters; they only grow.
#[derive(Debug, Default)]
pub struct IdempotencyCounters([AtomicU64; COUNTS.len()]);

impl IdempotencyCounters {
    pub(super) fn add(&self, count: IdempotencyCount) {
        self.0[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The count so far.
    #[must_use]
    pub fn of(&self, count: IdempotencyCount) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_own_counter() {
        let counters = IdempotencyCounters::default();
        for (place, count) in COUNTS.into_iter().enumerate() {
            assert_eq!(count as usize, place);
            (0..=place).for_each(|_| counters.add(count));
        }
        assert!(COUNTS.into_iter().enumerate().all(|(place, count)| counters.of(count) == place as u64 + 1));
    }
}

//! Metrics of idempotency keys.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

use super::counters::{COUNTS, IdempotencyCounters};

/// Requests with a key: outcome.
const IDEMPOTENCY: &str = "rowlock_idempotency_total";
/// Duration of replays from memory.
const REPLAY_DURATION: &str = "rowlock_idempotent_replay_duration_seconds";

/// Describes the metrics and sets them to zero.
pub fn register() {
    describe_counter!(IDEMPOTENCY, Unit::Count, "Requests with a key, by who answered them.");
    describe_histogram!(REPLAY_DURATION, Unit::Seconds, "How long answers took that this process knew already.");
    for count in COUNTS {
        counter!(IDEMPOTENCY, "outcome" => count.label()).absolute(0);
    }
    let _registered = histogram!(REPLAY_DURATION);
}

/// Records how long the replay of an answer in memory took.
pub fn replayed(took: Duration) {
    histogram!(REPLAY_DURATION).record(took);
}

/// Takes over the counts of this process, on a scrape.
pub fn refresh(counters: &IdempotencyCounters) {
    for count in COUNTS {
        counter!(IDEMPOTENCY, "outcome" => count.label()).absolute(counters.of(count));
    }
}

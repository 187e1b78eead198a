//! Metrics in Prometheus' text format at `/metrics`: counters, durations and gauges.
//!
//! Every metric name is defined here with its unit and description; capabilities call the functions of this module and do
//! not know the format. Gauges of state (queue lengths, ages) are read on each scrape (`rowlock::metrics`), not kept up to
//! date.
//!
//! [`traces`] exports the steps of a request to a collector.
//!
//! Labels have few values, known in advance, and never name a person, a seat or a booking.

mod gateways;
mod outcomes;
mod requests;
pub mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use strum::{IntoStaticStr, VariantArray};
use tokio_util::sync::CancellationToken;

use self::outcomes::LabelledCounter;
use crate::background::PeriodicLoop;

pub use self::gateways::{GatewayOperation, GatewayOutcome, expect_gateway, gateway_call};
pub use self::outcomes::{
    CatalogueRead, CdnPurge, HoldLimit, PuzzleOutcome, ShadowOutcome, catalogue_read, cdn_purged,
    character_without_font, hold_limited, puzzle, shadow_call, unusual,
};
pub use self::requests::{RouteName, Routes, count_request};
pub use self::traces::STEP;

/// Bounds of the buckets of durations, seconds: from a replay out of memory to a request that timed out.
const DURATION_BUCKETS_S: [f64; 14] =
    [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0];

/// Requests answered: method, route, status.
pub const HTTP_REQUESTS: &str = "rowlock_http_requests_total";
/// Duration of the requests: method, route.
pub const HTTP_DURATION: &str = "rowlock_http_request_duration_seconds";
/// Attempts at holds.
static LOCK_ATTEMPTS: LabelledCounter<LockOutcome> = LabelledCounter::new(
    "rowlock_lock_attempts_total",
    "outcome",
    "Attempts at holds: acquired, conflict (a seat was another's), refused, failed.",
);
/// Duration of the attempts, time in the batch queue included.
const LOCK_DURATION: &str = "rowlock_lock_attempt_duration_seconds";
/// Holds that ran out.
const HOLDS_EXPIRED: &str = "rowlock_holds_expired_total";
/// From "Pay" to the answer.
const CONFIRM_DURATION: &str = "rowlock_confirm_duration_seconds";
/// Bookings that only the reconciler finished.
const RESCUED: &str = "rowlock_bookings_rescued_total";
/// Transactions done again because they gave way to others.
const SERIALIZATION_RETRIES: &str = "rowlock_serialization_retries_total";
/// Calls to Redis, answered or given up after every try; not those that were not tried at all.
const REDIS_CALLS: &str = "rowlock_redis_calls_total";
/// Calls to Redis that failed, tries included.
static REDIS_ERRORS: LabelledCounter<RedisError> =
    LabelledCounter::new("rowlock_redis_errors_total", "kind", "Calls to Redis that failed, by kind.");

/// The recorder of this process; a second installation finds it in place.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Starts recording, once a process. `register` describes the metrics of the caller and sets them to zero.
///
/// # Errors
/// When the process has another recorder already.
pub fn install(register: impl FnOnce()) -> anyhow::Result<()> {
    if RECORDER.get().is_some() {
        return Ok(());
    }
    match builder()?.install_recorder() {
        Ok(handle) => {
            let _whoever_was_faster = RECORDER.set(handle);
            register();
            Ok(())
        }
        // Two servers that start at the same moment in one process, as in tests.
        Err(_) if RECORDER.get().is_some() => Ok(()),
        Err(cause) => Err(cause).context("metrics cannot be recorded"),
    }
}

/// Renders all metrics in Prometheus' text format; `None` before [`install`].
#[must_use]
pub fn render() -> Option<String> {
    RECORDER.get().map(PrometheusHandle::render)
}

/// A recorder with the buckets of all durations.
///
/// # Errors
/// When the buckets are refused.
pub fn builder() -> anyhow::Result<PrometheusBuilder> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_duration_seconds".to_owned()), &DURATION_BUCKETS_S)
        .context("the buckets of durations")
}

/// Describes every metric of this module and sets it to zero, so that a rule sees its first increase.
pub fn register() {
    describe_counter!(HTTP_REQUESTS, Unit::Count, "Requests answered, by method, route and status.");
    describe_histogram!(HTTP_DURATION, Unit::Seconds, "From a request's headers to its answer's, by method and route.");
    describe_histogram!(LOCK_DURATION, Unit::Seconds, "From an attempt at a hold to its answer.");
    describe_counter!(HOLDS_EXPIRED, Unit::Count, "Holds whose time ran out, as far as this replica freed them.");
    describe_histogram!(CONFIRM_DURATION, Unit::Seconds, "From Pay to the answer, the gateway included.");
    describe_counter!(
        RESCUED,
        Unit::Count,
        "Payments whose news did not come or was left behind, and which the reconciler finished."
    );
    describe_counter!(SERIALIZATION_RETRIES, Unit::Count, "Transactions done again because they gave way to others.");
    describe_counter!(REDIS_CALLS, Unit::Count, "Calls to Redis that were tried, answered or not.");
    LOCK_ATTEMPTS.register();
    REDIS_ERRORS.register();
    gateways::describe();
    outcomes::register();
    for name in [HOLDS_EXPIRED, RESCUED, SERIALIZATION_RETRIES, REDIS_CALLS] {
        counter!(name).increment(0);
    }
    for name in [LOCK_DURATION, CONFIRM_DURATION] {
        let _registered = histogram!(name);
    }
}

/// The outcome of an attempt at a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LockOutcome {
    /// The hold was granted.
    Acquired,
    /// A seat or place was another's.
    Conflict,
    /// Another refusal: a limit, a second hold.
    Refused,
    /// The lock store did not answer.
    Failed,
}

/// Counts an attempt at a hold.
pub fn lock_attempt(outcome: LockOutcome, took: Duration) {
    LOCK_ATTEMPTS.add(outcome, 1);
    histogram!(LOCK_DURATION).record(took);
}

/// Counts holds that ran out.
pub fn holds_expired(count: u64) {
    counter!(HOLDS_EXPIRED).increment(count);
}

/// Notes how long a payment took from "Pay" to its answer.
pub fn confirmed(took: Duration) {
    histogram!(CONFIRM_DURATION).record(took);
}

/// Counts a booking that only the reconciler finished.
pub fn rescued() {
    counter!(RESCUED).increment(1);
}

/// Counts a transaction that is done again.
pub fn serialization_retry() {
    counter!(SERIALIZATION_RETRIES).increment(1);
}

/// The kind of a failed call to Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RedisError {
    /// Not called: the breaker is open.
    #[strum(serialize = "resting")]
    CircuitOpen,
    /// No answer, after every try.
    Unavailable,
    /// It understood and would not.
    Refused,
}

/// Counts a call to Redis that was answered.
pub fn redis_answered() {
    counter!(REDIS_CALLS).increment(1);
}

/// Counts a call to Redis that failed.
pub fn redis_failed(error: RedisError) {
    if error != RedisError::CircuitOpen {
        counter!(REDIS_CALLS).increment(1);
    }
    REDIS_ERRORS.add(error, 1);
}

/// Interval. Until then every sample is stored, some 20 bytes each, also without scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Sorts samples into buckets until the server stops.
pub async fn upkeep_forever(stop: CancellationToken) {
    let mut rounds = PeriodicLoop::every(&stop, UPKEEP_INTERVAL);
    while rounds.wait_next().await {
        if let Some(recorder) = RECORDER.get() {
            recorder.run_upkeep();
        }
    }
}

//! Samples of durations are put into their buckets.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::RECORDER;
use crate::background::PeriodicLoop;

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

//! Samples of durations are put into their buckets.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::RECORDER;
use crate::background::Rounds;

/// How often. Until then every sample is kept by itself, some 20 bytes each, also where nobody scrapes.
const EVERY: Duration = Duration::from_secs(5);

/// Sorts samples into buckets until the server stops.
pub async fn upkeep_forever(stop: CancellationToken) {
    let mut rounds = Rounds::every(&stop, EVERY);
    while rounds.go_on().await {
        if let Some(recorder) = RECORDER.get() {
            recorder.run_upkeep();
        }
    }
}

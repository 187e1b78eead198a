//! Samples of durations are put into their buckets.

use std::time::Duration;

use super::RECORDER;
use crate::AppState;
use crate::background::Rounds;

/// How often. Until then every sample is kept by itself, some 20 bytes each, also where nobody scrapes.
const EVERY: Duration = Duration::from_secs(5);

/// Sorts samples into buckets until the server stops.
pub async fn upkeep_forever(state: AppState) {
    let mut rounds = Rounds::every(&state.stop, EVERY);
    while rounds.go_on().await {
        if let Some(recorder) = RECORDER.get() {
            recorder.run_upkeep();
        }
    }
}

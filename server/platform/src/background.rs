//! Periodic background work: waits for the next round or for a wake-up, until the server stops. The caller does the work
//! and logs its failures. A loop that panics starts again.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Pause before a loop that panicked starts again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// Runs a background loop until it returns. After a panic it starts again, unless the server stops.
pub async fn restart_after_panics<F: Future<Output = ()>>(
    stop: CancellationToken,
    work: &'static str,
    start: impl Fn() -> F,
) {
    while AssertUnwindSafe(start()).catch_unwind().await.is_err() {
        // The panic hook has printed the message and its place.
        tracing::error!(work, "a background loop panicked; it starts again");
        if stop.run_until_cancelled(tokio::time::sleep(RESTART_AFTER)).await.is_none() {
            return;
        }
    }
}

/// A timer for the rounds of periodic work.
#[derive(Debug)]
pub struct PeriodicLoop<'a> {
    stop: &'a CancellationToken,
    tick: Interval,
}

impl<'a> PeriodicLoop<'a> {
    /// A timer whose first round is due at once, and each further one a `period` later. A round that takes longer delays
    /// those after it.
    #[must_use]
    pub fn every(stop: &'a CancellationToken, period: Duration) -> Self {
        let mut tick = tokio::time::interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stop, tick }
    }

    /// Waits for the next round; `false` when the server stops.
    pub async fn wait_next(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            _ = self.tick.tick() => true,
        }
    }
}

/// Waits for a wake-up, at most `at_most`; `false` when the server stops.
pub async fn wait_for_wake(stop: &CancellationToken, wake: &Notify, at_most: Duration) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => false,
        () = wake.notified() => true,
        () = tokio::time::sleep(at_most) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const SOON: Duration = Duration::from_millis(1);
    const A_DAY: Duration = Duration::from_secs(24 * 3_600);

    #[tokio::test]
    async fn the_first_round_is_at_once_and_none_begins_when_the_server_stops() {
        let stop = CancellationToken::new();
        let mut rounds = PeriodicLoop::every(&stop, A_DAY);
        assert!(rounds.wait_next().await);
        let mut often = PeriodicLoop::every(&stop, SOON);
        assert!(often.wait_next().await && often.wait_next().await && often.wait_next().await);
        stop.cancel();
        assert!(!rounds.wait_next().await && !often.wait_next().await);
    }

    #[tokio::test]
    async fn a_loop_that_panics_twice_runs_a_third_time() {
        let starts = AtomicU32::new(0);
        let start = async || assert!(starts.fetch_add(1, Ordering::Relaxed) >= 2, "this panic is expected");
        restart_after_panics(CancellationToken::new(), "a loop", start).await;
        assert_eq!(starts.into_inner(), 3);
    }

    #[tokio::test]
    async fn a_loop_that_panics_does_not_start_again_when_the_server_stops() {
        let (starts, stop) = (AtomicU32::new(0), CancellationToken::new());
        stop.cancel();
        let start = async || assert!(starts.fetch_add(1, Ordering::Relaxed) >= 1, "this panic is expected");
        restart_after_panics(stop, "a loop", start).await;
        assert_eq!(starts.into_inner(), 1);
    }

    #[tokio::test]
    async fn a_wake_up_ends_the_wait_and_the_timeout_ends_it_too() {
        let (stop, wake) = (CancellationToken::new(), Notify::new());
        wake.notify_one();
        assert!(wait_for_wake(&stop, &wake, A_DAY).await);
        assert!(wait_for_wake(&stop, &wake, SOON).await);
        stop.cancel();
        assert!(!wait_for_wake(&stop, &wake, A_DAY).await);
    }
}

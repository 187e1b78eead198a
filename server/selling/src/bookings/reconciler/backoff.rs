//! Back-off for gateways that do not answer, each separately: a gateway that is down does not
//! block calls to the other. Pure: time and randomness are arguments.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Bound of the first pause, milliseconds; doubles with every failure, full jitter below it.
const FIRST_PAUSE_MS: u64 = 1_000;
/// …up to this, so that everything is settled within a minute once a gateway is back.
const LONGEST_PAUSE_MS: u64 = 15_000;
/// Maximum doublings; more change nothing below the bound.
const DOUBLINGS: u32 = 10;

/// Gateways that did not answer lately, by name.
#[derive(Debug, Default)]
pub(super) struct Backoffs(HashMap<String, Backoff>);

#[derive(Debug)]
struct Backoff {
    until: Instant,
    failures: u32,
}

impl Backoffs {
    /// Returns all gateways whose last call failed.
    pub(super) fn failing(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Returns those of them that may be tried again.
    pub(super) fn ready(&self, now: Instant) -> Vec<String> {
        self.0.iter().filter(|(_, backoff)| backoff.until <= now).map(|(gateway, _)| gateway.clone()).collect()
    }

    /// Checks that the gateway must not be called now.
    pub(super) fn is_backing_off(&self, gateway: &str, now: Instant) -> bool {
        self.0.get(gateway).is_some_and(|backoff| backoff.until > now)
    }

    pub(super) fn answered(&mut self, gateway: &str) {
        self.0.remove(gateway);
    }

    /// Records a failure. Calls that were in progress when the pause began are not counted. `draw`
    /// draws from `0..=limit`.
    pub(super) fn failed(&mut self, gateway: &str, now: Instant, draw: impl FnOnce(u64) -> u64) {
        let failures = match self.0.get(gateway) {
            Some(backoff) if backoff.until > now => return,
            Some(backoff) => backoff.failures.saturating_add(1),
            None => 0,
        };
        let bound = (FIRST_PAUSE_MS << failures.min(DOUBLINGS)).min(LONGEST_PAUSE_MS);
        let until = now + Duration::from_millis(draw(bound));
        self.0.insert(gateway.to_owned(), Backoff { until, failures });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: &str = "down";
    const UP: &str = "up";

    #[test]
    fn each_failure_doubles_the_pause_up_to_a_bound() {
        let (mut backoffs, mut now) = (Backoffs::default(), Instant::now());
        let mut bounds = Vec::new();
        for _ in 0..70 {
            backoffs.failed(DOWN, now, |limit| {
                bounds.push(limit);
                limit
            });
            let bound = Duration::from_millis(*bounds.last().expect("one was drawn"));
            assert!(backoffs.is_backing_off(DOWN, now + bound - Duration::from_millis(1)));
            now += bound;
            assert_eq!(backoffs.ready(now), [DOWN], "then it is tried again");
        }
        assert_eq!(bounds[..5], [1_000, 2_000, 4_000, 8_000, 15_000]);
        assert!(bounds[5..].iter().all(|bound| *bound == LONGEST_PAUSE_MS));
    }

    #[test]
    fn the_pause_is_drawn_between_zero_and_the_bound() {
        let (mut backoffs, now) = (Backoffs::default(), Instant::now());
        backoffs.failed(DOWN, now, |_| 0);
        assert_eq!(backoffs.ready(now), [DOWN]);
        backoffs.failed(DOWN, now, |limit| limit / 2);
        assert!(backoffs.is_backing_off(DOWN, now + Duration::from_millis(999)));
        assert!(!backoffs.is_backing_off(DOWN, now + Duration::from_millis(1_000)));
    }

    #[test]
    fn concurrent_failures_count_once() {
        let (mut backoffs, now) = (Backoffs::default(), Instant::now());
        for _ in 0..8 {
            backoffs.failed(DOWN, now, |limit| limit);
        }
        assert!(!backoffs.is_backing_off(DOWN, now + Duration::from_millis(FIRST_PAUSE_MS)));
    }

    #[test]
    fn gateways_back_off_separately_and_an_answer_ends_it() {
        let (mut backoffs, now) = (Backoffs::default(), Instant::now());
        backoffs.failed(DOWN, now, |limit| limit);
        assert!(!backoffs.is_backing_off(UP, now));
        assert_eq!(backoffs.failing(), [DOWN]);
        backoffs.answered(DOWN);
        assert!(backoffs.failing().is_empty() && !backoffs.is_backing_off(DOWN, now));
        backoffs.failed(DOWN, now, |limit| {
            assert_eq!(limit, FIRST_PAUSE_MS, "it begins anew");
            limit
        });
    }
}

//! Back-off for gateways that do not answer, each separately: a gateway that is down does not
//! block calls to the other. Pure: time and randomness are arguments.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Bound of the first pause, milliseconds; doubles with every failure, full jitter below it.
const FIRST_REST_MS: u64 = 1_000;
/// …up to this, so that everything is settled within a minute once a gateway is back.
const LONGEST_REST_MS: u64 = 15_000;
/// Maximum doublings; more change nothing below the bound.
const DOUBLINGS: u32 = 10;

/// Gateways that did not answer lately, by name.
#[derive(Debug, Default)]
pub(super) struct Rests(HashMap<String, Rest>);

#[derive(Debug)]
struct Rest {
    until: Instant,
    in_vain: u32,
}

impl Rests {
    /// Returns all gateways whose last call failed.
    pub(super) fn all(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Returns those of them that may be tried again.
    pub(super) fn over(&self, now: Instant) -> Vec<String> {
        self.0.iter().filter(|(_, rest)| rest.until <= now).map(|(gateway, _)| gateway.clone()).collect()
    }

    /// Checks that the gateway must not be called now.
    pub(super) fn is_resting(&self, gateway: &str, now: Instant) -> bool {
        self.0.get(gateway).is_some_and(|rest| rest.until > now)
    }

    /// Records an answer: the back-off ends.
    pub(super) fn answered(&mut self, gateway: &str) {
        self.0.remove(gateway);
    }

    /// Records a failure. Calls that were in progress when the pause began are not counted. `draw`
    /// draws from `0..=limit`.
    pub(super) fn failed(&mut self, gateway: &str, now: Instant, draw: impl FnOnce(u64) -> u64) {
        let in_vain = match self.0.get(gateway) {
            Some(rest) if rest.until > now => return,
            Some(rest) => rest.in_vain.saturating_add(1),
            None => 0,
        };
        let bound = (FIRST_REST_MS << in_vain.min(DOUBLINGS)).min(LONGEST_REST_MS);
        let until = now + Duration::from_millis(draw(bound));
        self.0.insert(gateway.to_owned(), Rest { until, in_vain });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: &str = "down";
    const UP: &str = "up";

    #[test]
    fn each_question_in_vain_doubles_the_rest_up_to_a_bound() {
        let (mut rests, mut now) = (Rests::default(), Instant::now());
        let mut bounds = Vec::new();
        for _ in 0..70 {
            rests.failed(DOWN, now, |limit| {
                bounds.push(limit);
                limit
            });
            let bound = Duration::from_millis(*bounds.last().expect("one was drawn"));
            assert!(rests.is_resting(DOWN, now + bound - Duration::from_millis(1)));
            now += bound;
            assert_eq!(rests.over(now), [DOWN], "then it is tried again");
        }
        assert_eq!(bounds[..5], [1_000, 2_000, 4_000, 8_000, 15_000]);
        assert!(bounds[5..].iter().all(|bound| *bound == LONGEST_REST_MS));
    }

    #[test]
    fn the_length_is_drawn_from_nothing_to_the_bound() {
        let (mut rests, now) = (Rests::default(), Instant::now());
        rests.failed(DOWN, now, |_| 0);
        assert_eq!(rests.over(now), [DOWN]);
        rests.failed(DOWN, now, |limit| limit / 2);
        assert!(rests.is_resting(DOWN, now + Duration::from_millis(999)));
        assert!(!rests.is_resting(DOWN, now + Duration::from_millis(1_000)));
    }

    #[test]
    fn eight_questions_under_way_at_once_are_one_failure() {
        let (mut rests, now) = (Rests::default(), Instant::now());
        for _ in 0..8 {
            rests.failed(DOWN, now, |limit| limit);
        }
        assert!(!rests.is_resting(DOWN, now + Duration::from_millis(FIRST_REST_MS)));
    }

    #[test]
    fn one_gateway_that_is_down_is_nothing_to_the_other_and_an_answer_ends_it() {
        let (mut rests, now) = (Rests::default(), Instant::now());
        rests.failed(DOWN, now, |limit| limit);
        assert!(!rests.is_resting(UP, now));
        assert_eq!(rests.all(), [DOWN]);
        rests.answered(DOWN);
        assert!(rests.all().is_empty() && !rests.is_resting(DOWN, now));
        rests.failed(DOWN, now, |limit| {
            assert_eq!(limit, FIRST_REST_MS, "it begins anew");
            limit
        });
    }
}

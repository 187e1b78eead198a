//! A circuit breaker: fails calls at once while a peer does not answer, and probes until it answers again.
//!
//! Closed: all calls pass. Open: every call fails at once. Half-open: one call at a time probes, the others fail at once.
//! Each Redis process and each payment gateway has its own breaker with the limits of its kind: when one shard of a
//! Cluster is down, the shows of the other shards continue.
//!
//! Pure: time and randomness are arguments.

use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug)]
pub struct Limits {
    /// So many failures in a row open it.
    pub failures_to_open: u32,
    /// Failures further apart than this are not in a row.
    pub window: Duration,
    /// The first rest, milliseconds; doubles with every probe that fails.
    pub first_rest_ms: u64,
    /// …up to this.
    pub longest_rest_ms: u64,
    /// A probe without a result for this long is abandoned; another is let through.
    pub probe_patience: Duration,
}

/// The breaker's state.
#[derive(Debug)]
enum State {
    Closed { failures: u32, last: Option<Instant> },
    Open { until: Instant, rests: u32 },
    Probing { since: Instant, rests: u32 },
}

/// The kind of an admitted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// One of many.
    Ordinary,
    /// The one that finds out.
    Probe,
}

/// The breaker of one process, or one service, that is called.
#[derive(Debug)]
pub struct Breaker {
    limits: &'static Limits,
    state: State,
}

impl Breaker {
    /// Closed.
    #[must_use]
    pub const fn new(limits: &'static Limits) -> Self {
        Self { limits, state: State::Closed { failures: 0, last: None } }
    }

    /// Admits a call.
    ///
    /// # Errors
    /// The time until the next probe, while the breaker is open.
    pub fn admit(&mut self, now: Instant) -> Result<Pass, Duration> {
        if let State::Closed { .. } = self.state {
            return Ok(Pass::Ordinary);
        }
        let rest = self.rest_left(now);
        if rest > Duration::ZERO {
            return Err(rest);
        }
        if let State::Open { rests, .. } | State::Probing { rests, .. } = self.state {
            self.state = State::Probing { since: now, rests };
        }
        Ok(Pass::Probe)
    }

    /// Time until the next probe; zero when a probe or every call is admitted.
    #[must_use]
    pub fn rest_left(&self, now: Instant) -> Duration {
        match self.state {
            State::Closed { .. } => Duration::ZERO,
            State::Open { until, .. } => until.saturating_duration_since(now),
            State::Probing { since, .. } => (since + self.limits.probe_patience).saturating_duration_since(now),
        }
    }

    /// Records an answer: the process is up, also if the call was admitted before the breaker opened.
    pub fn succeeded(&mut self) {
        self.state = State::Closed { failures: 0, last: None };
    }

    /// A call was not answered. `draw` draws from `0..=limit`. True when this opened the breaker.
    pub fn failed(&mut self, now: Instant, pass: Pass, draw: impl FnOnce(u64) -> u64) -> bool {
        match (&mut self.state, pass) {
            (State::Closed { failures, last }, _) => {
                let in_a_row = last.is_some_and(|last| now.saturating_duration_since(last) <= self.limits.window);
                *failures = if in_a_row { *failures + 1 } else { 1 };
                *last = Some(now);
                let enough = *failures >= self.limits.failures_to_open;
                if enough {
                    self.rest(now, 0, draw);
                }
                enough
            }
            (State::Probing { rests, .. }, Pass::Probe) => {
                let rests = rests.saturating_add(1);
                self.rest(now, rests, draw);
                false
            }
            // Admitted before the breaker opened: no new information.
            (State::Open { .. } | State::Probing { .. }, _) => false,
        }
    }

    /// Records a cancelled probe: the next call may be one.
    pub fn abandoned(&mut self, now: Instant, pass: Pass) {
        if let (State::Probing { rests, .. }, Pass::Probe) = (&self.state, pass) {
            self.state = State::Open { until: now, rests: *rests };
        }
    }

    /// True while calls are rejected.
    pub const fn is_resting(&self) -> bool {
        !matches!(self.state, State::Closed { .. })
    }

    /// Between half and the whole of this round's rest, so that replicas do not come back in step.
    fn rest(&mut self, now: Instant, rests: u32, draw: impl FnOnce(u64) -> u64) {
        let whole = self.limits.first_rest_ms.saturating_mul(1 << rests.min(16)).min(self.limits.longest_rest_ms);
        let until = now + Duration::from_millis(whole / 2 + draw(whole / 2));
        self.state = State::Open { until, rests };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    static LIMITS: Limits = Limits {
        failures_to_open: 5,
        window: Duration::from_secs(10),
        first_rest_ms: 1_000,
        longest_rest_ms: 10_000,
        probe_patience: Duration::from_secs(5),
    };

    fn longest(limit: u64) -> u64 {
        limit
    }

    fn shortest(_: u64) -> u64 {
        0
    }

    /// A breaker that opened at that moment, to rest for a second.
    fn open(now: Instant) -> Breaker {
        let mut breaker = Breaker::new(&LIMITS);
        for failure in 1..=LIMITS.failures_to_open {
            assert_eq!(breaker.admit(now), Ok(Pass::Ordinary));
            assert_eq!(breaker.failed(now, Pass::Ordinary, longest), failure == LIMITS.failures_to_open);
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_calls_fail_at_once() {
        let start = Instant::now();
        let mut breaker = open(start);
        assert!(breaker.is_resting());
        assert_eq!(breaker.admit(start), Err(1_000 * MS));
        assert_eq!(breaker.admit(start + 999 * MS), Err(MS));
    }

    #[test]
    fn a_success_between_them_starts_the_count_again() {
        let start = Instant::now();
        let mut breaker = Breaker::new(&LIMITS);
        for _ in 0..10 {
            for _ in 1..LIMITS.failures_to_open {
                breaker.failed(start, Pass::Ordinary, longest);
            }
            breaker.succeeded();
        }
        assert_eq!(breaker.admit(start), Ok(Pass::Ordinary));
    }

    #[test]
    fn failures_far_apart_are_not_in_a_row() {
        let mut now = Instant::now();
        let mut breaker = Breaker::new(&LIMITS);
        for _ in 0..10 * LIMITS.failures_to_open {
            assert!(!breaker.failed(now, Pass::Ordinary, longest));
            now += LIMITS.window + MS;
        }
        assert!(!breaker.is_resting());
    }

    #[test]
    fn after_the_rest_one_call_probes_and_the_others_wait() {
        let start = Instant::now();
        let mut breaker = open(start);
        let rested = start + 1_000 * MS;
        assert_eq!(breaker.admit(rested), Ok(Pass::Probe));
        assert!(breaker.admit(rested).is_err());
        breaker.succeeded();
        assert_eq!(breaker.admit(rested), Ok(Pass::Ordinary));
    }

    #[test]
    fn every_probe_that_fails_doubles_the_rest_up_to_ten_seconds() {
        let mut now = Instant::now();
        let mut breaker = open(now);
        for rest in [1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
            assert_eq!(breaker.admit(now), Err(rest * MS));
            now += rest * MS;
            assert_eq!(breaker.admit(now), Ok(Pass::Probe));
            breaker.failed(now, Pass::Probe, longest);
        }
    }

    #[test]
    fn a_rest_is_never_shorter_than_half() {
        let now = Instant::now();
        let mut breaker = open(now);
        breaker.admit(now + 1_000 * MS).expect("it probes");
        breaker.failed(now, Pass::Probe, shortest);
        assert_eq!(breaker.admit(now), Err(1_000 * MS));
    }

    #[test]
    fn a_late_failure_of_an_earlier_call_neither_prolongs_the_rest_nor_ends_a_probe() {
        let start = Instant::now();
        let mut breaker = open(start);
        breaker.failed(start + 500 * MS, Pass::Ordinary, longest);
        assert_eq!(breaker.admit(start + 500 * MS), Err(500 * MS));
        let rested = start + 1_000 * MS;
        assert_eq!(breaker.admit(rested), Ok(Pass::Probe));
        breaker.failed(rested, Pass::Ordinary, longest);
        assert_eq!(breaker.admit(rested), Err(LIMITS.probe_patience));
    }

    #[test]
    fn a_late_answer_to_an_earlier_call_closes_it() {
        let start = Instant::now();
        let mut breaker = open(start);
        breaker.succeeded();
        assert_eq!(breaker.admit(start), Ok(Pass::Ordinary));
    }

    #[test]
    fn an_abandoned_or_timed_out_probe_admits_the_next() {
        let start = Instant::now();
        let mut breaker = open(start);
        let rested = start + 1_000 * MS;
        assert_eq!(breaker.admit(rested), Ok(Pass::Probe));
        breaker.abandoned(rested, Pass::Probe);
        assert_eq!(breaker.admit(rested), Ok(Pass::Probe));
        assert_eq!(
            breaker.admit(rested + LIMITS.probe_patience),
            Ok(Pass::Probe),
            "a probe without a result times out"
        );
    }
}

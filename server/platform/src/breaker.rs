//! A circuit breaker: fails calls at once while a peer does not answer, and probes until it answers again.
//!
//! Closed: all calls pass. Open: every call fails at once. Half-open: one call at a time probes, the others fail at once.
//! Each Redis process and each payment gateway has its own breaker with the limits of its kind: when one shard of a
//! Cluster is down, the shows of the other shards continue.
//!
//! Pure: time and randomness are arguments.

use std::time::{Duration, Instant};

/// The thresholds and periods of a breaker.
#[derive(Debug)]
pub struct BreakerLimits {
    /// Number of consecutive failures that open the breaker.
    pub failures_to_open: u32,
    /// Maximum time between two consecutive failures; a later one starts the count again.
    pub window: Duration,
    /// The first open period, milliseconds; doubles with every failed probe.
    pub first_open_ms: u64,
    /// The longest open period, milliseconds.
    pub max_open_ms: u64,
    /// Timeout of a probe; after it another call is admitted as a probe.
    pub probe_timeout: Duration,
}

#[derive(Debug)]
enum BreakerState {
    Closed { failures: u32, last: Option<Instant> },
    Open { until: Instant, openings: u32 },
    Probing { since: Instant, openings: u32 },
}

/// The kind of an admitted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// A call through a closed breaker.
    Ordinary,
    /// The one call that a half-open breaker admits: its result closes or opens the breaker.
    Probe,
}

/// The breaker of one peer: a process or a service.
#[derive(Debug)]
pub struct Breaker {
    limits: &'static BreakerLimits,
    state: BreakerState,
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub const fn new(limits: &'static BreakerLimits) -> Self {
        Self { limits, state: BreakerState::Closed { failures: 0, last: None } }
    }

    /// Admits a call.
    ///
    /// # Errors
    /// The time until the next probe, while the breaker is open.
    pub fn admit(&mut self, now: Instant) -> Result<Pass, Duration> {
        if let BreakerState::Closed { .. } = self.state {
            return Ok(Pass::Ordinary);
        }
        let wait = self.time_until_probe(now);
        if wait > Duration::ZERO {
            return Err(wait);
        }
        if let BreakerState::Open { openings, .. } | BreakerState::Probing { openings, .. } = self.state {
            self.state = BreakerState::Probing { since: now, openings };
        }
        Ok(Pass::Probe)
    }

    /// Time until the next probe; zero when a probe or every call is admitted.
    #[must_use]
    pub fn time_until_probe(&self, now: Instant) -> Duration {
        match self.state {
            BreakerState::Closed { .. } => Duration::ZERO,
            BreakerState::Open { until, .. } => until.saturating_duration_since(now),
            BreakerState::Probing { since, .. } => (since + self.limits.probe_timeout).saturating_duration_since(now),
        }
    }

    /// Records an answer: the process is up, also if the call was admitted before the breaker opened.
    pub fn succeeded(&mut self) {
        self.state = BreakerState::Closed { failures: 0, last: None };
    }

    /// Records a call without an answer; true when it opened the breaker. `draw` draws a number from `0..=limit`.
    pub fn failed(&mut self, now: Instant, pass: Pass, draw: impl FnOnce(u64) -> u64) -> bool {
        match (&mut self.state, pass) {
            (BreakerState::Closed { failures, last }, _) => {
                let in_a_row = last.is_some_and(|last| now.saturating_duration_since(last) <= self.limits.window);
                *failures = if in_a_row { *failures + 1 } else { 1 };
                *last = Some(now);
                let enough = *failures >= self.limits.failures_to_open;
                if enough {
                    self.open(now, 0, draw);
                }
                enough
            }
            (BreakerState::Probing { openings, .. }, Pass::Probe) => {
                let openings = openings.saturating_add(1);
                self.open(now, openings, draw);
                false
            }
            // Admitted before the breaker opened: no new information.
            (BreakerState::Open { .. } | BreakerState::Probing { .. }, _) => false,
        }
    }

    /// Records a cancelled probe: the next call may be a probe.
    pub fn abandoned(&mut self, now: Instant, pass: Pass) {
        if let (BreakerState::Probing { openings, .. }, Pass::Probe) = (&self.state, pass) {
            self.state = BreakerState::Open { until: now, openings: *openings };
        }
    }

    /// True while calls are rejected.
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, BreakerState::Closed { .. })
    }

    /// Opens the breaker for half to all of its period, at random, so that replicas do not probe at the same time.
    fn open(&mut self, now: Instant, openings: u32, draw: impl FnOnce(u64) -> u64) {
        let whole = self.limits.first_open_ms.saturating_mul(1 << openings.min(16)).min(self.limits.max_open_ms);
        let until = now + Duration::from_millis(whole / 2 + draw(whole / 2));
        self.state = BreakerState::Open { until, openings };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    static LIMITS: BreakerLimits = BreakerLimits {
        failures_to_open: 5,
        window: Duration::from_secs(10),
        first_open_ms: 1_000,
        max_open_ms: 10_000,
        probe_timeout: Duration::from_secs(5),
    };

    fn longest(limit: u64) -> u64 {
        limit
    }

    fn shortest(_: u64) -> u64 {
        0
    }

    /// A breaker that opened at `now` for one second.
    fn open(now: Instant) -> Breaker {
        let mut breaker = Breaker::new(&LIMITS);
        for failure in 1..=LIMITS.failures_to_open {
            assert_eq!(breaker.admit(now), Ok(Pass::Ordinary));
            assert_eq!(breaker.failed(now, Pass::Ordinary, longest), failure == LIMITS.failures_to_open);
        }
        breaker
    }

    #[test]
    fn consecutive_failures_open_the_breaker_and_calls_fail_at_once() {
        let start = Instant::now();
        let mut breaker = open(start);
        assert!(breaker.is_open());
        assert_eq!(breaker.admit(start), Err(1_000 * MS));
        assert_eq!(breaker.admit(start + 999 * MS), Err(MS));
    }

    #[test]
    fn a_success_resets_the_failure_count() {
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
    fn failures_outside_the_window_do_not_add_up() {
        let mut now = Instant::now();
        let mut breaker = Breaker::new(&LIMITS);
        for _ in 0..10 * LIMITS.failures_to_open {
            assert!(!breaker.failed(now, Pass::Ordinary, longest));
            now += LIMITS.window + MS;
        }
        assert!(!breaker.is_open());
    }

    #[test]
    fn after_the_open_period_one_call_probes_and_the_others_fail() {
        let start = Instant::now();
        let mut breaker = open(start);
        let probe_at = start + 1_000 * MS;
        assert_eq!(breaker.admit(probe_at), Ok(Pass::Probe));
        assert!(breaker.admit(probe_at).is_err());
        breaker.succeeded();
        assert_eq!(breaker.admit(probe_at), Ok(Pass::Ordinary));
    }

    #[test]
    fn every_failed_probe_doubles_the_open_period_up_to_the_maximum() {
        let mut now = Instant::now();
        let mut breaker = open(now);
        for period in [1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
            assert_eq!(breaker.admit(now), Err(period * MS));
            now += period * MS;
            assert_eq!(breaker.admit(now), Ok(Pass::Probe));
            breaker.failed(now, Pass::Probe, longest);
        }
    }

    #[test]
    fn the_shortest_open_period_is_half_of_the_limit() {
        let now = Instant::now();
        let mut breaker = open(now);
        breaker.admit(now + 1_000 * MS).expect("it probes");
        breaker.failed(now, Pass::Probe, shortest);
        assert_eq!(breaker.admit(now), Err(1_000 * MS));
    }

    #[test]
    fn a_late_failure_of_an_ordinary_call_neither_prolongs_the_open_period_nor_ends_a_probe() {
        let start = Instant::now();
        let mut breaker = open(start);
        breaker.failed(start + 500 * MS, Pass::Ordinary, longest);
        assert_eq!(breaker.admit(start + 500 * MS), Err(500 * MS));
        let probe_at = start + 1_000 * MS;
        assert_eq!(breaker.admit(probe_at), Ok(Pass::Probe));
        breaker.failed(probe_at, Pass::Ordinary, longest);
        assert_eq!(breaker.admit(probe_at), Err(LIMITS.probe_timeout));
    }

    #[test]
    fn a_late_answer_to_an_ordinary_call_closes_the_breaker() {
        let start = Instant::now();
        let mut breaker = open(start);
        breaker.succeeded();
        assert_eq!(breaker.admit(start), Ok(Pass::Ordinary));
    }

    #[test]
    fn an_abandoned_or_timed_out_probe_admits_the_next() {
        let start = Instant::now();
        let mut breaker = open(start);
        let probe_at = start + 1_000 * MS;
        assert_eq!(breaker.admit(probe_at), Ok(Pass::Probe));
        breaker.abandoned(probe_at, Pass::Probe);
        assert_eq!(breaker.admit(probe_at), Ok(Pass::Probe));
        assert_eq!(
            breaker.admit(probe_at + LIMITS.probe_timeout),
            Ok(Pass::Probe),
            "a probe without a result times out"
        );
    }
}

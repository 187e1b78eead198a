//! One server's share of a token bucket that limits tries and that all servers share.
//!
//! The bucket is stored centrally. Asking it at every try would cost a round trip per try. A server therefore grants a
//! lot (a sixth of the bucket) locally and then reports it. The answer says how long the bucket stays empty, if it is.
//! Occasional tries cost no round trip; persistent tries cost one per lot. The price: each server may grant up to one
//! lot more than the bucket holds. While the shared bucket is unavailable, each server limits by its own count.
//!
//! The arithmetic is the generic cell rate algorithm (ITU-T I.371, annex A): the state of a bucket is one instant, at
//! which it will be full again.

use crate::time::Timestamp;

/// Number of lots in a bucket.
const LOTS: u32 = 6;

/// Limit of a bucket: burst and refill rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Tries allowed at once; at least 1.
    pub burst: u32,
    /// Refill time of one try, milliseconds.
    pub each_ms: i64,
}

impl Allowance {
    /// Returns the limit for `count` tries a minute, all of which may be used at once; `None`, which means unlimited,
    /// for 0.
    #[must_use]
    pub const fn per_minute(count: u32) -> Option<Self> {
        if count == 0 {
            return None;
        }
        // Never 0: the highest setting is 60,000 a minute, and 1,000 a second is no limit.
        let each_ms = 60_000 / count as i64;
        Some(Self { burst: count, each_ms: if each_ms < 1 { 1 } else { each_ms } })
    }

    /// Tries that a server grants before it reports them.
    #[must_use]
    pub const fn lot(self) -> u32 {
        self.burst.div_ceil(LOTS)
    }

    /// Time to refill an empty bucket, milliseconds.
    #[must_use]
    pub const fn whole_ms(self) -> i64 {
        self.burst as i64 * self.each_ms
    }
}

/// Decision about a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryDecision {
    /// Allowed.
    Granted,
    /// Allowed; the caller must report this many tries to the shared bucket now.
    GrantedAndDue(u32),
    /// Refused for this long, milliseconds.
    Refused(i64),
}

/// One server's view of one shared bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedBucketMeter {
    /// Tries granted and not reported.
    unreported: u32,
    /// Time of the last try.
    last_try_ms: i64,
    /// Tries reported and not acknowledged yet.
    in_flight: u32,
    /// The bucket is empty until this time.
    empty_until: i64,
    /// Time at which the bucket would be full if only this server used it.
    local_full_at: i64,
}

impl SharedBucketMeter {
    /// Decides about a try.
    pub const fn take(&mut self, of: Allowance, now: Timestamp) -> TryDecision {
        if let Some(wait_ms) = self.wait_ms(now) {
            return TryDecision::Refused(wait_ms);
        }
        // The unreported tries have been refilled since: they need no report.
        if self.has_refilled(of, now) {
            self.unreported = 0;
        }
        self.last_try_ms = now.0;
        // Acknowledgements are late: grant no more than the bucket holds.
        if self.unreported + self.in_flight >= of.burst {
            return TryDecision::Refused(of.each_ms);
        }
        self.unreported += 1;
        if self.unreported < of.lot() || self.in_flight > 0 {
            return TryDecision::Granted;
        }
        self.in_flight = self.unreported;
        self.unreported = 0;
        TryDecision::GrantedAndDue(self.in_flight)
    }

    /// Records the answer of the shared bucket: it is empty for `empty_ms`, or has tries left if that is 0 or less.
    /// `empty_until` is then 0, not `now`: a concurrent try may have read the clock slightly earlier.
    pub const fn record_answer(&mut self, empty_ms: i64, now: Timestamp) {
        self.in_flight = 0;
        self.empty_until = if empty_ms > 0 { now.0 + empty_ms } else { 0 };
    }

    /// Records that the shared bucket was unavailable. This server's own count then decides.
    pub const fn record_unavailable(&mut self, of: Allowance, now: Timestamp) {
        let from = if self.local_full_at > now.0 { self.local_full_at } else { now.0 };
        self.local_full_at = from + self.in_flight as i64 * of.each_ms;
        self.record_answer(self.local_full_at - now.0 - of.whole_ms(), now);
    }

    /// True if the meter can be dropped without losing information.
    #[must_use]
    pub const fn is_idle(&self, of: Allowance, now: Timestamp) -> bool {
        self.in_flight == 0 && self.has_refilled(of, now) && self.empty_until <= now.0 && self.local_full_at <= now.0
    }

    /// Remaining time for which the bucket is known to be empty, milliseconds; `None` if it may have tries left.
    #[must_use]
    pub const fn wait_ms(&self, now: Timestamp) -> Option<i64> {
        if self.empty_until > now.0 { Some(self.empty_until - now.0) } else { None }
    }

    /// True if at least the unreported tries have been refilled. They exceed a lot if an answer was slow.
    const fn has_refilled(&self, of: Allowance, now: Timestamp) -> bool {
        let back = if self.unreported > of.lot() { self.unreported } else { of.lot() };
        now.0 - self.last_try_ms >= back as i64 * of.each_ms
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Its lot is 2.
    const OF: Allowance = Allowance { burst: 12, each_ms: 1_000 };
    const START: Timestamp = Timestamp(1_000_000);

    /// The shared bucket, as implemented in `server/admission/src/fairness/lua/spend.lua`.
    #[derive(Default)]
    struct Shared(i64);

    impl Shared {
        fn spend(&mut self, of: Allowance, count: u32, now: Timestamp) -> i64 {
            let full_at = self.0.max(now.0) + i64::from(count) * of.each_ms;
            self.0 = full_at.min(now.0 + 2 * of.whole_ms());
            (self.0 - now.0 - of.whole_ms()).max(0)
        }
    }

    #[test]
    fn per_minute_limit_refills_in_a_minute() {
        let of = Allowance::per_minute(60).expect("a limit");
        assert_eq!((of, of.lot(), of.whole_ms()), (Allowance { burst: 60, each_ms: 1_000 }, 10, 60_000));
        assert_eq!(Allowance::per_minute(0), None);
        assert_eq!(Allowance::per_minute(u32::MAX).map(|of| of.each_ms), Some(1));
        assert_eq!(Allowance::per_minute(1).map(Allowance::lot), Some(1));
    }

    #[test]
    fn full_lot_is_reported_and_occasional_tries_are_not() {
        let mut quick = SharedBucketMeter::default();
        assert_eq!(
            [quick.take(OF, START), quick.take(OF, START)],
            [TryDecision::Granted, TryDecision::GrantedAndDue(2)]
        );
        let mut slow = SharedBucketMeter::default();
        for times in 0..100 {
            assert_eq!(slow.take(OF, START.plus_ms(2_000 * times)), TryDecision::Granted, "{times}");
        }
    }

    #[test]
    fn empty_bucket_refuses_locally_until_it_refills() {
        let mut meter = SharedBucketMeter::default();
        meter.take(OF, START);
        assert_eq!(meter.take(OF, START), TryDecision::GrantedAndDue(2));
        meter.record_answer(3_000, START);
        assert_eq!(meter.take(OF, START.plus_ms(1_000)), TryDecision::Refused(2_000));
        assert!(!meter.is_idle(OF, START.plus_ms(2_999)));
        assert!(meter.is_idle(OF, START.plus_ms(3_000)));
        assert_eq!(meter.take(OF, START.plus_ms(3_000)), TryDecision::Granted);
    }

    #[test]
    fn try_with_a_clock_reading_before_the_answer_is_granted() {
        let mut meter = SharedBucketMeter::default();
        meter.take(OF, START);
        assert_eq!(meter.take(OF, START), TryDecision::GrantedAndDue(2));
        meter.record_answer(0, START.plus_ms(5));
        assert_eq!(meter.wait_ms(START), None);
        assert_eq!(meter.take(OF, START), TryDecision::Granted);
        assert_eq!(meter.take(OF, START), TryDecision::GrantedAndDue(2));
        meter.record_unavailable(OF, START.plus_ms(5));
        assert_eq!(meter.take(OF, START), TryDecision::Granted);
    }

    #[test]
    fn without_answers_grants_stop_at_the_burst() {
        let mut meter = SharedBucketMeter::default();
        let granted = (0..50).filter(|_| !matches!(meter.take(OF, START), TryDecision::Refused(_))).count();
        assert_eq!(granted, 12);
        assert!(!meter.is_idle(OF, START.plus_ms(3_600_000)), "an answer is pending");
    }

    #[test]
    fn unavailable_bucket_falls_back_to_the_local_count() {
        let mut meter = SharedBucketMeter::default();
        let mut granted = 0;
        let wait = loop {
            match meter.take(OF, START) {
                TryDecision::Refused(wait) => break wait,
                TryDecision::GrantedAndDue(_) => meter.record_unavailable(OF, START),
                TryDecision::Granted => {}
            }
            granted += 1;
        };
        assert_eq!((granted, wait), (14, 2_000), "the burst and a lot");
    }

    #[test]
    fn tries_granted_during_a_slow_answer_refill_at_the_normal_rate() {
        let mut meter = SharedBucketMeter::default();
        let granted = |meter: &mut SharedBucketMeter, now| {
            (0..50).filter(|_| !matches!(meter.take(OF, now), TryDecision::Refused(_))).count()
        };
        assert_eq!(granted(&mut meter, START), 12);
        let later = START.plus_ms(2_000);
        assert_eq!(granted(&mut meter, later), 0, "one lot's refill time refills one lot");
        meter.record_answer(0, later);
        assert!(!meter.is_idle(OF, later.plus_ms(9_999)));
        assert!(meter.is_idle(OF, later.plus_ms(10_000)));
        assert_eq!(meter.take(OF, later), TryDecision::GrantedAndDue(11), "and all of it is reported");
    }

    proptest! {
        // Checks the bound that `docs/operating.md` states for tries that arrive faster than the answers.
        #[test]
        fn late_answers_grant_at_most_three_buckets_and_twice_the_refill(
            tries in proptest::collection::vec(
                (0..3_usize, prop_oneof![12 => Just(0_i64), 1 => 0..6_000_i64], 0..3_000_i64), 1..900,
            ),
        ) {
            let (mut shared, mut meters) = (Shared::default(), [SharedBucketMeter::default(); 3]);
            let (mut now, mut granted) = (START, [0_i64; 3]);
            let mut coming: [Option<(Timestamp, i64)>; 3] = [None; 3];
            for (server, pause, late) in tries {
                now = now.plus_ms(pause);
                for (meter, answer) in meters.iter_mut().zip(&mut coming) {
                    if let Some((at, empty)) = answer.take_if(|(at, _)| *at <= now) {
                        meter.record_answer(empty, at);
                    }
                }
                match meters[server].take(OF, now) {
                    TryDecision::Refused(wait) => prop_assert!(wait > 0),
                    TryDecision::Granted => granted[server] += 1,
                    TryDecision::GrantedAndDue(count) => {
                        granted[server] += 1;
                        coming[server] = Some((now.plus_ms(late), shared.spend(OF, count, now)));
                    }
                }
            }
            let most = 3 * i64::from(OF.burst) + 2 * (now.since(START) / OF.each_ms + 1);
            prop_assert!(granted.iter().all(|granted| *granted <= most), "{granted:?} of {most}");
        }

        #[test]
        fn servers_together_grant_at_most_bucket_refill_and_a_lot_each(
            tries in proptest::collection::vec((0..3_usize, 0..400_i64), 1..400),
        ) {
            let (mut shared, mut meters) = (Shared::default(), [SharedBucketMeter::default(); 3]);
            let (mut now, mut granted) = (START, 0_i64);
            for (server, pause) in tries {
                now = now.plus_ms(pause);
                match meters[server].take(OF, now) {
                    TryDecision::Refused(wait) => prop_assert!(wait > 0 && wait <= OF.whole_ms()),
                    TryDecision::Granted => granted += 1,
                    TryDecision::GrantedAndDue(lot) => {
                        granted += 1;
                        let empty = shared.spend(OF, lot, now);
                        meters[server].record_answer(empty, now);
                    }
                }
            }
            // Unreported tries are fewer than one lot per refill of a lot, at each server.
            let (passed, lot) = (now.since(START) / OF.each_ms + 1, i64::from(OF.lot()));
            let most = i64::from(OF.burst) + passed + 3 * (passed / lot + 1) + 2 * 3 * lot;
            prop_assert!(granted <= most, "{granted} of {most}");
        }
    }
}

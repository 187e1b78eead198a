//! A bucket of tries that fills by itself, as one of several servers sees it.
//!
//! The bucket itself is shared. To ask it at every try would cost every try a journey, so a server gives out a lot by
//! itself and only then tells how many those were; the answer says for how long the bucket is empty, if it is. So most
//! people, who try a few times, cost nothing, and whoever tries on and on is told of once a lot. The price: with so many
//! servers somebody may try as many lots more than the bucket holds. While the shared bucket is unavailable, each
//! server goes by what it gave out itself.
//!
//! The arithmetic is the generic cell rate algorithm's (ITU-T I.371, annex A): a bucket is one instant, at which it will
//! be full again.

use crate::time::Timestamp;

/// A lot is this part of what a bucket holds.
const LOTS: u32 = 6;

/// What one may do in a row, and how soon again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// So many at once; at least one.
    pub burst: u32,
    /// Each is back after this long, milliseconds.
    pub each_ms: i64,
}

impl Allowance {
    /// So many a minute, a minute's worth at once; `None` for none: then nobody counts.
    #[must_use]
    pub const fn per_minute(count: u32) -> Option<Self> {
        if count == 0 {
            return None;
        }
        // Never zero: the highest setting is 60,000 a minute, and a thousand a second is no limit.
        let each_ms = 60_000 / count as i64;
        Some(Self { burst: count, each_ms: if each_ms < 1 { 1 } else { each_ms } })
    }

    /// What a server gives out before it tells.
    #[must_use]
    pub const fn lot(self) -> u32 {
        self.burst.div_ceil(LOTS)
    }

    /// How long all of it takes to come back, milliseconds.
    #[must_use]
    pub const fn whole_ms(self) -> i64 {
        self.burst as i64 * self.each_ms
    }
}

/// What becomes of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Try {
    /// Go on.
    Granted,
    /// Go on; and so many were given out, which the shared bucket is to be told now.
    GrantedAndDue(u32),
    /// Not for so long, milliseconds.
    Refused(i64),
}

/// What one server knows of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Given out, and not told.
    spent: u32,
    /// When somebody tried last.
    as_of: i64,
    /// Told, and not answered yet.
    under_way: u32,
    /// The bucket has nothing until then.
    empty_until: i64,
    /// When the bucket would be full again if this server had the only one.
    own_full_at: i64,
}

impl Meter {
    /// Somebody tries.
    pub const fn take(&mut self, of: Allowance, now: Timestamp) -> Try {
        if let Some(wait_ms) = self.wait_ms(now) {
            return Try::Refused(wait_ms);
        }
        // All of it has come back since: nobody needs to hear of it.
        if self.has_rested(of, now) {
            self.spent = 0;
        }
        self.as_of = now.0;
        // Nobody answers in time: more than the bucket holds is not given out on credit.
        if self.spent + self.under_way >= of.burst {
            return Try::Refused(of.each_ms);
        }
        self.spent += 1;
        if self.spent < of.lot() || self.under_way > 0 {
            return Try::Granted;
        }
        self.under_way = self.spent;
        self.spent = 0;
        Try::GrantedAndDue(self.under_way)
    }

    /// The shared bucket was told, and is empty for so long; zero or less: it is not. Not even until now: somebody who
    /// tries beside this may have read the clock a moment before.
    pub const fn told(&mut self, empty_ms: i64, now: Timestamp) {
        self.under_way = 0;
        self.empty_until = if empty_ms > 0 { now.0 + empty_ms } else { 0 };
    }

    /// The bucket was unavailable: then this server's own count decides.
    pub const fn told_nobody(&mut self, of: Allowance, now: Timestamp) {
        let from = if self.own_full_at > now.0 { self.own_full_at } else { now.0 };
        self.own_full_at = from + self.under_way as i64 * of.each_ms;
        self.told(self.own_full_at - now.0 - of.whole_ms(), now);
    }

    /// Whether nothing would be lost with it.
    #[must_use]
    pub const fn is_idle(&self, of: Allowance, now: Timestamp) -> bool {
        self.under_way == 0 && self.has_rested(of, now) && self.empty_until <= now.0 && self.own_full_at <= now.0
    }

    /// For how long the bucket has nothing, as far as this server was told, milliseconds; `None`: it may have some.
    #[must_use]
    pub const fn wait_ms(&self, now: Timestamp) -> Option<i64> {
        if self.empty_until > now.0 { Some(self.empty_until - now.0) } else { None }
    }

    /// Whether as much has come back as was given out and not told: more than a lot, where an answer was long in coming.
    const fn has_rested(&self, of: Allowance, now: Timestamp) -> bool {
        let back = if self.spent > of.lot() { self.spent } else { of.lot() };
        now.0 - self.as_of >= back as i64 * of.each_ms
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A lot is two.
    const OF: Allowance = Allowance { burst: 12, each_ms: 1_000 };
    const START: Timestamp = Timestamp(1_000_000);

    /// The shared bucket: `server/src/fairness/lua/spend.lua`.
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
    fn a_minutes_worth_comes_back_in_a_minute() {
        let of = Allowance::per_minute(60).expect("a limit");
        assert_eq!((of, of.lot(), of.whole_ms()), (Allowance { burst: 60, each_ms: 1_000 }, 10, 60_000));
        assert_eq!(Allowance::per_minute(0), None);
        assert_eq!(Allowance::per_minute(u32::MAX).map(|of| of.each_ms), Some(1));
        assert_eq!(Allowance::per_minute(1).map(Allowance::lot), Some(1));
    }

    #[test]
    fn a_lot_is_told_of_and_whoever_tries_seldom_never_is() {
        let mut quick = Meter::default();
        assert_eq!([quick.take(OF, START), quick.take(OF, START)], [Try::Granted, Try::GrantedAndDue(2)]);
        let mut slow = Meter::default();
        for times in 0..100 {
            assert_eq!(slow.take(OF, START.plus_ms(2_000 * times)), Try::Granted, "{times}");
        }
    }

    #[test]
    fn an_empty_bucket_refuses_until_something_is_in_it_and_asks_nobody() {
        let mut meter = Meter::default();
        meter.take(OF, START);
        assert_eq!(meter.take(OF, START), Try::GrantedAndDue(2));
        meter.told(3_000, START);
        assert_eq!(meter.take(OF, START.plus_ms(1_000)), Try::Refused(2_000));
        assert!(!meter.is_idle(OF, START.plus_ms(2_999)));
        assert!(meter.is_idle(OF, START.plus_ms(3_000)));
        assert_eq!(meter.take(OF, START.plus_ms(3_000)), Try::Granted);
    }

    #[test]
    fn whoever_read_the_clock_before_the_answer_came_is_not_refused_for_it() {
        let mut meter = Meter::default();
        meter.take(OF, START);
        assert_eq!(meter.take(OF, START), Try::GrantedAndDue(2));
        meter.told(0, START.plus_ms(5));
        assert_eq!(meter.wait_ms(START), None);
        assert_eq!(meter.take(OF, START), Try::Granted);
        assert_eq!(meter.take(OF, START), Try::GrantedAndDue(2));
        meter.told_nobody(OF, START.plus_ms(5));
        assert_eq!(meter.take(OF, START), Try::Granted);
    }

    #[test]
    fn while_nobody_answers_no_more_is_given_out_than_the_bucket_holds() {
        let mut meter = Meter::default();
        let granted = (0..50).filter(|_| !matches!(meter.take(OF, START), Try::Refused(_))).count();
        assert_eq!(granted, 12);
        assert!(!meter.is_idle(OF, START.plus_ms(3_600_000)), "an answer is to come");
    }

    #[test]
    fn without_the_shared_bucket_a_server_goes_by_its_own_count() {
        let mut meter = Meter::default();
        let mut granted = 0;
        let wait = loop {
            match meter.take(OF, START) {
                Try::Refused(wait) => break wait,
                Try::GrantedAndDue(_) => meter.told_nobody(OF, START),
                Try::Granted => {}
            }
            granted += 1;
        };
        assert_eq!((granted, wait), (14, 2_000), "what it holds, and a lot");
    }

    #[test]
    fn what_was_given_out_while_an_answer_was_to_come_takes_as_long_to_come_back_as_it_is() {
        let mut meter = Meter::default();
        let granted =
            |meter: &mut Meter, now| (0..50).filter(|_| !matches!(meter.take(OF, now), Try::Refused(_))).count();
        assert_eq!(granted(&mut meter, START), 12);
        let later = START.plus_ms(2_000);
        assert_eq!(granted(&mut meter, later), 0, "a lot's time brings no more than a lot back");
        meter.told(0, later);
        assert!(!meter.is_idle(OF, later.plus_ms(9_999)));
        assert!(meter.is_idle(OF, later.plus_ms(10_000)));
        assert_eq!(meter.take(OF, later), Try::GrantedAndDue(11), "and all of it is told");
    }

    proptest! {
        // What docs/operating.md says of whoever is quicker than the answers.
        #[test]
        fn a_server_whose_answers_are_late_gives_out_three_buckets_and_twice_what_came_back_at_most(
            tries in proptest::collection::vec(
                (0..3_usize, prop_oneof![12 => Just(0_i64), 1 => 0..6_000_i64], 0..3_000_i64), 1..900,
            ),
        ) {
            let (mut shared, mut meters) = (Shared::default(), [Meter::default(); 3]);
            let (mut now, mut granted) = (START, [0_i64; 3]);
            let mut coming: [Option<(Timestamp, i64)>; 3] = [None; 3];
            for (server, pause, late) in tries {
                now = now.plus_ms(pause);
                for (meter, answer) in meters.iter_mut().zip(&mut coming) {
                    if let Some((at, empty)) = answer.take_if(|(at, _)| *at <= now) {
                        meter.told(empty, at);
                    }
                }
                match meters[server].take(OF, now) {
                    Try::Refused(wait) => prop_assert!(wait > 0),
                    Try::Granted => granted[server] += 1,
                    Try::GrantedAndDue(count) => {
                        granted[server] += 1;
                        coming[server] = Some((now.plus_ms(late), shared.spend(OF, count, now)));
                    }
                }
            }
            let most = 3 * i64::from(OF.burst) + 2 * (now.since(START) / OF.each_ms + 1);
            prop_assert!(granted.iter().all(|granted| *granted <= most), "{granted:?} of {most}");
        }

        #[test]
        fn servers_together_give_out_what_the_bucket_holds_what_came_back_and_a_lot_each(
            tries in proptest::collection::vec((0..3_usize, 0..400_i64), 1..400),
        ) {
            let (mut shared, mut meters) = (Shared::default(), [Meter::default(); 3]);
            let (mut now, mut granted) = (START, 0_i64);
            for (server, pause) in tries {
                now = now.plus_ms(pause);
                match meters[server].take(OF, now) {
                    Try::Refused(wait) => prop_assert!(wait > 0 && wait <= OF.whole_ms()),
                    Try::Granted => granted += 1,
                    Try::GrantedAndDue(lot) => {
                        granted += 1;
                        let empty = shared.spend(OF, lot, now);
                        meters[server].told(empty, now);
                    }
                }
            }
            // What nobody hears of is less than one for each time a lot comes back, at each server.
            let (passed, lot) = (now.since(START) / OF.each_ms + 1, i64::from(OF.lot()));
            let most = i64::from(OF.burst) + passed + 3 * (passed / lot + 1) + 2 * 3 * lot;
            prop_assert!(granted <= most, "{granted} of {most}");
        }
    }
}

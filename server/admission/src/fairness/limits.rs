//! Rate limits of tries for seats, changes of holds and checkouts: buckets that all replicas share, spent in lots
//! (`domain::fairness::Meter`).
//!
//! Nobody waits for Redis here. A try is counted in memory; each replica tells the shared bucket once a lot, in the
//! background, and is told how long the bucket is empty. While Redis is away each replica goes by its own count, as it
//! does for tries to sign in; no seats can be taken then anyhow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::fairness::{Allowance, Meter, Try};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use redis::Value;
use tokio::sync::Semaphore;

use super::Trying;
use crate::AdmissionSettings;
use crate::AdmissionState;
use http::problem::Limit;
use http::{Code, Problem};
use platform::ids;
use platform::redis_link::LuaScript;
use platform::telemetry::{HoldLimit, hold_limited};

/// The shared bucket is waited for so long, then this replica goes by its own count.
const DEADLINE: Duration = Duration::from_millis(250);
/// Buckets told at a time; whoever comes when all are on their way is counted by this replica alone.
const MAX_TOLD: usize = 64;
/// Meters kept of each limit at most. Those that count nothing are evicted first; where there is none, all new callers share
/// one meter until there is, and one bucket, an address's.
const MAX_METERS: usize = 100_000;
/// The meter of callers without room for one of their own. No visitor and no address has this name.
const SHARED: &str = "";
/// Meters are looked through for those at most once in so long, milliseconds.
const LOOK_EVERY_MS: i64 = SECOND_MS;
/// Nobody is sent away for longer because others are, milliseconds.
const LONGEST_MS: i64 = MINUTE_MS;
/// Digits of a bucket's name: 128 bits keep people apart.
const NAME_DIGITS: usize = 32;

/// New visitors of an address for each of its tries: the meter of one that is answered with a puzzle may be forgotten before
/// the solution comes.
const NEWCOMERS_PER_TRY: u32 = 2;
/// Changes of holds for each try for seats: adding a seat is both, letting one go is a change alone.
const CHANGES_PER_TRY: u32 = 4;

/// The kind of act that is counted, each in separate buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Tries for seats.
    Tries,
    /// Changes and extensions of holds: each may be remembered by the lock store.
    Changes,
    /// Checkouts: as many as tries, for each needs a hold.
    Checkouts,
}

/// All limits.
pub(super) struct Limits {
    tries: Pair,
    changes: Pair,
    checkouts: Pair,
    prefix: String,
    spend: LuaScript,
    telling: Arc<Semaphore>,
}

/// The limit of a visitor and that of an address; `None` where there is none.
struct Pair {
    visitor: Option<Arc<Counted>>,
    address: Option<Arc<Counted>>,
    /// Visitors of an address that have no meter yet. Counted by this replica alone, whose memory they take.
    newcomers: Option<Counted>,
}

/// A limit, and what this replica knows of its buckets.
struct Counted {
    limit: HoldLimit,
    of: Allowance,
    /// The bucket of all callers without a meter of their own.
    shared: Allowance,
    meters: Mutex<Meters>,
}

/// Somebody who is not to try now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    limit: HoldLimit,
    of: Allowance,
    wait_ms: i64,
}

#[derive(Default)]
struct Meters {
    by_name: HashMap<String, Meter>,
    looked_at: i64,
}

impl Limits {
    pub(super) fn new(settings: &AdmissionSettings, redis_prefix: &str) -> Self {
        let pair = |times: u32, visitor, address| {
            let visitor = (visitor, settings.holds_per_visitor_min.saturating_mul(times));
            Pair::per_minute(visitor, (address, settings.holds_per_address_min.saturating_mul(times)))
        };
        Self {
            tries: pair(1, HoldLimit::Visitor, HoldLimit::Address),
            changes: pair(CHANGES_PER_TRY, HoldLimit::ChangesOfVisitor, HoldLimit::ChangesOfAddress),
            checkouts: pair(1, HoldLimit::CheckoutsOfVisitor, HoldLimit::CheckoutsOfAddress),
            prefix: redis_prefix.to_owned(),
            spend: LuaScript::new(include_str!("lua/spend.lua")),
            telling: Arc::new(Semaphore::new(MAX_TOLD)),
        }
    }

    const fn of(&self, what: Counts) -> &Pair {
        match what {
            Counts::Tries => &self.tries,
            Counts::Changes => &self.changes,
            Counts::Checkouts => &self.checkouts,
        }
    }

    /// Counts an act for the visitor, if their address [admits](Pair::admit) it.
    pub(super) fn of_visitor(
        &self,
        state: &AdmissionState,
        what: Counts,
        trying: &Trying<'_>,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let (pair, person) = (self.of(what), trying.person());
        pair.admit(&person, &trying.address.0, now)?;
        self.take(state, pair.visitor.as_ref(), &person, now)
    }

    /// Counts an act for the address it comes from.
    pub(super) fn of_address(
        &self,
        state: &AdmissionState,
        what: Counts,
        trying: &Trying<'_>,
        now: Timestamp,
    ) -> Result<(), Refused> {
        self.take(state, self.of(what).address.as_ref(), &trying.address.0, now)
    }

    fn take(
        &self,
        state: &AdmissionState,
        counted: Option<&Arc<Counted>>,
        whose: &str,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let Some(counted) = counted else { return Ok(()) };
        match counted.take(whose, now) {
            Try::Granted => Ok(()),
            Try::GrantedAndDue(lot) => {
                self.tell(state, counted, whose, lot);
                Ok(())
            }
            Try::Refused(wait_ms) => Err(counted.refused(wait_ms)),
        }
    }

    /// Forgets meters that nothing is lost with: an address is kept no longer than it matters.
    pub(super) fn forget_idle(&self, now: Timestamp) {
        for pair in [&self.tries, &self.changes, &self.checkouts] {
            let shared = [&pair.visitor, &pair.address].into_iter().filter_map(Option::as_deref);
            shared.chain(&pair.newcomers).for_each(|counted| counted.forget_idle(now));
        }
    }

    /// Tells the shared bucket of a lot, beside everything else.
    fn tell(&self, state: &AdmissionState, counted: &Arc<Counted>, whose: &str, lot: u32) {
        let (counted, whose) = (Arc::clone(counted), counted.bucket_of(whose).to_owned());
        let Ok(turn) = Arc::clone(&self.telling).try_acquire_owned() else {
            counted.record_answer(&whose, None, state.clock.now());
            return;
        };
        let state = state.clone();
        state.clone().tasks.spawn(async move {
            let empty_ms = state.fairness.limits.spend(&state, &counted, &whose, lot).await;
            counted.record_answer(&whose, empty_ms, state.clock.now());
            drop(turn);
        });
    }

    /// For how long the bucket is empty now; `None` when nobody says.
    async fn spend(&self, state: &AdmissionState, counted: &Counted, whose: &str, lot: u32) -> Option<i64> {
        // A copy of Redis names nobody.
        let name = counted.limit.name();
        let mut digest = state.accounts.derived_secret(&format!("{name}\0{whose}"));
        digest.truncate(NAME_DIGITS);
        let key = format!("{}limit:{name}:{digest}", self.prefix);
        let mut call = self.spend.call(&[&key]);
        let of = counted.allowance(whose);
        call.arg(of.burst).arg(of.each_ms).arg(lot);
        match tokio::time::timeout(DEADLINE, state.redis.eval_once(&call)).await {
            Ok(Ok(answer)) => match answer.value {
                Value::Int(empty_ms) => return Some(empty_ms),
                other => tracing::error!(answer = ?other, "a rate-limit bucket for seats holds an invalid value"),
            },
            Ok(Err(cause)) => tracing::debug!(%cause, "tries for seats are counted by this replica alone for now"),
            Err(_) => tracing::debug!("tries for seats are counted by this replica alone: Redis takes too long"),
        }
        None
    }
}

impl Pair {
    /// Each with so many a minute.
    fn per_minute((visitor, visitors): (HoldLimit, u32), (address, addresses): (HoldLimit, u32)) -> Self {
        let of_visitor = Allowance::per_minute(visitors);
        let of_address = Allowance::per_minute(addresses);
        let of_newcomers = Allowance::per_minute(addresses.saturating_mul(NEWCOMERS_PER_TRY));
        // Visitors without a meter may come from anywhere: together they have as much as one address at least.
        let larger = |of: Allowance| of_address.filter(|other| other.burst > of.burst).unwrap_or(of);
        Self {
            visitor: of_visitor.map(|of| Arc::new(Counted::new(visitor, of, larger(of)))),
            address: of_address.map(|of| Arc::new(Counted::new(address, of, of))),
            newcomers: of_newcomers.map(|of| Counted::new(address, of, of)),
        }
    }

    /// Looks at the address before a visitor is counted: a program that comes as a new visitor each time would fill the table.
    /// Where the address has nothing left, no visitor is counted. One without a meter takes one from the address's
    /// newcomers first, also where its try is not counted for the address, as one that is answered with a puzzle is not.
    fn admit(&self, visitor: &str, address: &str, now: Timestamp) -> Result<(), Refused> {
        let Some(of_address) = &self.address else { return Ok(()) };
        if let Some(wait_ms) = of_address.wait_ms(address, now) {
            return Err(of_address.refused(wait_ms));
        }
        let is_known = self.visitor.as_ref().is_none_or(|counted| counted.has_meter(visitor));
        let Some(newcomers) = self.newcomers.as_ref().filter(|_| !is_known) else { return Ok(()) };
        match newcomers.take_here(address, now) {
            Some(wait_ms) => Err(of_address.refused(wait_ms)),
            None => Ok(()),
        }
    }
}

impl Counted {
    fn new(limit: HoldLimit, of: Allowance, shared: Allowance) -> Self {
        Self { limit, of, shared, meters: Mutex::default() }
    }

    /// The allowance of the meter of this name.
    fn allowance(&self, whose: &str) -> Allowance {
        if whose == SHARED { self.shared } else { self.of }
    }

    fn take(&self, whose: &str, now: Timestamp) -> Try {
        let mut meters = self.lock();
        if let Some(meter) = meters.by_name.get_mut(whose) {
            return meter.take(self.allowance(whose), now);
        }
        let has_room = meters.by_name.len() < MAX_METERS || meters.make_room(self, now);
        let whose = if has_room { whose } else { SHARED };
        meters.by_name.entry(whose.to_owned()).or_default().take(self.allowance(whose), now)
    }

    /// Takes one by this replica's own count; how long to wait where there is none, milliseconds.
    fn take_here(&self, whose: &str, now: Timestamp) -> Option<i64> {
        match self.take(whose, now) {
            Try::Granted => None,
            Try::GrantedAndDue(_) => {
                self.record_answer(self.bucket_of(whose), None, now);
                None
            }
            Try::Refused(wait_ms) => Some(wait_ms),
        }
    }

    /// The bucket that a lot is taken from: callers who share a meter share the bucket.
    fn bucket_of<'a>(&self, whose: &'a str) -> &'a str {
        if self.has_meter(whose) { whose } else { SHARED }
    }

    fn has_meter(&self, whose: &str) -> bool {
        self.lock().by_name.contains_key(whose)
    }

    fn record_answer(&self, whose: &str, empty_ms: Option<i64>, now: Timestamp) {
        // Nobody forgets a meter while its answer is to come.
        if let Some(meter) = self.lock().by_name.get_mut(whose) {
            match empty_ms {
                Some(empty_ms) => meter.told(empty_ms, now),
                None => meter.told_nobody(self.allowance(whose), now),
            }
        }
    }

    /// For how long nothing is left, if so; nobody is counted.
    fn wait_ms(&self, whose: &str, now: Timestamp) -> Option<i64> {
        self.lock().by_name.get(whose)?.wait_ms(now)
    }

    const fn refused(&self, wait_ms: i64) -> Refused {
        Refused { limit: self.limit, of: self.of, wait_ms }
    }

    fn forget_idle(&self, now: Timestamp) {
        self.lock().forget_idle(self, now);
    }

    // Held for a few additions, never across an await.
    fn lock(&self) -> MutexGuard<'_, Meters> {
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refused {
    /// Says so, and counts it.
    pub(super) fn told(self) -> Problem {
        hold_limited(self.limit);
        let pause = Duration::from_millis(self.wait_ms.unsigned_abs() + ids::jitter(self.spread_ms()));
        let seconds = pause.as_millis().div_ceil(1_000).max(1);
        let detail = match self.limit {
            HoldLimit::Visitor => {
                format!("You have tried for seats very often in a short time. Please try again in {seconds} s.")
            }
            HoldLimit::Address => {
                format!("Very many tries for seats come from your network. Please try again in {seconds} s.")
            }
            HoldLimit::ChangesOfVisitor => {
                format!("You have changed your seats very often in a short time. Please try again in {seconds} s.")
            }
            HoldLimit::ChangesOfAddress => {
                format!("Very many changes of seats come from your network. Please try again in {seconds} s.")
            }
            HoldLimit::CheckoutsOfVisitor => {
                format!("You have checked out very often in a short time. Please try again in {seconds} s.")
            }
            HoldLimit::CheckoutsOfAddress => {
                format!("Very many checkouts come from your network. Please try again in {seconds} s.")
            }
        };
        let whole = Duration::from_millis(self.of.whole_ms().unsigned_abs());
        let limit = Limit { name: self.limit.name(), burst: self.of.burst, window_s: whole.as_secs().max(1) };
        Problem::new(Code::TooManyAttempts, detail).with_limit(limit).with_retry_after(pause)
    }

    /// Later by up to so much: all who come from one address are refused together, and would come back together. As wide
    /// as the wait itself, at least what a lot takes, and nobody is sent away for longer than [`LONGEST_MS`].
    fn spread_ms(&self) -> u64 {
        let lot_ms = i64::from(self.of.lot()) * self.of.each_ms;
        let spread = match self.limit {
            HoldLimit::Visitor | HoldLimit::ChangesOfVisitor | HoldLimit::CheckoutsOfVisitor => 0,
            HoldLimit::Address | HoldLimit::ChangesOfAddress | HoldLimit::CheckoutsOfAddress => {
                self.wait_ms.max(lot_ms).min(LONGEST_MS - self.wait_ms)
            }
        };
        spread.max(0).unsigned_abs()
    }
}

impl Meters {
    /// Forgets those nothing is lost with; whether there is room now.
    fn make_room(&mut self, counted: &Counted, now: Timestamp) -> bool {
        if now.0 - self.looked_at >= LOOK_EVERY_MS {
            self.looked_at = now.0;
            self.forget_idle(counted, now);
        }
        self.by_name.len() < MAX_METERS
    }

    fn forget_idle(&mut self, counted: &Counted, now: Timestamp) {
        self.by_name.retain(|name, meter| !meter.is_idle(counted.allowance(name), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> Counted {
        let of = Allowance { burst: 6, each_ms: 1_000 };
        Counted::new(HoldLimit::Visitor, of, of)
    }

    #[test]
    fn everybody_has_a_bucket_and_an_empty_one_is_nobody_elses() {
        let (counted, now) = (counted(), Timestamp(1_000_000));
        assert_eq!(counted.take("ann", now), Try::GrantedAndDue(1), "a lot is one");
        counted.record_answer("ann", Some(4_000), now);
        assert_eq!((counted.take("ann", now), counted.take("ben", now)), (Try::Refused(4_000), Try::GrantedAndDue(1)));
    }

    #[test]
    fn whoever_is_refused_is_told_which_limit_and_when_to_come_back() {
        let problem = counted().refused(3_200).told();
        assert_eq!(problem.code(), Code::TooManyAttempts);
        assert!(problem.detail().ends_with("in 4 s."), "{}", problem.detail());
        let limit = Limit { name: "hold-visitor", burst: 6, window_s: 6 };
        let told = Problem::new(Code::TooManyAttempts, "").with_limit(limit);
        let header = |problem: Problem| {
            axum::response::IntoResponse::into_response(problem).headers()["ratelimit-policy"].clone()
        };
        assert_eq!(header(problem), header(told));
    }

    #[test]
    fn all_of_one_address_are_not_told_to_come_back_at_once() {
        let of = Allowance::per_minute(1_200).expect("a limit");
        let spread = |limit, wait_ms| Refused { limit, of, wait_ms }.spread_ms();
        assert_eq!(spread(HoldLimit::Visitor, 20_000), 0);
        assert_eq!(spread(HoldLimit::Address, 50), 10_000, "what a lot takes");
        assert_eq!(spread(HoldLimit::Address, 20_000), 20_000);
        assert_eq!(spread(HoldLimit::Address, 50_000), 10_000);
        assert_eq!(spread(HoldLimit::Address, 90_000), 0);
    }

    #[test]
    fn what_is_looked_at_is_not_taken_and_what_is_idle_is_not_kept() {
        let (counted, now) = (counted(), Timestamp(1_000_000));
        assert_eq!((counted.wait_ms("ann", now), counted.lock().by_name.len()), (None, 0));
        counted.take("ann", now);
        counted.record_answer("ann", Some(4_000), now);
        assert_eq!(counted.wait_ms("ann", now.plus_ms(1_000)), Some(3_000));
        counted.forget_idle(now.plus_ms(3_999));
        assert_eq!(counted.lock().by_name.len(), 1);
        counted.forget_idle(now.plus_ms(4_000));
        assert_eq!(counted.lock().by_name.len(), 0);
    }

    /// Six tries a minute for a visitor, twelve for an address.
    fn pair() -> Pair {
        Pair::per_minute((HoldLimit::Visitor, 6), (HoldLimit::Address, 12))
    }

    #[test]
    fn meters_never_grow_beyond_their_limit_and_those_at_rest_make_room() {
        let (pair, now) = (pair(), Timestamp(1_000_000));
        let counted = pair.visitor.expect("a limit");
        for who in 0..MAX_METERS {
            counted.take(&who.to_string(), now);
            counted.record_answer(&who.to_string(), Some(0), now);
        }
        let kept = || counted.lock().by_name.len();
        // All new visitors share one bucket, as large as an address's; its lot is two.
        let late = |who: usize| counted.take(&format!("late {who}"), now);
        assert_eq!([late(0), late(1)], [Try::Granted, Try::GrantedAndDue(2)]);
        assert_eq!(counted.bucket_of("late 0"), SHARED);
        assert_eq!(counted.bucket_of("7"), "7");
        let granted = 2 + (2..100).filter(|who| !matches!(late(*who), Try::Refused(_))).count();
        assert_eq!(granted, 12, "what an address's bucket holds while no answer comes");
        assert_eq!(kept(), MAX_METERS + 1);
        counted.record_answer(SHARED, Some(0), now);
        assert_eq!(counted.take("late", now.plus_ms(120_000)), Try::GrantedAndDue(1));
        assert_eq!(kept(), 1);
    }

    #[test]
    fn new_visitors_of_one_address_are_refused_by_it_before_they_take_meters() {
        let (pair, now) = (pair(), Timestamp(1_000_000));
        let counted = pair.visitor.as_ref().expect("a limit");
        let tries = |who: &str, address: &str| {
            let admitted = pair.admit(who, address, now);
            admitted.map(|()| counted.take(who, now)).map_err(|refused| refused.limit)
        };
        assert_eq!(tries("ann", "flooded"), Ok(Try::GrantedAndDue(1)));
        let heard = (0..1_000).filter(|who| tries(&format!("cookie {who}"), "flooded").is_ok()).count();
        assert!((12..=36).contains(&heard), "{heard} new visitors, of whom a minute's worth is 24 and a lot 4");
        assert_eq!(counted.lock().by_name.len(), heard + 1);
        assert_eq!(tries("one more", "flooded"), Err(HoldLimit::Address));
        counted.record_answer("ann", Some(0), now);
        assert!(tries("ann", "flooded").is_ok(), "who has a meter is no newcomer");
        assert!(tries("ben", "another").is_ok());
    }

    #[test]
    fn an_address_without_limit_admits_all_its_visitors() {
        let pair = Pair::per_minute((HoldLimit::Visitor, 6), (HoldLimit::Address, 0));
        assert!((0..100).all(|who| pair.admit(&who.to_string(), "any", Timestamp(1_000_000)).is_ok()));
    }
}

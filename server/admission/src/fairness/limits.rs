//! Rate limits on attempts at seats, changes of holds and checkouts: token buckets that all replicas share, spent in
//! lots (`domain::fairness::SharedBucketMeter`).
//!
//! No request waits for Redis here. An attempt is counted in memory; each replica reports a lot to the shared bucket in
//! the background, and gets back for how long the bucket is empty. While Redis is unavailable each replica uses its own
//! count, as for attempts to sign in; no seats can be taken then anyway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::VariantName;
use domain::fairness::{Allowance, SharedBucketMeter, TryDecision};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use redis::Value;
use tokio::sync::Semaphore;

use super::LimitedCaller;
use crate::{AdmissionSettings, AdmissionState};
use http::problem::Limit;
use http::{ClientAddress, Code, Problem};
use platform::ids;
use platform::redis_link::LuaScript;
use platform::telemetry::{HoldLimit, hold_limited};

/// Timeout of the shared bucket; after it this replica uses its own count.
const DEADLINE: Duration = Duration::from_millis(250);
/// Maximum of concurrent reports; lots beyond it are counted by this replica alone.
const MAX_REPORTS: usize = 64;
/// Maximum of meters of each limit. Idle ones are evicted first; if there are none, all new callers share
/// one meter and one bucket, of the size of an address's, until there are.
const MAX_METERS: usize = 100_000;
/// The name of the meter that callers without their own share. No visitor and no address has this name.
const SHARED: &str = "";
/// Minimum time between two scans for idle meters, milliseconds.
const SCAN_EVERY_MS: i64 = SECOND_MS;
/// Maximum wait that jitter may lead to, milliseconds.
const LONGEST_MS: i64 = MINUTE_MS;
/// Digits of a bucket's name: 128 bits, so that names do not collide.
const NAME_DIGITS: usize = 32;

/// New visitors of an address per attempt in its limit: the meter of a visitor who gets a puzzle may be evicted before
/// the solution comes.
const NEWCOMERS_PER_ATTEMPT: u32 = 2;
/// New visitors of a network, as a multiple of those of one address: the owner of an IPv6 /48 has 65,536 addresses.
const ADDRESSES_PER_NETWORK: u32 = 16;
/// Maximum of new visitors of one network per minute, so that half of the meters stay for others.
const MAX_NEWCOMERS_OF_NETWORK: u32 = MAX_METERS as u32 / 2;
/// Changes of holds per attempt in its limit: adding a seat is both, releasing one is a change alone.
const CHANGES_PER_ATTEMPT: u32 = 4;

/// The kind of act that is counted, each in separate buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitedAct {
    /// Attempts at seats.
    Attempts,
    /// Changes and extensions of holds: the lock store may keep an answer for each.
    Changes,
    /// Checkouts: the same limit as for attempts, because each needs a hold.
    Checkouts,
}

pub(super) struct AttemptLimits {
    attempts: LimitPair,
    changes: LimitPair,
    checkouts: LimitPair,
    prefix: String,
    spend: LuaScript,
    reports: Arc<Semaphore>,
}

/// The limit of a visitor and that of an address; `None` for no limit.
struct LimitPair {
    visitor: Option<Arc<LimitMeters>>,
    address: Option<Arc<LimitMeters>>,
    /// Limits new visitors of an address, which have no meter yet. Counted by this replica alone, whose memory
    /// they use.
    newcomers: Option<LimitMeters>,
    /// The same for the network around the address.
    newcomers_of_network: Option<LimitMeters>,
}

/// A limit, and its meters on this replica.
struct LimitMeters {
    limit: HoldLimit,
    of: Allowance,
    /// The bucket of all callers without a meter of their own.
    shared: Allowance,
    meters: Mutex<Meters>,
}

/// A refusal, with the limit and the time to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitExceeded {
    limit: HoldLimit,
    of: Allowance,
    wait_ms: i64,
}

#[derive(Default)]
struct Meters {
    by_name: HashMap<String, SharedBucketMeter>,
    scanned_at: i64,
}

impl AttemptLimits {
    pub(super) fn new(settings: &AdmissionSettings, redis_prefix: &str) -> Self {
        let pair = |times: u32, visitor, address| {
            let visitor = (visitor, settings.holds_per_visitor_min.saturating_mul(times));
            LimitPair::per_minute(visitor, (address, settings.holds_per_address_min.saturating_mul(times)))
        };
        Self {
            attempts: pair(1, HoldLimit::Visitor, HoldLimit::Address),
            changes: pair(CHANGES_PER_ATTEMPT, HoldLimit::ChangesOfVisitor, HoldLimit::ChangesOfAddress),
            checkouts: pair(1, HoldLimit::CheckoutsOfVisitor, HoldLimit::CheckoutsOfAddress),
            prefix: redis_prefix.to_owned(),
            spend: LuaScript::new(include_str!("lua/spend.lua")),
            reports: Arc::new(Semaphore::new(MAX_REPORTS)),
        }
    }

    const fn of(&self, act: LimitedAct) -> &LimitPair {
        match act {
            LimitedAct::Attempts => &self.attempts,
            LimitedAct::Changes => &self.changes,
            LimitedAct::Checkouts => &self.checkouts,
        }
    }

    /// Counts an act for the visitor, if their address [admits](LimitPair::admit) it.
    pub(super) fn of_visitor(
        &self,
        state: &AdmissionState,
        act: LimitedAct,
        trying: &LimitedCaller<'_>,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let (pair, person) = (self.of(act), trying.person());
        pair.admit(&person, trying.address, now)?;
        self.take(state, pair.visitor.as_ref(), &person, now)
    }

    /// Counts an act for the address it comes from.
    pub(super) fn of_address(
        &self,
        state: &AdmissionState,
        act: LimitedAct,
        trying: &LimitedCaller<'_>,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        self.take(state, self.of(act).address.as_ref(), &trying.address.0, now)
    }

    fn take(
        &self,
        state: &AdmissionState,
        counted: Option<&Arc<LimitMeters>>,
        meter_name: &str,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let Some(counted) = counted else { return Ok(()) };
        match counted.take(meter_name, now) {
            TryDecision::Granted => Ok(()),
            TryDecision::GrantedAndDue(lot) => {
                self.report_in_background(state, counted, meter_name, lot);
                Ok(())
            }
            TryDecision::Refused(wait_ms) => Err(counted.refused(wait_ms)),
        }
    }

    /// Evicts idle meters, so that an address is kept no longer than necessary.
    pub(super) fn forget_idle(&self, now: Timestamp) {
        for pair in [&self.attempts, &self.changes, &self.checkouts] {
            let shared = [&pair.visitor, &pair.address].into_iter().filter_map(Option::as_deref);
            let own = pair.newcomers.iter().chain(&pair.newcomers_of_network);
            shared.chain(own).for_each(|counted| counted.forget_idle(now));
        }
    }

    /// Reports a lot to the shared bucket in the background.
    fn report_in_background(&self, state: &AdmissionState, counted: &Arc<LimitMeters>, meter_name: &str, lot: u32) {
        let (counted, meter_name) = (Arc::clone(counted), counted.bucket_of(meter_name).to_owned());
        let Ok(permit) = Arc::clone(&self.reports).try_acquire_owned() else {
            counted.record_answer(&meter_name, None, state.clock.now());
            return;
        };
        let state = state.clone();
        state.clone().tasks.spawn(async move {
            let empty_ms = state.fairness.limits.spend(&state, &counted, &meter_name, lot).await;
            counted.record_answer(&meter_name, empty_ms, state.clock.now());
            drop(permit);
        });
    }

    /// Takes a lot from the shared bucket; returns for how long it is empty, or `None` without an answer.
    async fn spend(&self, state: &AdmissionState, counted: &LimitMeters, meter_name: &str, lot: u32) -> Option<i64> {
        // A digest, so that a copy of Redis contains no visitor and no address.
        let name = counted.limit.as_str();
        let mut digest = state.accounts.derived_secret(&format!("{name}\0{meter_name}"));
        digest.truncate(NAME_DIGITS);
        let key = format!("{}limit:{name}:{digest}", self.prefix);
        let mut call = self.spend.call(&[&key]);
        let of = counted.allowance(meter_name);
        call.arg(of.burst).arg(of.each_ms).arg(lot);
        match tokio::time::timeout(DEADLINE, state.redis.eval_once(&call)).await {
            Ok(Ok(answer)) => match answer.value {
                Value::Int(empty_ms) => return Some(empty_ms),
                other => tracing::error!(answer = ?other, "a rate-limit bucket for seats holds an invalid value"),
            },
            Ok(Err(cause)) => tracing::debug!(%cause, "attempts are counted by this replica alone: Redis unavailable"),
            Err(_) => tracing::debug!("attempts are counted by this replica alone: Redis timed out"),
        }
        None
    }
}

impl LimitPair {
    /// Creates limits of so many acts per minute.
    fn per_minute((visitor, visitors): (HoldLimit, u32), (address, addresses): (HoldLimit, u32)) -> Self {
        let of_visitor = Allowance::per_minute(visitors);
        let of_address = Allowance::per_minute(addresses);
        let newcomers = addresses.saturating_mul(NEWCOMERS_PER_ATTEMPT);
        let of_newcomers = Allowance::per_minute(newcomers);
        let of_network = newcomers.saturating_mul(ADDRESSES_PER_NETWORK).min(MAX_NEWCOMERS_OF_NETWORK).max(newcomers);
        // Visitors without a meter may come from any address: together they get at least the limit of one address.
        let larger = |of: Allowance| of_address.filter(|other| other.burst > of.burst).unwrap_or(of);
        Self {
            visitor: of_visitor.map(|of| Arc::new(LimitMeters::new(visitor, of, larger(of)))),
            address: of_address.map(|of| Arc::new(LimitMeters::new(address, of, of))),
            newcomers: of_newcomers.map(|of| LimitMeters::new(address, of, of)),
            newcomers_of_network: Allowance::per_minute(of_network).map(|of| LimitMeters::new(address, of, of)),
        }
    }

    /// Checks the address before a visitor is counted: a program that sends a new cookie each time would fill the
    /// table. If the address has no tokens, no visitor is counted. A visitor without a meter first takes from the
    /// newcomers of the address and of its network, also for an attempt that is not counted for the address because it
    /// gets a puzzle.
    fn admit(&self, visitor: &str, address: &ClientAddress, now: Timestamp) -> Result<(), LimitExceeded> {
        let Some(of_address) = &self.address else { return Ok(()) };
        if let Some(wait_ms) = of_address.wait_ms(&address.0, now) {
            return Err(of_address.refused(wait_ms));
        }
        if self.visitor.as_ref().is_none_or(|counted| counted.has_meter(visitor)) {
            return Ok(());
        }
        // The narrow limit first: an address that has used it up takes nothing from its network.
        let wait_ms = self.newcomers.as_ref().and_then(|of| of.take_local(&address.0, now));
        let of_network = || self.newcomers_of_network.as_ref()?.take_local(&address.network(), now);
        wait_ms.or_else(of_network).map_or(Ok(()), |wait_ms| Err(of_address.refused(wait_ms)))
    }
}

impl LimitMeters {
    fn new(limit: HoldLimit, of: Allowance, shared: Allowance) -> Self {
        Self { limit, of, shared, meters: Mutex::default() }
    }

    /// The allowance of the meter with this name.
    fn allowance(&self, meter_name: &str) -> Allowance {
        if meter_name == SHARED { self.shared } else { self.of }
    }

    fn take(&self, meter_name: &str, now: Timestamp) -> TryDecision {
        let mut meters = self.lock();
        if let Some(meter) = meters.by_name.get_mut(meter_name) {
            return meter.take(self.allowance(meter_name), now);
        }
        let has_room = meters.by_name.len() < MAX_METERS || meters.make_room(self, now);
        let meter_name = if has_room { meter_name } else { SHARED };
        meters.by_name.entry(meter_name.to_owned()).or_default().take(self.allowance(meter_name), now)
    }

    /// Takes a token by this replica's own count; the time to wait if there is none, milliseconds.
    fn take_local(&self, meter_name: &str, now: Timestamp) -> Option<i64> {
        match self.take(meter_name, now) {
            TryDecision::Granted => None,
            TryDecision::GrantedAndDue(_) => {
                self.record_answer(self.bucket_of(meter_name), None, now);
                None
            }
            TryDecision::Refused(wait_ms) => Some(wait_ms),
        }
    }

    /// The bucket of a lot: callers who share a meter share the bucket.
    fn bucket_of<'a>(&self, meter_name: &'a str) -> &'a str {
        if self.has_meter(meter_name) { meter_name } else { SHARED }
    }

    fn has_meter(&self, meter_name: &str) -> bool {
        self.lock().by_name.contains_key(meter_name)
    }

    fn record_answer(&self, meter_name: &str, empty_ms: Option<i64>, now: Timestamp) {
        // A meter is not evicted while an answer is pending.
        if let Some(meter) = self.lock().by_name.get_mut(meter_name) {
            match empty_ms {
                Some(empty_ms) => meter.record_answer(empty_ms, now),
                None => meter.record_unavailable(self.allowance(meter_name), now),
            }
        }
    }

    /// The time until a token is available, if there is none; takes nothing.
    fn wait_ms(&self, meter_name: &str, now: Timestamp) -> Option<i64> {
        self.lock().by_name.get(meter_name)?.wait_ms(now)
    }

    const fn refused(&self, wait_ms: i64) -> LimitExceeded {
        LimitExceeded { limit: self.limit, of: self.of, wait_ms }
    }

    fn forget_idle(&self, now: Timestamp) {
        self.lock().forget_idle(self, now);
    }

    // Held for a few additions, never across an await.
    fn lock(&self) -> MutexGuard<'_, Meters> {
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimitExceeded {
    /// Builds the response and counts the refusal.
    pub(super) fn into_problem(self) -> Problem {
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
        let limit = Limit { name: self.limit.as_str(), burst: self.of.burst, window_s: whole.as_secs().max(1) };
        Problem::new(Code::TooManyAttempts, detail).with_limit(limit).with_retry_after(pause)
    }

    /// Maximum jitter of the wait: callers of one address are refused together, and would retry together. As wide
    /// as the wait itself, at least as the time to refill a lot, and the sum is at most [`LONGEST_MS`].
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
    /// Evicts idle meters; true if a new one fits then.
    fn make_room(&mut self, counted: &LimitMeters, now: Timestamp) -> bool {
        if now.0 - self.scanned_at >= SCAN_EVERY_MS {
            self.scanned_at = now.0;
            self.forget_idle(counted, now);
        }
        self.by_name.len() < MAX_METERS
    }

    fn forget_idle(&mut self, counted: &LimitMeters, now: Timestamp) {
        self.by_name.retain(|name, meter| !meter.is_idle(counted.allowance(name), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> LimitMeters {
        let of = Allowance { burst: 6, each_ms: 1_000 };
        LimitMeters::new(HoldLimit::Visitor, of, of)
    }

    #[test]
    fn callers_have_separate_buckets_and_an_empty_one_refuses_only_its_own() {
        let (counted, now) = (counted(), Timestamp(1_000_000));
        assert_eq!(counted.take("ann", now), TryDecision::GrantedAndDue(1), "a lot is one");
        counted.record_answer("ann", Some(4_000), now);
        assert_eq!(
            (counted.take("ann", now), counted.take("ben", now)),
            (TryDecision::Refused(4_000), TryDecision::GrantedAndDue(1))
        );
    }

    #[test]
    fn a_refusal_names_the_limit_and_the_time_to_wait() {
        let problem = counted().refused(3_200).into_problem();
        assert_eq!(problem.code(), Code::TooManyAttempts);
        assert!(problem.detail().ends_with("in 4 s."), "{}", problem.detail());
        let limit = Limit { name: "hold-visitor", burst: 6, window_s: 6 };
        let expected = Problem::new(Code::TooManyAttempts, "").with_limit(limit);
        let header = |problem: Problem| {
            axum::response::IntoResponse::into_response(problem).headers()["ratelimit-policy"].clone()
        };
        assert_eq!(header(problem), header(expected));
    }

    #[test]
    fn refusals_of_one_address_are_spread() {
        let of = Allowance::per_minute(1_200).expect("a limit");
        let spread = |limit, wait_ms| LimitExceeded { limit, of, wait_ms }.spread_ms();
        assert_eq!(spread(HoldLimit::Visitor, 20_000), 0);
        assert_eq!(spread(HoldLimit::Address, 50), 10_000, "the time to refill a lot");
        assert_eq!(spread(HoldLimit::Address, 20_000), 20_000);
        assert_eq!(spread(HoldLimit::Address, 50_000), 10_000);
        assert_eq!(spread(HoldLimit::Address, 90_000), 0);
    }

    #[test]
    fn reading_a_wait_creates_no_meter_and_idle_meters_are_evicted() {
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

    /// Six attempts a minute for a visitor, twelve for an address.
    fn pair() -> LimitPair {
        LimitPair::per_minute((HoldLimit::Visitor, 6), (HoldLimit::Address, 12))
    }

    #[test]
    fn meters_are_bounded_and_idle_ones_are_evicted() {
        let (pair, now) = (pair(), Timestamp(1_000_000));
        let counted = pair.visitor.expect("a limit");
        for who in 0..MAX_METERS {
            counted.take(&who.to_string(), now);
            counted.record_answer(&who.to_string(), Some(0), now);
        }
        let kept = || counted.lock().by_name.len();
        // All new visitors share one bucket, as large as an address's; its lot is two.
        let late = |who: usize| counted.take(&format!("late {who}"), now);
        assert_eq!([late(0), late(1)], [TryDecision::Granted, TryDecision::GrantedAndDue(2)]);
        assert_eq!(counted.bucket_of("late 0"), SHARED);
        assert_eq!(counted.bucket_of("7"), "7");
        let granted = 2 + (2..100).filter(|who| !matches!(late(*who), TryDecision::Refused(_))).count();
        assert_eq!(granted, 12, "what an address's bucket holds while no answer comes");
        assert_eq!(kept(), MAX_METERS + 1);
        counted.record_answer(SHARED, Some(0), now);
        assert_eq!(counted.take("late", now.plus_ms(120_000)), TryDecision::GrantedAndDue(1));
        assert_eq!(kept(), 1);
    }

    #[test]
    fn new_visitors_of_a_flooded_address_are_refused_before_they_take_meters() {
        let (pair, now) = (pair(), Timestamp(1_000_000));
        let counted = pair.visitor.as_ref().expect("a limit");
        let tries = |who: &str, address: &str| {
            let admitted = pair.admit(who, &ClientAddress(address.to_owned()), now);
            admitted.map(|()| counted.take(who, now)).map_err(|refused| refused.limit)
        };
        assert_eq!(tries("ann", "flooded"), Ok(TryDecision::GrantedAndDue(1)));
        let admitted = (0..1_000).filter(|who| tries(&format!("cookie {who}"), "flooded").is_ok()).count();
        assert!((12..=36).contains(&admitted), "{admitted} new visitors, of which a minute's worth is 24 and a lot 4");
        assert_eq!(counted.lock().by_name.len(), admitted + 1);
        assert_eq!(tries("one more", "flooded"), Err(HoldLimit::Address));
        counted.record_answer("ann", Some(0), now);
        assert!(tries("ann", "flooded").is_ok(), "a visitor with a meter is no newcomer");
        assert!(tries("ben", "another").is_ok());
    }

    #[test]
    fn new_visitors_of_a_network_with_many_addresses_are_refused_before_they_take_meters() {
        let (pair, now) = (pair(), Timestamp(1_000_000));
        let admit = |who: &str, address: String| pair.admit(who, &ClientAddress(address), now);
        let household = |number: usize| format!("2001:db8:1:{number:x}::/64");
        let admitted = (0..1_000).filter(|who| admit(&format!("cookie {who}"), household(*who)).is_ok()).count();
        assert!((384..=448).contains(&admitted), "{admitted} new visitors: sixteen addresses' worth is 384, a lot 64");
        let refused = admit("one more", household(1_000)).expect_err("the network's limit");
        assert_eq!(refused.limit, HoldLimit::Address);
        assert!(admit("ben", "2001:db8:2:1::/64".to_owned()).is_ok(), "another network");
    }

    #[test]
    fn the_limit_of_a_network_is_at_most_half_of_the_meters() {
        let burst = |addresses| {
            let pair = LimitPair::per_minute((HoldLimit::Visitor, 60), (HoldLimit::Address, addresses));
            pair.newcomers_of_network.map(|counted| counted.of.burst as usize)
        };
        assert_eq!([burst(0), burst(1_200), burst(4_800)], [None, Some(38_400), Some(MAX_METERS / 2)]);
        assert_eq!(burst(60_000), Some(120_000), "at least as many as one address");
    }

    #[test]
    fn an_address_without_limit_admits_all_its_visitors() {
        let pair = LimitPair::per_minute((HoldLimit::Visitor, 6), (HoldLimit::Address, 0));
        let any = ClientAddress("any".to_owned());
        assert!((0..100).all(|who| pair.admit(&who.to_string(), &any, Timestamp(1_000_000)).is_ok()));
    }
}

//! Rate limits that all replicas share. Each capability defines its limits as [`Allowance`]s and chooses the key.
//!
//! A limit is a token bucket in Redis that refills over time (`take.lua`). While Redis does not answer, each replica counts
//! in its own memory (`local`): the limit is then multiplied by the number of replicas, and sign-in continues. Postgres
//! does not count, because an outage of Redis already adds to its load.
//!
//! The key is hashed, so that a copy of Redis contains no names.

mod local;

use std::time::Duration;

use domain::VariantName;
use domain::time::Timestamp;
use redis::Value;
use sha2::{Digest, Sha256};
use strum::IntoStaticStr;

use crate::clock::StoreClock;
use crate::redis_link::{Link, LinkError, LuaScript, RedisReply, ScriptCall};

/// Deadline of a call to Redis; after it this replica counts in its own memory.
const DEADLINE: Duration = Duration::from_millis(250);
/// Deadline of a call that only Redis may count.
const SHARED_DEADLINE: Duration = Duration::from_secs(2);

/// A rate limit: burst and refill.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Unique name, part of the Redis keys; shown to limited callers.
    pub name: &'static str,
    /// Capacity of the bucket: attempts at once.
    pub burst: u32,
    /// Time in which one token is refilled, milliseconds.
    pub each_ms: i64,
}

impl Allowance {
    /// Time in which an empty bucket refills, seconds.
    #[must_use]
    pub const fn window_s(&self) -> u64 {
        self.burst as u64 * self.each_ms.unsigned_abs() / 1_000
    }
}

/// The limit of a network (an IPv4 /24, an IPv6 /48) as a multiple of that of one of its addresses. Live maps and new
/// visitors have the same factor, so a company or a carrier with many people is limited no earlier here than there.
const ADDRESSES_PER_NETWORK: u32 = 16;

/// The rate limits of an address and of the network around it. Without the second, an IPv6 /48 has the first one 65,536
/// times.
#[derive(Clone, Copy, Debug)]
pub struct AddressAllowance {
    address: Allowance,
    network: Allowance,
}

impl AddressAllowance {
    /// The limits with these two names: of an address with this burst and refill, and of a network with
    /// [`ADDRESSES_PER_NETWORK`] times both.
    #[must_use]
    pub const fn new((address, network): (&'static str, &'static str), burst: u32, each_ms: i64) -> Self {
        let (network_burst, network_ms) =
            (burst.saturating_mul(ADDRESSES_PER_NETWORK), each_ms / ADDRESSES_PER_NETWORK as i64);
        Self {
            address: Allowance { name: address, burst, each_ms },
            network: Allowance { name: network, burst: network_burst, each_ms: network_ms },
        }
    }
}

/// The error of an attempt above the limit.
#[derive(Clone, Copy, Debug)]
pub struct RateLimited {
    /// The limit.
    pub of: Allowance,
    /// Time until the next attempt is granted.
    pub retry_after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BucketOutcome {
    Granted,
    /// The bucket is empty; time until the next token, milliseconds.
    Empty(i64),
    /// Only reserved tokens are left.
    Reserved,
}

/// The outcome of a take that leaves reserved tokens in the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// A token was taken.
    Granted,
    /// Only reserved tokens are left; none was taken.
    Reserved,
    /// The bucket is empty; time until the next token.
    Empty(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum BucketOperation {
    Take,
    Give,
    Clear,
}

/// The token buckets of all limits.
pub struct RateLimits {
    link: Link,
    clock: StoreClock,
    prefix: String,
    script: LuaScript,
    local: local::Buckets,
}

impl RateLimits {
    /// Rate limits in the Redis of `link`; `prefix` is that of every Redis key.
    #[must_use]
    pub fn new(link: Link, clock: StoreClock, prefix: &str) -> Self {
        let script = LuaScript::new(include_str!("take.lua"));
        Self { link, clock, prefix: prefix.to_owned(), script, local: local::Buckets::default() }
    }

    /// Takes a token for an attempt of `whose`.
    ///
    /// # Errors
    /// When the bucket is empty.
    pub async fn take(&self, of: &Allowance, whose: &str) -> Result<(), RateLimited> {
        match self.apply(of, whose, BucketOperation::Take).await {
            BucketOutcome::Granted | BucketOutcome::Reserved => Ok(()),
            BucketOutcome::Empty(ms) => {
                tracing::info!(limit = of.name, wait_ms = ms, "rate limit reached");
                Err(RateLimited { of: *of, retry_after: Duration::from_millis(ms.unsigned_abs()) })
            }
        }
    }

    /// Takes tokens for an attempt for a person: first of `pair`, the limit of person and network, then of `total`, the
    /// limit of the person. A network above `pair` consumes nothing of `total`, so it cannot lock the person out elsewhere.
    ///
    /// # Errors
    /// When a bucket is empty.
    pub async fn take_per_network(
        &self,
        (pair, total): (&Allowance, &Allowance),
        person: &str,
        network: &str,
    ) -> Result<(), RateLimited> {
        // A person may contain a line feed, a network cannot: the last line feed separates them.
        self.take(pair, &format!("{person}\n{network}")).await?;
        self.take(total, person).await
    }

    /// Takes tokens for an attempt from an address: first of its limit, then of that of the network around it. An address
    /// above its limit consumes nothing of its network's.
    ///
    /// # Errors
    /// When a bucket is empty.
    pub async fn take_from_address(
        &self,
        of: &AddressAllowance,
        address: &str,
        network: &str,
    ) -> Result<(), RateLimited> {
        self.take(&of.address, address).await?;
        self.take(&of.network, network).await
    }

    /// Returns both tokens of an attempt from an address that succeeded.
    pub async fn give_back_to_address(&self, of: &AddressAllowance, address: &str, network: &str) {
        self.give_back(&of.address, address).await;
        self.give_back(&of.network, network).await;
    }

    /// Takes a token if at least `reserved` are left after it; for work that needs Redis anyway, so this replica never
    /// counts in its own memory. `None` when Redis does not answer in time.
    pub async fn take_shared(&self, of: &Allowance, whose: &str, reserved: u32) -> Option<TakeOutcome> {
        let key = self.key(of, whose);
        let outcome = self.apply_shared((of, key.as_str()), (BucketOperation::Take, reserved), SHARED_DEADLINE).await?;
        Some(match outcome {
            BucketOutcome::Granted => TakeOutcome::Granted,
            BucketOutcome::Reserved => TakeOutcome::Reserved,
            BucketOutcome::Empty(ms) => TakeOutcome::Empty(Duration::from_millis(ms.unsigned_abs())),
        })
    }

    /// Returns the token of an attempt that succeeded.
    pub async fn give_back(&self, of: &Allowance, whose: &str) {
        self.apply(of, whose, BucketOperation::Give).await;
    }

    /// Fills the bucket.
    pub async fn clear(&self, of: &Allowance, whose: &str) {
        self.apply(of, whose, BucketOperation::Clear).await;
    }

    async fn apply(&self, of: &Allowance, whose: &str, operation: BucketOperation) -> BucketOutcome {
        let key = self.key(of, whose);
        match self.apply_shared((of, key.as_str()), (operation, 0), DEADLINE).await {
            Some(outcome) => outcome,
            None => self.local.apply(of, key, (operation, 0), self.clock.now()),
        }
    }

    /// The Redis key of a bucket. Its form is fixed, so that two versions share the buckets during an update.
    fn key(&self, of: &Allowance, whose: &str) -> String {
        format!("{}throttle:{}:{}", self.prefix, of.name, hashed(whose))
    }

    /// Applies an operation to the bucket in Redis; `None` when Redis does not answer in time.
    async fn apply_shared(
        &self,
        (of, key): (&Allowance, &str),
        (operation, reserved): (BucketOperation, u32),
        deadline: Duration,
    ) -> Option<BucketOutcome> {
        let mut call = self.script.call(&[key]);
        call.arg(of.burst).arg(of.each_ms).arg(operation.as_str()).arg(reserved);
        match tokio::time::timeout(deadline, self.run_script(operation, &call)).await {
            Ok(Ok(answer)) => match read(&answer.value) {
                Some(outcome) => return Some(outcome),
                None => tracing::error!(answer = ?answer.value, "read a rate-limit bucket failed: unexpected value"),
            },
            Ok(Err(cause)) => tracing::debug!(%cause, "count an attempt in Redis failed; counting in this process"),
            Err(_) => tracing::debug!("count an attempt in Redis timed out; counting in this process"),
        }
        None
    }

    /// Runs the script. A take or give is not retried: one whose answer is lost may have been counted.
    async fn run_script(&self, operation: BucketOperation, call: &ScriptCall<'_>) -> Result<RedisReply, LinkError> {
        match operation {
            BucketOperation::Take | BucketOperation::Give => self.link.eval_once(call).await,
            BucketOperation::Clear => self.link.eval(call).await,
        }
    }
}

fn read(answer: &Value) -> Option<BucketOutcome> {
    let Value::Array(parts) = answer else { return None };
    match parts.as_slice() {
        [Value::Int(1), Value::Int(_), Value::Int(_)] => Some(BucketOutcome::Granted),
        [Value::Int(0), Value::Int(_), Value::Int(wait)] => Some(BucketOutcome::Empty(*wait)),
        [Value::Int(2), Value::Int(_), Value::Int(_)] => Some(BucketOutcome::Reserved),
        _ => None,
    }
}

/// The hash of a caller in a Redis key: 128 bits, enough to be unique.
fn hashed(whose: &str) -> String {
    let mut name = hex::encode(Sha256::digest(whose.as_bytes()));
    name.truncate(32);
    name
}

/// The same arithmetic as `take.lua`: the instant at which a bucket is full again after an operation, and its outcome. A
/// take leaves `reserved` tokens.
fn step(
    of: &Allowance,
    full_at: Option<Timestamp>,
    (operation, reserved): (BucketOperation, u32),
    now: Timestamp,
) -> (Option<Timestamp>, BucketOutcome) {
    let full_at = full_at.map_or(now.0, |at| at.0.max(now.0));
    let whole = i64::from(of.burst) * of.each_ms;
    let full_at = match operation {
        BucketOperation::Clear => now.0,
        BucketOperation::Give => full_at - of.each_ms,
        BucketOperation::Take if full_at + of.each_ms - now.0 > whole => {
            return (Some(Timestamp(full_at)), BucketOutcome::Empty(full_at + of.each_ms - now.0 - whole));
        }
        BucketOperation::Take if full_at + of.each_ms - now.0 > whole - i64::from(reserved) * of.each_ms => {
            return (Some(Timestamp(full_at)).filter(|at| at.0 > now.0), BucketOutcome::Reserved);
        }
        BucketOperation::Take => full_at + of.each_ms,
    };
    (Some(Timestamp(full_at)).filter(|at| at.0 > now.0), BucketOutcome::Granted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Allowance = Allowance { name: "test", burst: 3, each_ms: 1_000 };

    #[test]
    fn a_burst_is_granted_then_one_at_a_time() {
        let now = Timestamp(5_000);
        let mut bucket = None;
        for _ in 0..3 {
            let (after, outcome) = step(&OF, bucket, (BucketOperation::Take, 0), now);
            assert_eq!(outcome, BucketOutcome::Granted);
            bucket = after;
        }
        assert_eq!(step(&OF, bucket, (BucketOperation::Take, 0), now), (bucket, BucketOutcome::Empty(1_000)));
        assert_eq!(step(&OF, bucket, (BucketOperation::Take, 0), now.plus_ms(400)).1, BucketOutcome::Empty(600));
        let (after, outcome) = step(&OF, bucket, (BucketOperation::Take, 0), now.plus_ms(1_000));
        assert_eq!((after, outcome), (Some(now.plus_ms(4_000)), BucketOutcome::Granted));
        assert_eq!(
            step(&OF, bucket, (BucketOperation::Take, 0), now.plus_ms(60_000)).0,
            Some(now.plus_ms(61_000)),
            "never fuller"
        );
    }

    #[test]
    fn returned_tokens_can_be_taken_again_and_never_exceed_the_burst() {
        let now = Timestamp(5_000);
        let full = Some(now.plus_ms(3_000));
        let (given, _) = step(&OF, full, (BucketOperation::Give, 0), now);
        assert_eq!(step(&OF, given, (BucketOperation::Take, 0), now), (full, BucketOutcome::Granted));
        assert_eq!(step(&OF, None, (BucketOperation::Give, 0), now), (None, BucketOutcome::Granted));
        assert_eq!(step(&OF, full, (BucketOperation::Clear, 0), now), (None, BucketOutcome::Granted));
    }

    #[test]
    fn a_take_leaves_reserved_tokens_that_a_take_without_reserve_gets() {
        let now = Timestamp(5_000);
        let (after, outcome) = step(&OF, None, (BucketOperation::Take, 2), now);
        assert_eq!((after, outcome), (Some(now.plus_ms(1_000)), BucketOutcome::Granted), "two of three are left");
        assert_eq!(step(&OF, after, (BucketOperation::Take, 2), now), (after, BucketOutcome::Reserved));
        assert_eq!(
            step(&OF, after, (BucketOperation::Take, 0), now),
            (Some(now.plus_ms(2_000)), BucketOutcome::Granted)
        );
    }

    #[tokio::test]
    async fn a_network_has_the_tokens_of_sixteen_addresses_and_limited_addresses_take_none_of_them() {
        const OF: AddressAllowance = AddressAllowance::new(("test-address", "test-network"), 1, 16_000_000);
        assert_eq!((OF.network.burst, OF.network.each_ms), (16, 1_000_000));
        // No Redis: this process counts.
        let link = Link::open("redis://127.0.0.1:1/").expect("a valid address");
        let limits = RateLimits::new(link, StoreClock::default(), "");
        let reached = async |address: u32, network: &str| {
            let taken = limits.take_from_address(&OF, &address.to_string(), network).await;
            taken.err().map(|limited| limited.of.name)
        };
        for address in 0..16 {
            assert_eq!(reached(address, "one").await, None);
            assert_eq!(reached(address, "one").await, Some("test-address"));
        }
        assert_eq!(reached(16, "one").await, Some("test-network"));
        assert_eq!(reached(17, "another").await, None);
    }

    #[test]
    fn a_key_does_not_contain_the_name() {
        assert_eq!(hashed("ann@example.org").len(), 32);
        assert_ne!(hashed("ann@example.org"), hashed("bob@example.org"));
        assert!(!hashed("ann@example.org").contains("ann"));
    }
}

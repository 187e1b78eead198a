//! Rate limits that all replicas share. Each capability defines its limits as [`Allowance`]s and chooses the key.
//!
//! A limit is a token bucket in Redis that refills over time (`take.lua`). While Redis does not answer, each replica counts
//! in its own memory (`local`): the limit is then multiplied by the number of replicas, and sign-in continues. Postgres
//! does not count: during an outage of Redis it has enough to do.
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

/// Deadline of an attempt in Redis; then this replica counts by itself.
const DEADLINE: Duration = Duration::from_millis(250);
/// Deadline of an attempt that only Redis may count.
const SHARED_DEADLINE: Duration = Duration::from_secs(2);

/// A rate limit: burst and refill.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Unique name, part of the Redis keys; shown to limited callers.
    pub name: &'static str,
    /// So many at once.
    pub burst: u32,
    /// Each is back after this long, milliseconds.
    pub each_ms: i64,
}

impl Allowance {
    /// Time in which an empty bucket refills, seconds.
    #[must_use]
    pub const fn window_s(&self) -> u64 {
        self.burst as u64 * self.each_ms.unsigned_abs() / 1_000
    }
}

/// The limit is reached.
#[derive(Clone, Copy, Debug)]
pub struct RateLimited {
    /// The limit.
    pub of: Allowance,
    /// Until the next attempt.
    pub retry_after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BucketOutcome {
    Granted,
    /// Nothing in it for so long, milliseconds.
    Empty(i64),
    /// Only reserved ones are left.
    Reserved,
}

/// The outcome of a take that leaves reserved ones in the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// One was taken.
    Granted,
    /// Only reserved ones are left; nothing was taken.
    Reserved,
    /// The bucket is empty for so long.
    Empty(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum BucketOperation {
    Take,
    Give,
    Clear,
}

/// The buckets.
pub struct RateLimits {
    link: Link,
    clock: StoreClock,
    prefix: String,
    script: LuaScript,
    local: local::Buckets,
}

impl RateLimits {
    /// `prefix` goes before every Redis key.
    #[must_use]
    pub fn new(link: Link, clock: StoreClock, prefix: &str) -> Self {
        let script = LuaScript::new(include_str!("take.lua"));
        Self { link, clock, prefix: prefix.to_owned(), script, local: local::Buckets::default() }
    }

    /// Counts a try.
    ///
    /// # Errors
    /// When the bucket is empty.
    pub async fn take(&self, of: &Allowance, whose: &str) -> Result<(), RateLimited> {
        match self.act(of, whose, BucketOperation::Take).await {
            BucketOutcome::Granted | BucketOutcome::Reserved => Ok(()),
            BucketOutcome::Empty(ms) => {
                tracing::info!(limit = of.name, wait_ms = ms, "rate limit reached");
                Err(RateLimited { of: *of, retry_after: Duration::from_millis(ms.unsigned_abs()) })
            }
        }
    }

    /// Counts a try for a person: by `pair` those from this network, then by `total` those from all. A network above
    /// `pair` consumes nothing of `total`, so it locks out no person elsewhere.
    ///
    /// # Errors
    /// When a bucket is empty.
    pub async fn take_per_network(
        &self,
        (pair, total): (&Allowance, &Allowance),
        person: &str,
        network: &str,
    ) -> Result<(), RateLimited> {
        // The person may be text with a line feed; a network is not, so the last one separates.
        self.take(pair, &format!("{person}\n{network}")).await?;
        self.take(total, person).await
    }

    /// Takes one if at least `reserved` are left after it, for an act that needs Redis anyhow: this replica counts nothing
    /// by itself. `None` when Redis does not answer in time.
    pub async fn take_shared(&self, of: &Allowance, whose: &str, reserved: u32) -> Option<TakeOutcome> {
        let key = self.key(of, whose);
        let said = self.ask_shared((of, key.as_str()), (BucketOperation::Take, reserved), SHARED_DEADLINE).await?;
        Some(match said {
            BucketOutcome::Granted => TakeOutcome::Granted,
            BucketOutcome::Reserved => TakeOutcome::Reserved,
            BucketOutcome::Empty(ms) => TakeOutcome::Empty(Duration::from_millis(ms.unsigned_abs())),
        })
    }

    /// The try that was counted went well: it does not count.
    pub async fn give_back(&self, of: &Allowance, whose: &str) {
        self.act(of, whose, BucketOperation::Give).await;
    }

    /// Forgets all tries.
    pub async fn clear(&self, of: &Allowance, whose: &str) {
        self.act(of, whose, BucketOperation::Clear).await;
    }

    async fn act(&self, of: &Allowance, whose: &str, act: BucketOperation) -> BucketOutcome {
        let key = self.key(of, whose);
        match self.ask_shared((of, key.as_str()), (act, 0), DEADLINE).await {
            Some(said) => said,
            None => self.local.act(of, key, (act, 0), self.clock.now()),
        }
    }

    /// The bucket's key. Its form is fixed: versions that run side by side during an update count together.
    fn key(&self, of: &Allowance, whose: &str) -> String {
        format!("{}throttle:{}:{}", self.prefix, of.name, hashed(whose))
    }

    /// The answer of the bucket in Redis; `None` when there is none in time.
    async fn ask_shared(
        &self,
        (of, key): (&Allowance, &str),
        (act, reserved): (BucketOperation, u32),
        deadline: Duration,
    ) -> Option<BucketOutcome> {
        let mut call = self.script.call(&[key]);
        call.arg(of.burst).arg(of.each_ms).arg(act.as_str()).arg(reserved);
        match tokio::time::timeout(deadline, self.ask(act, &call)).await {
            Ok(Ok(answer)) => match read(&answer.value) {
                Some(said) => return Some(said),
                None => tracing::error!(answer = ?answer.value, "read a rate-limit bucket failed: unexpected value"),
            },
            Ok(Err(cause)) => tracing::debug!(%cause, "count an attempt in Redis failed; counting in this process"),
            Err(_) => tracing::debug!("count an attempt in Redis timed out; counting in this process"),
        }
        None
    }

    /// An attempt whose answer is lost may have been counted, so it is not repeated.
    async fn ask(&self, act: BucketOperation, call: &ScriptCall<'_>) -> Result<RedisReply, LinkError> {
        match act {
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

/// 128 bits are enough to keep people apart.
fn hashed(whose: &str) -> String {
    let mut name = hex::encode(Sha256::digest(whose.as_bytes()));
    name.truncate(32);
    name
}

/// The same arithmetic as `take.lua`: the instant at which a bucket is full again after `act`. A take leaves so many
/// `reserved`.
fn step(
    of: &Allowance,
    full_at: Option<Timestamp>,
    (act, reserved): (BucketOperation, u32),
    now: Timestamp,
) -> (Option<Timestamp>, BucketOutcome) {
    let full_at = full_at.map_or(now.0, |at| at.0.max(now.0));
    let whole = i64::from(of.burst) * of.each_ms;
    let full_at = match act {
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
            let (after, said) = step(&OF, bucket, (BucketOperation::Take, 0), now);
            assert_eq!(said, BucketOutcome::Granted);
            bucket = after;
        }
        assert_eq!(step(&OF, bucket, (BucketOperation::Take, 0), now), (bucket, BucketOutcome::Empty(1_000)));
        assert_eq!(step(&OF, bucket, (BucketOperation::Take, 0), now.plus_ms(400)).1, BucketOutcome::Empty(600));
        let (after, said) = step(&OF, bucket, (BucketOperation::Take, 0), now.plus_ms(1_000));
        assert_eq!((after, said), (Some(now.plus_ms(4_000)), BucketOutcome::Granted));
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
        let (after, said) = step(&OF, None, (BucketOperation::Take, 2), now);
        assert_eq!((after, said), (Some(now.plus_ms(1_000)), BucketOutcome::Granted), "two of three are left");
        assert_eq!(step(&OF, after, (BucketOperation::Take, 2), now), (after, BucketOutcome::Reserved));
        assert_eq!(
            step(&OF, after, (BucketOperation::Take, 0), now),
            (Some(now.plus_ms(2_000)), BucketOutcome::Granted)
        );
    }

    #[test]
    fn a_key_does_not_contain_the_name() {
        assert_eq!(hashed("ann@example.org").len(), 32);
        assert_ne!(hashed("ann@example.org"), hashed("bob@example.org"));
        assert!(!hashed("ann@example.org").contains("ann"));
    }
}

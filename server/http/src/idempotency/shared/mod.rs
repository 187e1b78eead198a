//! The second layer: Redis, where other replicas see that a key is running and what its answer was.
//!
//! It saves them work and is never the truth: a claim here authorises nothing, and everything that Redis loses or does not
//! answer in time is in Postgres. An entry belongs to an owner and a key:
//!
//! ```text
//!     {keys:N}:OWNER:KEY   string, see entry.rs; N is the first digit of the owner, so that a Cluster
//!                          spreads keys over sixteen slots and still takes many of them in one call
//!     {keys:N}:pending     sorted set, entries that are pending, by when
//!     replica:ID           marks a replica as alive; claims of a dead one are free for others
//! ```

mod entry;
mod operation_queue;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::time::Timestamp;
use redis::Value;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use self::operation_queue::{KeyNames, KeyOperation, QueuedOperation};
use super::{Answer, Intent, PENDING_LIFE_MS};
use crate::HttpState;
use platform::batcher::Batcher;
use platform::ids;
use platform::redis_link::{LinkError, LuaScript};

pub(super) use entry::{Id, KeyClaim, KeyEntry, KeyState};
pub(super) use operation_queue::KeyReply;

/// Deadline of a call to Redis; after it a request continues with Postgres alone.
const DEADLINE: Duration = Duration::from_millis(250);
/// Minimum time between two logged failures of Redis.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Number of buckets, each in one Cluster slot: one per hex digit that an owner begins with.
pub(super) const BUCKETS: u8 = 16;

pub(super) struct SharedKeys {
    prefix: String,
    /// The id of this replica.
    replica: Id,
    keys_script: LuaScript,
    due_script: LuaScript,
    operations: Batcher<QueuedOperation>,
    /// Time of the last logged failure of a call.
    logged_at: Mutex<Option<Instant>>,
}

impl SharedKeys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            replica: ids::random_bits(),
            keys_script: LuaScript::new(include_str!("keys.lua")),
            due_script: LuaScript::new(include_str!("due.lua")),
            operations: operation_queue::queue(),
            logged_at: Mutex::new(None),
        }
    }

    /// A new claim of this replica.
    pub(super) fn new_claim(&self) -> KeyClaim {
        KeyClaim { token: ids::random_bits(), replica: self.replica }
    }

    /// True if this process made the claim.
    pub(super) fn is_ours(&self, claim: KeyClaim) -> bool {
        claim.replica == self.replica
    }

    /// Claims a key for `PENDING_LIFE_MS`; `replaces` is the claim of a dead replica to take over.
    pub(super) async fn claim(
        &self,
        state: &HttpState,
        intent: &Intent,
        claim: KeyClaim,
        replaces: Option<KeyClaim>,
    ) -> KeyReply {
        let value = entry::pending(&intent.request_hash, claim);
        let (reply, receiver) = oneshot::channel();
        let token = replaces.map(|old| old.token);
        let names = self.names(&intent.owner, &intent.key);
        let life_ms = PENDING_LIFE_MS;
        operation_queue::send(
            state,
            QueuedOperation { names, operation: KeyOperation::Claim, value, life_ms, token, reply: Some(reply) },
        );
        wait_for_reply(receiver).await
    }

    /// Stores an answer that Postgres has. The caller does not wait for it.
    pub(super) fn complete(&self, state: &HttpState, intent: &Intent, answer: &Answer, until: Timestamp) {
        let life_ms = until.since(state.clock.now());
        if life_ms > 0 {
            let value = entry::completed(&intent.request_hash, answer, until);
            let names = self.names(&intent.owner, &intent.key);
            let operation = KeyOperation::Complete;
            operation_queue::send(
                state,
                QueuedOperation { names, operation, value, life_ms, token: None, reply: None },
            );
        }
    }

    /// Stores an answer that Postgres has, for the reconciler, and waits for the result.
    pub(super) async fn repair(
        &self,
        state: &HttpState,
        key: (&str, &str),
        request_hash: &[u8; 32],
        answer: &Answer,
        until: Timestamp,
    ) -> KeyReply {
        let (reply, receiver) = oneshot::channel();
        let value = entry::completed(request_hash, answer, until);
        let (names, life_ms) = (self.names(key.0, key.1), until.since(state.clock.now()).max(1));
        let operation = KeyOperation::Complete;
        operation_queue::send(
            state,
            QueuedOperation { names, operation, value, life_ms, token: None, reply: Some(reply) },
        );
        wait_for_reply(receiver).await
    }

    /// Abandons a claim. `failure` is stored for a caller who polls.
    pub(super) fn abandon(&self, state: &HttpState, key: (&str, &str), claim: KeyClaim, failure: Option<Failure<'_>>) {
        let value =
            failure.map_or_else(Vec::new, |failure| entry::failed(failure.request_hash, failure.status, &failure.body));
        let names = self.names(key.0, key.1);
        let (token, operation, life_ms) = (Some(claim.token), KeyOperation::Abandon, PENDING_LIFE_MS);
        operation_queue::send(state, QueuedOperation { names, operation, value, life_ms, token, reply: None });
    }

    pub(super) async fn read(&self, state: &HttpState, owner: &str, key: &str) -> KeyReply {
        let (reply, receiver) = oneshot::channel();
        let names = self.names(owner, key);
        let (operation, value, life_ms, token) = (KeyOperation::Read, Vec::new(), 0, None);
        operation_queue::send(state, QueuedOperation { names, operation, value, life_ms, token, reply: Some(reply) });
        wait_for_reply(receiver).await
    }

    /// Owners and keys of a bucket that have been pending for `for_ms`; `None` when Redis does not answer.
    pub(super) async fn due(
        &self,
        state: &HttpState,
        bucket: u8,
        for_ms: i64,
        limit: usize,
    ) -> Option<Vec<(String, String)>> {
        let name = self.pending_name(bucket);
        let mut call = self.due_script.call(&[name]);
        call.arg(for_ms).arg(limit);
        let answer = state.redis.eval(&call).await.map(|answer| answer.value);
        self.log_failure(answer.as_ref().err());
        let Value::Array(entries) = answer.ok()? else { return Some(Vec::new()) };
        let keys = entries.iter().filter_map(|entry| match entry {
            Value::BulkString(name) => self.key_of(bucket, std::str::from_utf8(name).ok()?),
            _ => None,
        });
        Some(keys.collect())
    }

    fn names(&self, owner: &str, key: &str) -> KeyNames {
        let bucket = bucket_of(owner);
        let shared = self.bucket_name(bucket);
        KeyNames { entry: [shared.as_str(), owner, ":", key].concat(), pending: shared + "pending" }
    }

    fn pending_name(&self, bucket: u8) -> String {
        self.bucket_name(bucket) + "pending"
    }

    /// Prefix of all Redis keys of a bucket.
    fn bucket_name(&self, bucket: u8) -> String {
        format!("{}{{keys:{bucket:x}}}:", self.prefix)
    }

    /// Owner and key of an entry's name.
    fn key_of(&self, bucket: u8, entry: &str) -> Option<(String, String)> {
        let rest = entry.strip_prefix(&self.prefix)?.strip_prefix(&format!("{{keys:{bucket:x}}}:"))?;
        rest.split_once(':').map(|(owner, key)| (owner.to_owned(), key.to_owned()))
    }

    /// Logs a failure of Redis, at a limited rate.
    fn log_failure(&self, failure: Option<&LinkError>) {
        let Some(cause) = failure else { return };
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            *logged_at = Some(Instant::now());
            tracing::warn!(%cause, "store idempotency keys in Redis failed; Postgres has them all");
        }
    }
}

pub(super) struct Failure<'a> {
    pub(super) request_hash: &'a [u8; 32],
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// Waits for a reply until the deadline.
async fn wait_for_reply(receiver: oneshot::Receiver<KeyReply>) -> KeyReply {
    tokio::time::timeout(DEADLINE, receiver).await.ok().and_then(Result::ok).unwrap_or(KeyReply::Unavailable)
}

/// The bucket of an owner: its first hex digit; other texts share the first bucket.
fn bucket_of(owner: &str) -> u8 {
    let digit = owner.chars().next().and_then(|first| first.to_digit(u32::from(BUCKETS)));
    digit.unwrap_or(0) as u8
}

/// Lifetime of a heartbeat; without one a replica is considered dead. If it is only cut off from Redis, no harm is done: the
/// row lock in Postgres orders its work and that of the replica that takes over.
const REPLICA_LIFE: Duration = Duration::from_secs(5);
/// Interval of a replica's heartbeat.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);

/// Minimum age of a claim of a dead replica: the last heartbeat may have been just before the claim, and a little late.
pub(crate) const MIN_DEAD_CLAIM_AGE_MS: i64 = (REPLICA_LIFE.as_millis() - 2 * HEARTBEAT_EVERY.as_millis()) as i64;

const HEARTBEAT_SCRIPT: &str = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])";
const IS_ALIVE_SCRIPT: &str = "return redis.call('EXISTS', KEYS[1])";

impl SharedKeys {
    /// The Redis key of a replica's heartbeat.
    fn heartbeat_key(&self, replica: &Id) -> String {
        format!("{}replica:{}", self.prefix, hex::encode(replica))
    }

    /// True if the replica that made this claim is alive, or if Redis does not answer.
    pub(crate) async fn is_alive(&self, state: &HttpState, claim: KeyClaim) -> bool {
        let script = LuaScript::new(IS_ALIVE_SCRIPT);
        let call = script.call(&[self.heartbeat_key(&claim.replica)]);
        !matches!(state.redis.eval(&call).await, Ok(answer) if answer.value == Value::Int(0))
    }
}

/// Sends the heartbeat of this replica until the future is dropped.
pub(crate) async fn announce_forever(state: HttpState) {
    let shared = &state.idempotency.shared;
    let script = LuaScript::new(HEARTBEAT_SCRIPT);
    let name = shared.heartbeat_key(&shared.replica);
    let mut rounds = tokio::time::interval(HEARTBEAT_EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Also while the server stops: requests that still run then must not be taken over.
        rounds.tick().await;
        let mut call = script.call(&[&name]);
        call.arg(REPLICA_LIFE.as_millis() as u64);
        shared.log_failure(state.redis.eval(&call).await.err().as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_key_names_its_owner_and_key_only() {
        let shared = SharedKeys::new("t1:");
        let owner = "f123456789abcdef0123456789abcdef";
        for key in ["k", "a:b", "{keys:0}:pending", "pending"] {
            let names = shared.names(owner, key);
            assert_eq!(names.pending, "t1:{keys:f}:pending");
            assert_eq!(shared.key_of(15, &names.entry), Some((owner.to_owned(), key.to_owned())));
            assert_ne!(names.entry, names.pending);
        }
        assert_eq!(shared.key_of(15, "t1:{keys:e}:x:y"), None);
        assert_eq!(bucket_of(""), 0);
        assert!(owner.chars().all(|digit| bucket_of(&digit.to_string()) < BUCKETS));
    }
}

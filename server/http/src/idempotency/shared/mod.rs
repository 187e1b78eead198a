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

use self::operation_queue::{KeyNames, KeyOperation, QueuedOperation};
use super::{Answer, Intent, PENDING_LIFE_MS};
use crate::HttpState;
use platform::background::PeriodicLoop;
use platform::batcher::Batcher;
use platform::ids;
use platform::redis_link::{LinkError, LuaScript};

pub(super) use entry::{Id, KeyClaim, KeyEntry, KeyState};
pub(super) use operation_queue::KeyReply;

/// Deadline of a request's call to Redis; then it continues with Postgres alone.
const DEADLINE: Duration = Duration::from_millis(250);
/// While Redis, or a shard of it, is down, this is logged at most once per this time.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Slots the keys are spread over: the digits an owner can begin with.
pub(super) const BUCKETS: u8 = 16;

pub(super) struct SharedKeys {
    prefix: String,
    /// Of this process.
    replica: Id,
    keys_script: LuaScript,
    due_script: LuaScript,
    operations: Batcher<QueuedOperation>,
    /// Time of the last logged failure of a call.
    said: Mutex<Option<Instant>>,
}

impl SharedKeys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            replica: ids::random_bits(),
            keys_script: LuaScript::new(include_str!("keys.lua")),
            due_script: LuaScript::new(include_str!("due.lua")),
            operations: operation_queue::queue(),
            said: Mutex::new(None),
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

    /// Claims a key for `PENDING_LIFE_MS`, in place of another claim if one is given.
    pub(super) async fn claim(
        &self,
        state: &HttpState,
        intent: &Intent,
        claim: KeyClaim,
        of: Option<KeyClaim>,
    ) -> KeyReply {
        let value = entry::pending(&intent.request_hash, claim);
        let (reply, said) = oneshot::channel();
        let token = of.map(|of| of.token);
        let names = self.names(&intent.owner, &intent.key);
        let life_ms = PENDING_LIFE_MS;
        operation_queue::send(
            state,
            QueuedOperation { names, operation: KeyOperation::Claim, value, life_ms, token, reply: Some(reply) },
        );
        in_time(said).await
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

    /// The same for the comparison of the stores, which waits for the result.
    pub(super) async fn repair(
        &self,
        state: &HttpState,
        key: (&str, &str),
        request_hash: &[u8; 32],
        answer: &Answer,
        until: Timestamp,
    ) -> KeyReply {
        let (reply, said) = oneshot::channel();
        let value = entry::completed(request_hash, answer, until);
        let (names, life_ms) = (self.names(key.0, key.1), until.since(state.clock.now()).max(1));
        let operation = KeyOperation::Complete;
        operation_queue::send(
            state,
            QueuedOperation { names, operation, value, life_ms, token: None, reply: Some(reply) },
        );
        in_time(said).await
    }

    /// Abandons a claim. `failure` stays for a caller who polls.
    pub(super) fn abandon(&self, state: &HttpState, key: (&str, &str), claim: KeyClaim, failure: Option<Failure<'_>>) {
        let value =
            failure.map_or_else(Vec::new, |failure| entry::failed(failure.request_hash, failure.status, &failure.body));
        let names = self.names(key.0, key.1);
        let (token, operation, life_ms) = (Some(claim.token), KeyOperation::Abandon, PENDING_LIFE_MS);
        operation_queue::send(state, QueuedOperation { names, operation, value, life_ms, token, reply: None });
    }

    pub(super) async fn read(&self, state: &HttpState, owner: &str, key: &str) -> KeyReply {
        let (reply, said) = oneshot::channel();
        let names = self.names(owner, key);
        let (operation, value, life_ms, token) = (KeyOperation::Read, Vec::new(), 0, None);
        operation_queue::send(state, QueuedOperation { names, operation, value, life_ms, token, reply: Some(reply) });
        in_time(said).await
    }

    /// Owners and keys of a bucket that have been pending for that long; `None` when Redis does not answer.
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
        let said = state.redis.eval(&call).await.map(|answer| answer.value);
        self.note(said.as_ref().err());
        let Value::Array(entries) = said.ok()? else { return Some(Vec::new()) };
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
    fn note(&self, failure: Option<&LinkError>) {
        let Some(cause) = failure else { return };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|said| said.elapsed() >= SAY_AGAIN_AFTER) {
            *said = Some(Instant::now());
            tracing::warn!(%cause, "store idempotency keys in Redis failed; Postgres has them all");
        }
    }
}

pub(super) struct Failure<'a> {
    pub(super) request_hash: &'a [u8; 32],
    pub(super) status: u16,
    pub(super) body: Bytes,
}

async fn in_time(said: oneshot::Receiver<KeyReply>) -> KeyReply {
    tokio::time::timeout(DEADLINE, said).await.ok().and_then(Result::ok).unwrap_or(KeyReply::Unavailable)
}

/// Owners are hashes in hex; anything else shares the first bucket.
fn bucket_of(owner: &str) -> u8 {
    let digit = owner.chars().next().and_then(|first| first.to_digit(u32::from(BUCKETS)));
    digit.unwrap_or(0) as u8
}

/// A replica that was silent for this long is taken for dead. If it lives, cut off from Redis, no harm is done:
/// its work and that of the replica that takes over meet at the rows in Postgres.
const REPLICA_LIFE: Duration = Duration::from_secs(5);
/// Interval of a replica's heartbeat.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Minimum age of a claim whose replica is considered dead: its last heartbeat may have been just before the claim, and a
/// little late.
pub(crate) const LAST_CLAIM_AGE_MS: i64 = (REPLICA_LIFE.as_millis() - 2 * SAY_EVERY.as_millis()) as i64;

const SAY: &str = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])";
const ASK: &str = "return redis.call('EXISTS', KEYS[1])";

impl SharedKeys {
    fn name_of(&self, replica: &Id) -> String {
        format!("{}replica:{}", self.prefix, hex::encode(replica))
    }

    /// True if the replica that made this claim is alive, or if Redis does not answer.
    pub(crate) async fn is_alive(&self, state: &HttpState, claim: KeyClaim) -> bool {
        let asked = LuaScript::new(ASK);
        let call = asked.call(&[self.name_of(&claim.replica)]);
        !matches!(state.redis.eval(&call).await, Ok(answer) if answer.value == Value::Int(0))
    }
}

/// Says that this replica is alive, until the server stops.
pub(crate) async fn announce_forever(state: HttpState) {
    let shared = &state.idempotency.shared;
    let say = LuaScript::new(SAY);
    let name = shared.name_of(&shared.replica);
    let mut rounds = PeriodicLoop::every(&state.stop, SAY_EVERY);
    while rounds.wait_next().await {
        let mut call = say.call(&[&name]);
        call.arg(REPLICA_LIFE.as_millis() as u64);
        shared.note(state.redis.eval(&call).await.err().as_ref());
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

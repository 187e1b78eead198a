//! The queue of key operations for Redis, sent in batches: the first leaves at once, those that arrive during its call share
//! the next. The cost of a call is shared, and the keys of one process reach Redis in the order in which they were sent: a
//! claim never overtakes the operation that abandoned it.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::VariantName;
use futures::future::join_all;
use redis::Value;
use strum::IntoStaticStr;
use tokio::sync::oneshot;

use super::entry::{Id, KeyEntry};
use crate::HttpState;
use platform::batcher::{BatchLimits, Batcher};

/// Maximum number of keys per call: larger calls take longer than sharing saves.
const MAX_PER_CALL: usize = 64;
/// Maximum number of queued operations; one more is not sent at all, and Postgres has its state anyway.
const MAX_WAITING: usize = 8_192;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum KeyOperation {
    Claim,
    Complete,
    Abandon,
    Read,
}

#[derive(Debug)]
pub(crate) enum KeyReply {
    /// Done.
    Done,
    /// Not done: this entry exists.
    Exists(KeyEntry),
    /// There is no such entry.
    Absent,
    /// Redis did not answer.
    Unavailable,
}

/// The names of a key in Redis, of one Cluster slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyNames {
    /// Redis key of the entry.
    pub(super) entry: String,
    /// The list it is in while it is pending.
    pub(super) pending: String,
}

pub(super) struct QueuedOperation {
    pub(super) names: KeyNames,
    pub(super) operation: KeyOperation,
    /// The entry to be written; empty for none.
    pub(super) value: Vec<u8>,
    /// Lifetime of the entry, milliseconds.
    pub(super) life_ms: i64,
    /// The token of the claim that the operation is about.
    pub(super) token: Option<Id>,
    /// Receives the answer, if the caller waits for it.
    pub(super) reply: Option<oneshot::Sender<KeyReply>>,
}

pub(super) const fn queue() -> Batcher<QueuedOperation> {
    let (max_batch, max_queue) = (MAX_PER_CALL, MAX_WAITING);
    Batcher::new(BatchLimits { max_batch, max_queue, linger: Duration::ZERO, workers: 1 })
}

/// Queues an operation; when the queue is full, a waiting caller gets [`KeyReply::Unavailable`].
pub(super) fn send(state: &HttpState, operation: QueuedOperation) {
    let start = || drop(state.tasks.spawn(serve(state.clone())));
    drop(state.idempotency.shared.operations.add(operation, start));
}

async fn serve(state: HttpState) {
    let mut worker = state.idempotency.shared.operations.worker();
    while let Some(mut batch) = worker.next_batch().await {
        // Dropped: operations whose caller has timed out and continued without Redis.
        batch.retain(|operation| !operation.reply.as_ref().is_some_and(oneshot::Sender::is_closed));
        if !batch.is_empty() {
            join_all(split_by_slot(&state, batch).into_iter().map(|batch| call(&state, batch))).await;
        }
    }
}

/// Splits a batch into one call per Cluster slot; without a Cluster it stays one call.
fn split_by_slot(state: &HttpState, batch: Vec<QueuedOperation>) -> Vec<Vec<QueuedOperation>> {
    if !state.redis.has_slots() {
        return vec![batch];
    }
    let mut slots: BTreeMap<String, Vec<QueuedOperation>> = BTreeMap::new();
    for operation in batch {
        slots.entry(operation.names.pending.clone()).or_default().push(operation);
    }
    slots.into_values().collect()
}

async fn call(state: &HttpState, batch: Vec<QueuedOperation>) {
    let shared = &state.idempotency.shared;
    let keys: Vec<&str> = batch.iter().flat_map(|key| [key.names.entry.as_str(), key.names.pending.as_str()]).collect();
    let mut call = shared.keys_script.call(&keys);
    call.arg(batch.len());
    for key in &batch {
        let token = key.token.as_ref().map_or(&[][..], |token| &token[..]);
        call.arg(key.operation.as_str()).arg(&key.value[..]).arg(key.life_ms).arg(token);
    }
    let reply = state.redis.eval(&call).await.map(|answer| answer.value);
    shared.log_failure(reply.as_ref().err());
    let answers = match reply {
        Ok(Value::Array(answers)) if answers.len() == batch.len() => answers,
        Ok(other) => {
            tracing::error!(?other, "read the answer of keys.lua failed: unexpected value");
            return;
        }
        // Each waiting caller gets `Unavailable`, because its sender is dropped.
        Err(_) => return,
    };
    for (answer, key) in answers.into_iter().zip(batch) {
        // The caller may have stopped waiting.
        let _ = key.reply.map(|reply| reply.send(read(&answer)));
    }
}

fn read(answer: &Value) -> KeyReply {
    match answer {
        Value::BulkString(bytes) if bytes == b"O" => KeyReply::Done,
        Value::BulkString(bytes) if bytes.is_empty() => KeyReply::Absent,
        Value::BulkString(bytes) => KeyEntry::read(bytes).map_or(KeyReply::Absent, KeyReply::Exists),
        _ => KeyReply::Absent,
    }
}

//! The queue of key operations for Redis, sent in batches: the first leaves at once, those that arrive during its call share
//! the next. The cost of a call is shared, and the keys of one process reach Redis in the order in which they were sent: a
//! claim never overtakes the operation that abandoned it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::VariantName;
use futures::future::join_all;
use redis::Value;
use strum::IntoStaticStr;
use tokio::sync::oneshot;

use super::entry::{Id, KeyEntry};
use crate::HttpState;

/// Keys per call: with more, the others wait longer for Redis than sharing saves.
const MAX_PER_CALL: usize = 64;
/// Maximum number of queued operations; one more is not sent at all, and Postgres has its state anyway.
const MAX_WAITING: usize = 8_192;

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum KeyOperation {
    Claim,
    Complete,
    Abandon,
    Read,
}

/// Redis' answer to an operation.
#[derive(Debug)]
pub(in crate::idempotency) enum KeyReply {
    /// Done.
    Done,
    /// Not done: this entry exists.
    Exists(KeyEntry),
    /// There is nothing.
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

/// A queued operation.
pub(super) struct QueuedOperation {
    pub(super) names: KeyNames,
    pub(super) operation: KeyOperation,
    /// The entry to be written; empty for none.
    pub(super) value: Vec<u8>,
    /// Lifetime of the entry, milliseconds.
    pub(super) life_ms: i64,
    /// Of the claim meant.
    pub(super) token: Option<Id>,
    /// Receives the answer, if the caller waits for it.
    pub(super) reply: Option<oneshot::Sender<KeyReply>>,
}

/// The queued operations.
#[derive(Default)]
pub(super) struct OperationQueue(Mutex<QueueState>);

#[derive(Default)]
struct QueueState {
    keys: VecDeque<QueuedOperation>,
    /// True while a task sends the queue.
    served: bool,
}

impl OperationQueue {
    /// Queues an operation; when the queue is full, a waiting caller gets [`KeyReply::Unavailable`].
    pub(super) fn send(&self, state: &HttpState, traveller: QueuedOperation) {
        let mut waiting = self.lock();
        if waiting.keys.len() >= MAX_WAITING {
            return;
        }
        waiting.keys.push_back(traveller);
        if !std::mem::replace(&mut waiting.served, true) {
            state.tasks.spawn(serve(state.clone()));
        }
    }

    /// The next batch; if it is empty, the sending task ends.
    fn next(&self) -> Vec<QueuedOperation> {
        let mut waiting = self.lock();
        let mut batch = Vec::with_capacity(waiting.keys.len().min(MAX_PER_CALL));
        while batch.len() < MAX_PER_CALL
            && let Some(traveller) = waiting.keys.pop_front()
        {
            // A caller that went on without Redis needs no claim there any more.
            if !traveller.reply.as_ref().is_some_and(oneshot::Sender::is_closed) {
                batch.push(traveller);
            }
        }
        waiting.served = !batch.is_empty();
        batch
    }

    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the line again should its server die.
struct Serving<'a>(&'a OperationQueue);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        if std::thread::panicking() {
            waiting.keys.clear();
            waiting.served = false;
        }
    }
}

/// Sends batches until the queue is empty.
async fn serve(state: HttpState) {
    let line = &state.idempotency.shared.line;
    let _serving = Serving(line);
    loop {
        let batch = line.next();
        if batch.is_empty() {
            return;
        }
        join_all(by_slot(&state, batch).into_iter().map(|batch| call(&state, batch))).await;
    }
}

/// One call for all, or on a Cluster one for each slot.
fn by_slot(state: &HttpState, batch: Vec<QueuedOperation>) -> Vec<Vec<QueuedOperation>> {
    if !state.redis.has_slots() {
        return vec![batch];
    }
    let mut slots: BTreeMap<String, Vec<QueuedOperation>> = BTreeMap::new();
    for traveller in batch {
        slots.entry(traveller.names.pending.clone()).or_default().push(traveller);
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
    let said = state.redis.eval(&call).await.map(|answer| answer.value);
    shared.note(said.as_ref().err());
    let answers = match said {
        Ok(Value::Array(answers)) if answers.len() == batch.len() => answers,
        Ok(other) => {
            tracing::error!(?other, "unexpected answer of keys.lua");
            return;
        }
        // Dropped replies say it.
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

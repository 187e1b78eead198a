//! The queue of key operations for Redis, sent in batches: the first leaves at once, those that arrive during its call share
//! the next. The cost of a call is shared, and the keys of one process reach Redis in the order in which they were sent: a
//! claim never overtakes the operation that abandoned it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use redis::Value;
use tokio::sync::oneshot;

use super::entry::{Entry, Id};
use crate::HttpState;
use platform::batcher::{BatchLimits, Batcher};

/// Keys per call: with more, the others wait longer for Redis than sharing saves.
const MAX_PER_CALL: usize = 64;
/// Maximum number of queued operations; one more is not sent at all, and Postgres has its state anyway.
const MAX_WAITING: usize = 8_192;

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Claim,
    Complete,
    Abandon,
    Read,
}

impl Wish {
    const fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Complete => "complete",
            Self::Abandon => "abandon",
            Self::Read => "read",
        }
    }
}

/// Redis' answer to an operation.
#[derive(Debug)]
pub(in crate::idempotency) enum Said {
    /// Done.
    Done,
    /// Not done: this entry exists.
    Stands(Entry),
    /// There is nothing.
    Nothing,
    /// Redis did not answer.
    Away,
}

/// The names of a key in Redis, of one Cluster slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Redis key of the entry.
    pub(super) entry: String,
    /// The list it is in while it is pending.
    pub(super) pending: String,
}

/// A queued operation.
pub(super) struct Traveller {
    pub(super) names: Names,
    pub(super) wish: Wish,
    /// The entry to be written; empty for none.
    pub(super) value: Vec<u8>,
    /// Lifetime of the entry, milliseconds.
    pub(super) life_ms: i64,
    /// Of the claim meant.
    pub(super) token: Option<Id>,
    /// Receives the answer, if the caller waits for it.
    pub(super) reply: Option<oneshot::Sender<Said>>,
}

/// Creates the queue.
pub(super) const fn queue() -> Batcher<Traveller> {
    let (max_batch, max_queue) = (MAX_PER_CALL, MAX_WAITING);
    Batcher::new(BatchLimits { max_batch, max_queue, linger: Duration::ZERO, workers: 1 })
}

/// Queues an operation; when the queue is full, a waiting caller gets [`Said::Away`].
pub(super) fn send(state: &HttpState, traveller: Traveller) {
    let start = || drop(state.tasks.spawn(serve(state.clone())));
    drop(state.idempotency.shared.line.add(traveller, start));
}

/// Sends batches until the queue is empty.
async fn serve(state: HttpState) {
    let mut worker = state.idempotency.shared.line.worker();
    while let Some(mut batch) = worker.next_batch().await {
        // A caller that went on without Redis needs no claim there any more.
        batch.retain(|traveller| !traveller.reply.as_ref().is_some_and(oneshot::Sender::is_closed));
        if !batch.is_empty() {
            join_all(by_slot(&state, batch).into_iter().map(|batch| call(&state, batch))).await;
        }
    }
}

/// One call for all, or on a Cluster one for each slot.
fn by_slot(state: &HttpState, batch: Vec<Traveller>) -> Vec<Vec<Traveller>> {
    if !state.redis.has_slots() {
        return vec![batch];
    }
    let mut slots: BTreeMap<String, Vec<Traveller>> = BTreeMap::new();
    for traveller in batch {
        slots.entry(traveller.names.pending.clone()).or_default().push(traveller);
    }
    slots.into_values().collect()
}

async fn call(state: &HttpState, batch: Vec<Traveller>) {
    let shared = &state.idempotency.shared;
    let keys: Vec<&str> = batch.iter().flat_map(|key| [key.names.entry.as_str(), key.names.pending.as_str()]).collect();
    let mut call = shared.keys_script.call(&keys);
    call.arg(batch.len());
    for key in &batch {
        let token = key.token.as_ref().map_or(&[][..], |token| &token[..]);
        call.arg(key.wish.word()).arg(&key.value[..]).arg(key.life_ms).arg(token);
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

fn read(answer: &Value) -> Said {
    match answer {
        Value::BulkString(bytes) if bytes == b"O" => Said::Done,
        Value::BulkString(bytes) if bytes.is_empty() => Said::Nothing,
        Value::BulkString(bytes) => Entry::read(bytes).map_or(Said::Nothing, Said::Stands),
        _ => Said::Nothing,
    }
}

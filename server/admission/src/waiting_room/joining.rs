//! Batches joins: requests of the same moment take their numbers in one call. The first is sent at once; those that
//! arrive during its call share the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::waiting_room::MAX_TICKETS;
use tokio::sync::oneshot;

use super::room::ActiveRoom;
use super::sql;
use super::store::{self, NumberRange};
use crate::AdmissionState;
use http::{ApiResult, Code, Problem};

/// Joins per call.
const MAX_PER_CALL: usize = 1_024;
/// Maximum of queued joins; more are refused.
const MAX_WAITING: usize = 16_384;
/// Minimum block of numbers reserved in Postgres: at most so many are lost with Redis…
const BLOCK: u64 = 256;
/// …and more under load: enough for so many calls like the present one.
const CALLS_AHEAD: u64 = 4;
/// `Retry-After` of a full room.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Tries of a call: after raising the mark, after a rebuild, and once more.
const TRIES: u32 = 4;

type JoinReply = oneshot::Sender<ApiResult<u64>>;

#[derive(Default)]
pub(super) struct JoinQueue(Mutex<PendingJoins>);

#[derive(Default)]
struct PendingJoins {
    replies: Vec<JoinReply>,
    is_served: bool,
}

impl JoinQueue {
    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, PendingJoins> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the joins of the next call. Without any, marks the queue as unserved.
    fn next(&self) -> Vec<JoinReply> {
        let mut waiting = self.lock();
        let count = waiting.replies.len().min(MAX_PER_CALL);
        let batch: Vec<JoinReply> = waiting.replies.drain(..count).collect();
        waiting.is_served = count > 0;
        batch
    }
}

/// Takes the next number. 503 if the queue is full, or a store cannot be reached.
pub(super) async fn take_number(state: &AdmissionState, room: &Arc<ActiveRoom>) -> ApiResult<u64> {
    let (reply, answer) = oneshot::channel();
    {
        let mut waiting = room.joining.lock();
        if waiting.replies.len() >= MAX_WAITING {
            return Err(overloaded());
        }
        waiting.replies.push(reply);
        if !waiting.is_served {
            waiting.is_served = true;
            state.tasks.spawn(run_queue(state.clone(), Arc::clone(room)));
        }
    }
    answer.await.map_err(|_| Problem::internal(&"the task of a join queue ended early"))?
}

fn overloaded() -> Problem {
    Problem::new(Code::Overloaded, "Very many people are at the door right now. Please try again in a moment.")
}

/// Resets the queue of a task that panicked: its callers get an error, and the next join starts a new task.
struct QueueGuard<'a>(&'a JoinQueue);

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.lock() = PendingJoins::default();
        }
    }
}

async fn run_queue(state: AdmissionState, room: Arc<ActiveRoom>) {
    let _guard = QueueGuard(&room.joining);
    loop {
        let mut batch = room.joining.next();
        if batch.is_empty() {
            return;
        }
        // A caller that disconnected gets no number, because no other caller could use it.
        batch.retain(|reply| !reply.is_closed());
        assign_numbers(&state, &room, batch).await;
    }
}

async fn assign_numbers(state: &AdmissionState, room: &ActiveRoom, mut batch: Vec<JoinReply>) {
    while !batch.is_empty() {
        match take_numbers(state, room, batch.len() as u64).await {
            Ok(NumberRange { first, count, .. }) => {
                let served = usize::try_from(count).unwrap_or(usize::MAX).min(batch.len());
                for (reply, number) in batch.drain(..served).zip(first..) {
                    // The receiver may be gone; then the number stays unused.
                    let _ = reply.send(Ok(number));
                }
            }
            Err(problem) => return batch.into_iter().for_each(|reply| drop(reply.send(Err(problem.clone())))),
        }
    }
}

/// Takes some numbers, at least one.
async fn take_numbers(state: &AdmissionState, room: &ActiveRoom, people: u64) -> ApiResult<NumberRange> {
    if room.take_suspect() {
        // Other replicas may have given out numbers that Redis has lost; all of them are below the mark.
        let row = sql::load_room(&state.pg, room.id).await.inspect_err(|_| room.mark_suspect())?;
        room.apply_row(&row);
        room.raise_floor(row.reserved());
    }
    for _ in 0..TRIES {
        match store::join(state, room, people).await? {
            Some(given) if given.count > 0 => return Ok(given),
            Some(given) if given.is_full => {
                let detail = "The waiting room is full. It takes others as soon as people are called or leave.";
                return Err(Problem::new(Code::WaitingListFull, detail).with_retry_after(FULL_RETRY_AFTER));
            }
            // The mark is raised in Postgres first: a number is never given out above it.
            Some(given) => {
                let mark = (given.first + BLOCK.max(CALLS_AHEAD * people)).min(MAX_TICKETS);
                room.raise_reserved(sql::reserve(&state.pg, room.id, mark).await?);
            }
            None => store::rebuild(state, room).await?,
        }
    }
    tracing::warn!(room = %room.id, "take numbers of a waiting room failed after all tries");
    Err(overloaded())
}

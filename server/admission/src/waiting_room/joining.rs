//! People who join at the same moment take one step of the counter together. The first leaves at once; those who
//! come while its call is on its way share the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::waiting_room::MAX_TICKETS;
use tokio::sync::oneshot;

use super::room::Room;
use super::store::Given;
use super::{rebuild, sql, store};
use crate::AdmissionState;
use http::{Code, Problem};

/// People who take a step together.
const MAX_PER_CALL: usize = 1_024;
/// People who may wait for a step; "come back in a moment" is an answer.
const MAX_WAITING: usize = 16_384;
/// Numbers Postgres is told of at a time, at least: what may be nobody's when Redis forgets…
const BLOCK: u64 = 256;
/// …and more where many come: enough for so many steps like this one.
const STEPS_AHEAD: u64 = 4;
/// `Retry-After` of a full room.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(60);
/// How often a step is tried: past the mark, past a room that was lost, and once more.
const TRIES: u32 = 4;

type Reply = oneshot::Sender<Result<u64, Problem>>;

/// Who waits for the next step.
#[derive(Default)]
pub(super) struct Joining(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    replies: Vec<Reply>,
    is_served: bool,
}

impl Joining {
    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who take the next step; none means that nobody is served any more.
    fn next(&self) -> Vec<Reply> {
        let mut waiting = self.lock();
        let count = waiting.replies.len().min(MAX_PER_CALL);
        let batch: Vec<Reply> = waiting.replies.drain(..count).collect();
        waiting.is_served = count > 0;
        batch
    }
}

/// The next number.
///
/// # Errors
/// 503 when too many wait, or a store cannot be reached.
pub(super) async fn take_number(state: &AdmissionState, room: &Arc<Room>) -> Result<u64, Problem> {
    let (reply, answer) = oneshot::channel();
    {
        let mut waiting = room.joining.lock();
        if waiting.replies.len() >= MAX_WAITING {
            return Err(crowded());
        }
        waiting.replies.push(reply);
        if !waiting.is_served {
            waiting.is_served = true;
            state.tasks.spawn(serve(state.clone(), Arc::clone(room)));
        }
    }
    answer.await.map_err(|_| Problem::internal(&"a line at the door was left unserved"))?
}

fn crowded() -> Problem {
    Problem::new(Code::Overloaded, "Very many people are at the door right now. Please try again in a moment.")
}

/// Opens the line again for the next one should we die, and tells those in it.
struct Serving<'a>(&'a Joining);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.lock() = Waiting::default();
        }
    }
}

async fn serve(state: AdmissionState, room: Arc<Room>) {
    let _serving = Serving(&room.joining);
    loop {
        let mut batch = room.joining.next();
        if batch.is_empty() {
            return;
        }
        // Whoever hung up gets no number that nobody would know of.
        batch.retain(|reply| !reply.is_closed());
        hand_out(&state, &room, batch).await;
    }
}

async fn hand_out(state: &AdmissionState, room: &Room, mut batch: Vec<Reply>) {
    while !batch.is_empty() {
        match step(state, room, batch.len() as u64).await {
            Ok(Given { first, count, .. }) => {
                let served = usize::try_from(count).unwrap_or(usize::MAX).min(batch.len());
                for (reply, number) in batch.drain(..served).zip(first..) {
                    // Nobody listening any more: a number stays nobody's.
                    let _ = reply.send(Ok(number));
                }
            }
            Err(problem) => return batch.into_iter().for_each(|reply| drop(reply.send(Err(problem.clone())))),
        }
    }
}

/// Some numbers, one at least.
async fn step(state: &AdmissionState, room: &Room, people: u64) -> Result<Given, Problem> {
    if room.was_in_doubt() {
        // Others may have given out what we never saw and Redis has lost: all of it is below the mark.
        let row = sql::one(&state.pg, room.id).await.inspect_err(|_| room.doubt())?;
        room.learn(&row);
        room.go_on_behind(row.reserved());
    }
    for _ in 0..TRIES {
        match store::join(state, room, people).await? {
            Some(given) if given.count > 0 => return Ok(given),
            Some(given) if given.is_full => {
                let detail = "The waiting room is full. It takes others as soon as people are called or leave.";
                return Err(Problem::new(Code::WaitingListFull, detail).with_retry_after(FULL_RETRY_AFTER));
            }
            // The mark first, in Postgres: a number is never given out before it stands there.
            Some(given) => {
                let mark = (given.first + BLOCK.max(STEPS_AHEAD * people)).min(MAX_TICKETS);
                room.may_reach(sql::reserve(&state.pg, room.id, mark).await?);
            }
            None => rebuild::rebuild(state, room).await?,
        }
    }
    tracing::warn!(room = %room.id, "a waiting room gives out no numbers");
    Err(crowded())
}

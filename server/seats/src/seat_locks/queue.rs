//! Batches attempts per show. The first attempt is sent at once; those that arrive while its call is
//! running, or within a millisecond of it, share the next call. The fixed cost of a call (two wake-ups,
//! two system calls and the start of the script, five times the cost of an attempt) is then
//! paid once for many attempts, and the added wait is too short to notice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::{HoldLimits, LockAttempt, Refusal, SeatResult, StoredHold, with_map};
use crate::SeatsState;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use platform::telemetry::{self, LockOutcome, STEP};

/// Attempts per call: with more, other shows wait longer for Redis than the sharing saves.
const MAX_PER_CALL: usize = 64;
/// Minimum time between two calls of one show, with or without a reply to the first.
const BATCH_INTERVAL: Duration = Duration::from_millis(1);
/// Concurrent calls of one show.
const MAX_CALLS: usize = 8;
/// Queued attempts of one show; more are refused.
const MAX_WAITING: usize = 8_192;

type LockResult = ApiResult<SeatResult<StoredHold>>;

struct QueuedAttempt {
    /// The show and its terms at the time of the attempt; a call uses those of its last attempt.
    show: Arc<Show>,
    terms: HoldLimits,
    attempt: LockAttempt,
    reply: oneshot::Sender<LockResult>,
    span: Span,
}

/// Queues of attempts for the lock store, by show.
#[derive(Default)]
pub struct LockQueue {
    /// Contains a show while a task serves its queue.
    queues: Mutex<HashMap<Uuid, VecDeque<QueuedAttempt>>>,
}

impl LockQueue {
    /// Takes a hold, in one call with the other waiting attempts of this show.
    ///
    /// # Errors
    /// 503 if the queue is full, or the store cannot be reached.
    pub async fn lock(
        &self,
        state: &SeatsState,
        show: &Arc<Show>,
        terms: HoldLimits,
        attempt: LockAttempt,
    ) -> LockResult {
        let began = Instant::now();
        let (reply, answer) = oneshot::channel();
        let span = tracing::debug_span!(target: STEP, "lock");
        let waiting = QueuedAttempt { show: Arc::clone(show), terms, attempt, reply, span: span.clone() };
        let outcome = match self.enqueue(state, waiting) {
            Ok(()) => answer
                .instrument(span)
                .await
                .map_err(|_| Problem::internal(&"the task of a lock queue ended early"))
                .flatten(),
            Err(full) => Err(full),
        };
        telemetry::lock_attempt(outcome_label(&outcome), began.elapsed());
        outcome
    }

    fn enqueue(&self, state: &SeatsState, waiting: QueuedAttempt) -> ApiResult<()> {
        let show = waiting.show.id;
        let mut queues = self.lock_queues();
        if let Some(queue) = queues.get_mut(&show) {
            if queue.len() >= MAX_WAITING {
                let detail = "Very many people want these seats right now. Please try again in a moment.";
                return Err(Problem::new(Code::Overloaded, detail));
            }
            queue.push_back(waiting);
        } else {
            queues.insert(show, VecDeque::from([waiting]));
            state.tasks.spawn(run_queue(state.clone(), show));
        }
        Ok(())
    }

    /// Takes the attempts of the next call. Without any, removes the queue.
    fn next(&self, show: Uuid) -> Vec<QueuedAttempt> {
        let mut queues = self.lock_queues();
        let Some(queue) = queues.get_mut(&show) else { return Vec::new() };
        let mut batch = Vec::with_capacity(queue.len().min(MAX_PER_CALL));
        while batch.len() < MAX_PER_CALL
            && let Some(waiting) = queue.pop_front()
        {
            // A caller that disconnected must not get a hold it would not know about.
            if !waiting.reply.is_closed() {
                batch.push(waiting);
            }
        }
        if batch.is_empty() {
            queues.remove(&show);
        }
        batch
    }

    // Held for queue operations only, never across an await.
    fn lock_queues(&self) -> MutexGuard<'_, HashMap<Uuid, VecDeque<QueuedAttempt>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outcome_label(outcome: &LockResult) -> LockOutcome {
    match outcome {
        Ok(Ok(_)) => LockOutcome::Acquired,
        Ok(Err(Refusal::Taken(_) | Refusal::Full(_))) => LockOutcome::Conflict,
        Ok(Err(_)) => LockOutcome::Refused,
        Err(_) => LockOutcome::Failed,
    }
}

/// Removes the queue of a task that panicked: its callers get an error, and the next attempt starts a new task.
struct QueueGuard<'a> {
    queue: &'a LockQueue,
    show: Option<Uuid>,
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        if let Some(show) = self.show {
            self.queue.lock_queues().remove(&show);
        }
    }
}

/// Sends call after call until the queue is empty.
async fn run_queue(state: SeatsState, show: Uuid) {
    let mut guard = QueueGuard { queue: &state.lock_queue, show: Some(show) };
    let slots = Arc::new(tokio::sync::Semaphore::new(MAX_CALLS));
    loop {
        let interval = tokio::time::sleep(BATCH_INTERVAL);
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let batch = state.lock_queue.next(show);
        if batch.is_empty() {
            // Removed already, and possibly created again by now.
            guard.show = None;
            return;
        }
        let calling = state.clone();
        let mut call = Box::pin(async move {
            send_batch(&calling, batch).await;
            drop(slot);
        });
        tokio::pin!(interval);
        tokio::select! {
            biased;
            () = &mut call => interval.await,
            // A slow reply does not delay the next call.
            () = &mut interval => drop(state.tasks.spawn(call)),
        }
    }
}

/// The span of a call: a child of the first attempt's span, linked from the others.
fn call_span(batch: &[QueuedAttempt]) -> Span {
    let Some((first, others)) = batch.split_first() else { return Span::none() };
    let span = tracing::debug_span!(target: STEP, parent: &first.span, "lock call", attempts = batch.len());
    for waiting in others {
        span.follows_from(&waiting.span);
    }
    span
}

/// Sends one call and each attempt its answer.
async fn send_batch(state: &SeatsState, batch: Vec<QueuedAttempt>) {
    let Some((show, terms)) = batch.last().map(|waiting| (Arc::clone(&waiting.show), waiting.terms)) else { return };
    let span = call_span(&batch);
    let (attempts, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.attempt, waiting.reply)).unzip();
    // Before the call: a grant whose answer is lost must be swept as well.
    state.watched.add(show.id);
    // A receiver may be gone: a retry with the same key gets the same hold.
    match with_map(state, &show, || state.locks.lock(show.id, terms, &attempts)).instrument(span).await {
        Ok(answers) => {
            answers.into_iter().zip(replies).for_each(|(answer, reply)| drop(reply.send(Ok(answer))));
        }
        Err(problem) => replies.into_iter().for_each(|reply| drop(reply.send(Err(problem.clone())))),
    }
}

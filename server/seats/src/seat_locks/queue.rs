//! Batches attempts per show. The first attempt is sent at once; those that arrive while its call is
//! running, or within a millisecond of it, share the next call. The fixed cost of a call (two wake-ups,
//! two system calls and the start of the script, five times the cost of an attempt) is then
//! paid once for many attempts, and the added wait is too short to notice.
//!
//! Attempts at seats that seem to be taken, by the live map of this replica, have a queue of their own. The store first
//! reads which of them it would refuse, which costs far less than trying. The map alone refuses nothing: it lags behind
//! releases, and cannot know whether this request was granted before, by any replica (docs/decisions/0078).

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
/// Minimum time between two calls of one queue.
const BATCH_INTERVAL: Duration = Duration::from_millis(1);
/// A call without a reply delays the next one of its queue for this long at most.
const REPLY_WAIT: Duration = Duration::from_millis(10);
/// Concurrent calls of one queue.
const MAX_CALLS: usize = 8;
/// Attempts in one queue; more are refused.
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

/// The queue of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct QueueKey {
    show: Uuid,
    /// True if one of its seats was not available in the live map.
    seems_taken: bool,
}

/// Queues of attempts for the lock store, two a show.
#[derive(Default)]
pub struct LockQueue {
    /// Contains a queue while a task serves it.
    queues: Mutex<HashMap<QueueKey, VecDeque<QueuedAttempt>>>,
}

impl LockQueue {
    /// Takes a hold, in one call with the other waiting attempts of its queue.
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
        let key = QueueKey { show: show.id, seems_taken: state.hubs.seems_taken(show.id, &attempt.selection.seats) };
        let waiting = QueuedAttempt { show: Arc::clone(show), terms, attempt, reply, span: span.clone() };
        let outcome = match self.enqueue(state, key, waiting) {
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

    fn enqueue(&self, state: &SeatsState, key: QueueKey, waiting: QueuedAttempt) -> ApiResult<()> {
        let mut queues = self.lock_queues();
        if let Some(queue) = queues.get_mut(&key) {
            if queue.len() >= MAX_WAITING {
                let detail = "Very many people want these seats right now. Please try again in a moment.";
                return Err(Problem::new(Code::Overloaded, detail));
            }
            queue.push_back(waiting);
        } else {
            queues.insert(key, VecDeque::from([waiting]));
            state.tasks.spawn(run_queue(state.clone(), key));
        }
        Ok(())
    }

    /// Takes the attempts of the next call. Without any, removes the queue.
    fn next(&self, key: QueueKey) -> Vec<QueuedAttempt> {
        let mut queues = self.lock_queues();
        let Some(queue) = queues.get_mut(&key) else { return Vec::new() };
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
            queues.remove(&key);
        }
        batch
    }

    // Held for queue operations only, never across an await.
    fn lock_queues(&self) -> MutexGuard<'_, HashMap<QueueKey, VecDeque<QueuedAttempt>>> {
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
    key: Option<QueueKey>,
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.queue.lock_queues().remove(&key);
        }
    }
}

/// Sends call after call until the queue is empty.
async fn run_queue(state: SeatsState, key: QueueKey) {
    let mut guard = QueueGuard { queue: &state.lock_queue, key: Some(key) };
    let slots = Arc::new(tokio::sync::Semaphore::new(MAX_CALLS));
    loop {
        let (interval, reply_wait) = (tokio::time::sleep(BATCH_INTERVAL), tokio::time::sleep(REPLY_WAIT));
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let batch = state.lock_queue.next(key);
        if batch.is_empty() {
            // Removed already, and possibly created again by now.
            guard.key = None;
            return;
        }
        let calling = state.clone();
        let mut call = Box::pin(async move {
            send_batch(&calling, batch, key.seems_taken).await;
            drop(slot);
        });
        tokio::select! {
            biased;
            () = &mut call => interval.await,
            () = reply_wait => drop(state.tasks.spawn(call)),
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

/// Decides attempts in one call, or in two if they seem to be refused and some are not.
async fn decide(
    state: &SeatsState,
    show: &Arc<Show>,
    terms: HoldLimits,
    attempts: &[LockAttempt],
    seems_taken: bool,
) -> ApiResult<Vec<SeatResult<StoredHold>>> {
    if !seems_taken {
        let answers = with_map(state, show, || state.locks.lock(show.id, terms, attempts)).await?;
        // Without a hub no attempt seems taken.
        if answers.iter().any(|answer| matches!(answer, Err(Refusal::Taken(_)))) {
            state.hubs.open_unread(state, show);
        }
        return Ok(answers);
    }
    // A refusal is stored nowhere: nothing happened, so a retry with the same key is decided anew.
    let refusals = with_map(state, show, || state.locks.read_refusals(show.id, terms, attempts)).await?;
    let undecided = attempts.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
    let undecided: Vec<LockAttempt> = undecided.map(|(attempt, _)| attempt.clone()).collect();
    let answers = if undecided.is_empty() {
        Vec::new()
    } else {
        with_map(state, show, || state.locks.lock(show.id, terms, &undecided)).await?
    };
    let mut answers = answers.into_iter();
    Ok(refusals.into_iter().filter_map(|refusal| refusal.map(Err).or_else(|| answers.next())).collect())
}

/// Sends the calls of a batch, and each attempt its answer.
async fn send_batch(state: &SeatsState, batch: Vec<QueuedAttempt>, seems_taken: bool) {
    let Some((show, terms)) = batch.last().map(|waiting| (Arc::clone(&waiting.show), waiting.terms)) else { return };
    let span = call_span(&batch);
    let (attempts, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.attempt, waiting.reply)).unzip();
    // Before the call: a grant whose answer is lost must be swept as well.
    state.watched.add(show.id);
    // A receiver may be gone: a retry with the same key gets the same hold.
    match decide(state, &show, terms, &attempts, seems_taken).instrument(span).await {
        Ok(answers) => {
            answers.into_iter().zip(replies).for_each(|(answer, reply)| drop(reply.send(Ok(answer))));
        }
        Err(problem) => replies.into_iter().for_each(|reply| drop(reply.send(Err(problem.clone())))),
    }
}

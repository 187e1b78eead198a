//! Attempts for one show travel together. The first leaves at once; those that come in while its call is
//! on its way, or within a millisecond of it, wait and share the next. What a call costs besides its
//! attempts (two wake-ups, two system calls and the script's own start, five times an attempt) is then
//! paid once for many, and nobody waits longer than a tap takes to notice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::{Attempt, Held, Refusal, Terms, with_map};
use crate::SeatsState;
use catalogue::Show;
use http::{Code, Problem};
use platform::telemetry::{self, LockOutcome, STEP};

/// Attempts in one call: beyond, everyone else waits longer for Redis than the sharing saves.
const MAX_PER_CALL: usize = 64;
/// Calls of one show leave this far apart, whether the last reply has landed or not.
const GATHER: Duration = Duration::from_millis(1);
/// Calls of one show on their way at once.
const MAX_CALLS: usize = 8;
/// Attempts of one show that may wait; "queue full" is an answer.
const MAX_WAITING: usize = 8_192;

type Outcome = Result<Result<Held, Refusal>, Problem>;

struct Waiting {
    /// The show and what it grants, as of when they came: the last to come speaks for the call.
    show: Arc<Show>,
    terms: Terms,
    attempt: Attempt,
    reply: oneshot::Sender<Outcome>,
    /// What its request is doing, for those who trace it.
    span: Span,
}

/// Attempts on their way to the lock store, by show.
#[derive(Default)]
pub struct LockQueue {
    /// A show is in it while somebody serves its line.
    lines: Mutex<HashMap<Uuid, VecDeque<Waiting>>>,
}

impl LockQueue {
    /// Takes a hold, together with all others who want one in this show.
    ///
    /// # Errors
    /// 503 when too many wait already, or the store cannot be reached.
    pub async fn take(&self, state: &SeatsState, show: &Arc<Show>, terms: Terms, attempt: Attempt) -> Outcome {
        let began = Instant::now();
        let (reply, answer) = oneshot::channel();
        let span = tracing::debug_span!(target: STEP, "lock");
        let waiting = Waiting { show: Arc::clone(show), terms, attempt, reply, span: span.clone() };
        let outcome = match self.join(state, waiting) {
            Ok(()) => answer
                .instrument(span)
                .await
                .map_err(|_| Problem::internal(&"a line for seats was left unserved"))
                .flatten(),
            Err(full) => Err(full),
        };
        telemetry::lock_attempt(named(&outcome), began.elapsed());
        outcome
    }

    fn join(&self, state: &SeatsState, waiting: Waiting) -> Result<(), Problem> {
        let show = waiting.show.id;
        let mut lines = self.lock();
        if let Some(line) = lines.get_mut(&show) {
            if line.len() >= MAX_WAITING {
                let detail = "Very many people want these seats right now. Please try again in a moment.";
                return Err(Problem::new(Code::Overloaded, detail));
            }
            line.push_back(waiting);
        } else {
            lines.insert(show, VecDeque::from([waiting]));
            state.tasks.spawn(serve(state.clone(), show));
        }
        Ok(())
    }

    /// The next call's attempts; none means the line is closed.
    fn next(&self, show: Uuid) -> Vec<Waiting> {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(&show) else { return Vec::new() };
        let mut batch = Vec::with_capacity(line.len().min(MAX_PER_CALL));
        while batch.len() < MAX_PER_CALL
            && let Some(waiting) = line.pop_front()
        {
            // A caller who hung up must not get a hold they would never hear of.
            if !waiting.reply.is_closed() {
                batch.push(waiting);
            }
        }
        if batch.is_empty() {
            lines.remove(&show);
        }
        batch
    }

    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, VecDeque<Waiting>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(outcome: &Outcome) -> LockOutcome {
    match outcome {
        Ok(Ok(_)) => LockOutcome::Acquired,
        Ok(Err(Refusal::Taken(_) | Refusal::Full(_))) => LockOutcome::Conflict,
        Ok(Err(_)) => LockOutcome::Refused,
        Err(_) => LockOutcome::Failed,
    }
}

/// Closes a line whose server died, so that those in it are told and the next opens a new one.
struct Open<'a> {
    queue: &'a LockQueue,
    show: Option<Uuid>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(show) = self.show {
            self.queue.lock().remove(&show);
        }
    }
}

/// Sends call after call until nobody waits.
async fn serve(state: SeatsState, show: Uuid) {
    let mut open = Open { queue: &state.lock_queue, show: Some(show) };
    let slots = Arc::new(tokio::sync::Semaphore::new(MAX_CALLS));
    loop {
        let gathered = tokio::time::sleep(GATHER);
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let batch = state.lock_queue.next(show);
        if batch.is_empty() {
            // Closed already, and perhaps opened again by now.
            open.show = None;
            return;
        }
        let calling = state.clone();
        let mut call = Box::pin(async move {
            ask(&calling, batch).await;
            drop(slot);
        });
        tokio::pin!(gathered);
        tokio::select! {
            biased;
            () = &mut call => gathered.await,
            // A slow reply must not keep others waiting.
            () = &mut gathered => drop(state.tasks.spawn(call)),
        }
    }
}

/// The call is the first one's, and known to the others.
fn call_span(batch: &[Waiting]) -> Span {
    let Some((first, others)) = batch.split_first() else { return Span::none() };
    let span = tracing::debug_span!(target: STEP, parent: &first.span, "lock call", attempts = batch.len());
    for waiting in others {
        span.follows_from(&waiting.span);
    }
    span
}

/// One call, and each its answer.
async fn ask(state: &SeatsState, batch: Vec<Waiting>) {
    let Some((show, terms)) = batch.last().map(|waiting| (Arc::clone(&waiting.show), waiting.terms)) else { return };
    let span = call_span(&batch);
    let (attempts, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.attempt, waiting.reply)).unzip();
    // Before asking: a grant whose answer gets lost must end in time as well.
    state.watched.add(show.id);
    // Nobody listening any more is fine: a retry with the same key gets the same hold.
    match with_map(state, &show, || state.locks.lock(show.id, terms, &attempts)).instrument(span).await {
        Ok(answers) => {
            answers.into_iter().zip(replies).for_each(|(answer, reply)| drop(reply.send(Ok(answer))));
        }
        Err(problem) => replies.into_iter().for_each(|reply| drop(reply.send(Err(problem.clone())))),
    }
}

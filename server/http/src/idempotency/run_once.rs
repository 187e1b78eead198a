//! Does the work of a key once, whatever the number of retries and replicas.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::FromRef;
use axum::response::{IntoResponse, Response};
use domain::time::Timestamp;
use tokio::time::Instant;
use tracing::Instrument;

use super::flights::{FlightLeader, FlightRole, Progress};
use super::shared::{Failure, KeyClaim, KeyReply, KeyState, LAST_CLAIM_AGE_MS};
use super::{
    Answer, IdempotencyCount, Intent, PENDING_LIFE_MS, Prefer, key_reused, request_status, sql, still_running,
};
use crate::{ApiResult, Code, HttpState, Problem};
use platform::ids;
use platform::telemetry::STEP;

/// Callers who share a result in this process wait this long for it: as long as any request may take.
const SHARED_WAIT: Duration = Duration::from_secs(30);
/// Callers whose key is running on another replica wait this long.
const OTHERS_WAIT: Duration = Duration::from_secs(2);
/// Their polling interval and its full jitter, which keeps them out of step.
const LOOK_EVERY: Duration = Duration::from_millis(40);
const LOOK_JITTER_MS: u64 = 40;
/// The work itself may take this long, its gateway's deadline included. Its callers are gone by then.
const WORK_DEADLINE: Duration = Duration::from_secs(60);

/// The result for a caller.
#[derive(Debug)]
pub enum IdempotentResponse {
    /// The answer, fresh or not.
    Answer(Answer),
    /// The address to poll, for a caller who prefers not to wait: the work continues.
    Accepted(String),
}

impl IntoResponse for IdempotentResponse {
    fn into_response(self) -> Response {
        match self {
            Self::Answer(answer) => answer.into_response(),
            Self::Accepted(key) => request_status::accepted_response(&key),
        }
    }
}

/// Returns the answer of `intent`; runs `work` if there is none. The work continues when its callers disconnect. An `Ok` of
/// it must mean that the answer is committed, with its effect, under the intent's row in Postgres.
///
/// The caller's cookie may have been copied: a replay is given only if `check_caller` passes; the work itself makes that
/// check for a new answer.
///
/// # Errors
/// The error of the work or of `check_caller`; 422 when the key belongs to another request, 409 while it is running
/// elsewhere.
pub async fn run_once<S, W, F>(
    state: &S,
    intent: Intent,
    prefer: Prefer,
    check_caller: impl Future<Output = ApiResult<()>>,
    work: W,
) -> ApiResult<IdempotentResponse>
where
    S: Clone + Send + Sync + 'static,
    HttpState: FromRef<S>,
    W: FnOnce(S, Intent) -> F + Send + 'static,
    F: Future<Output = ApiResult<Answer>> + Send + 'static,
{
    let (own, state) = (state.clone(), HttpState::from_ref(state));
    let has_worked = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&has_worked);
    let work = move |intent| {
        noted.store(true, Ordering::Relaxed);
        work(own, intent)
    };
    let given = answer_once(&state, intent.clone(), prefer, work).await?;
    // An answer of this request's own work was kept with its bytes.
    if !has_worked.load(Ordering::Relaxed) {
        // An answer that this process keeps for the guest needs no store, in any spelling of the request.
        if !state.idempotency.cache.has_wording(&intent) {
            check_caller.await?;
        }
        state.idempotency.note_wording(&intent);
    }
    Ok(given)
}

/// The answer to an intent; the caller checks that it may be given.
async fn answer_once<W, F>(state: &HttpState, intent: Intent, prefer: Prefer, work: W) -> ApiResult<IdempotentResponse>
where
    W: FnOnce(Intent) -> F + Send + 'static,
    F: Future<Output = ApiResult<Answer>> + Send + 'static,
{
    let keys = &state.idempotency;
    if let Some(answer) = keys.known(&intent, state.clock.now())? {
        return Ok(IdempotentResponse::Answer(answer));
    }
    let key = intent.key.clone();
    let mut progress = match keys.flights.join(intent.id(), intent.request_hash) {
        FlightRole::Leader(lead, progress) => {
            // Its log and its trace are those of the request that came first.
            let span = tracing::debug_span!(target: STEP, "idempotency");
            state.tasks.spawn(run_leader(state.clone(), intent, prefer, lead, work).instrument(span).in_current_span());
            progress
        }
        FlightRole::Follower(progress) => {
            keys.counters.add(IdempotencyCount::Shared);
            progress
        }
        FlightRole::KeyReused => return Err(key_reused()),
        FlightRole::Full => {
            return Err(Problem::new(Code::Overloaded, "Please try again in a moment with the same key."));
        }
    };
    let is_enough = |progress: &Progress| match progress {
        Progress::Looking => false,
        Progress::Working => prefer.respond_async,
        Progress::Done(_) => true,
    };
    let seen = tokio::time::timeout(SHARED_WAIT, progress.wait_for(is_enough)).await;
    let seen = seen.map_err(|_| still_running())?.map(|seen| seen.clone());
    match seen {
        Ok(Progress::Done(result)) => result.map(IdempotentResponse::Answer),
        Ok(_) => Ok(IdempotentResponse::Accepted(key)),
        Err(_) => Err(Problem::internal(&"the work under a key ended without a result")),
    }
}

/// The leader of a key in this process: finds the answer or does the work, and publishes the result.
async fn run_leader<W, F>(state: HttpState, intent: Intent, prefer: Prefer, lead: FlightLeader, work: W)
where
    W: FnOnce(Intent) -> F + Send,
    F: Future<Output = ApiResult<Answer>> + Send,
{
    let asked_at = state.clock.now();
    let claim = state.idempotency.shared.new_claim();
    // An answer found here is another request's: the bytes of this one are noted once its caller may have the answer.
    let found = find_attempt(&state, &intent.without_bytes(), claim).await;
    let result = match found {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => {
            lead.begin_work();
            state.idempotency.counters.add(IdempotencyCount::Worked);
            // Boxed: a sale's is kilobytes, and a task is moved as a whole until it runs and once more when it is done.
            let work = Box::pin(work(intent.clone()));
            let result = tokio::time::timeout(WORK_DEADLINE, work).await;
            let result = result.unwrap_or_else(|_| Err(Problem::internal(&"the work under a key takes too long")));
            let result = prefer_stored_answer(&state, &intent, result).await;
            match &result {
                Ok(answer) => publish_answer(&state, &intent, answer, asked_at),
                // Claimed in Postgres by another, or left there by a dead one a moment ago. Our claim stays in
                // Redis, so that the next try takes it over here.
                Err(problem) if problem.code() == Code::StillRunning => {}
                Err(problem) => abandon_claim(&state, &intent, prefer, claim, problem),
            }
            result
        }
        // A claim left in Redis is ours and not running; the next attempt or the reconciler frees it.
        Err(problem) => Err(problem),
    };
    lead.publish(result);
}

/// Publishes a committed answer to the cache and to Redis.
fn publish_answer(state: &HttpState, intent: &Intent, answer: &Answer, asked_at: Timestamp) {
    let until = answer.kept_until.unwrap_or_else(|| asked_at.plus_ms(super::COMPLETED_LIFE_MS));
    state.idempotency.keep(intent, answer, asked_at);
    state.idempotency.shared.complete(state, intent, answer, until);
}

/// Ends a failed attempt. Failures are not stored; only a caller who asked not to wait can read it for a while.
fn abandon_claim(state: &HttpState, intent: &Intent, prefer: Prefer, claim: KeyClaim, problem: &Problem) {
    let failure = prefer.respond_async.then(|| {
        let (status, body) = problem.to_json();
        Failure { request_hash: &intent.request_hash, status: status.as_u16(), body: body.into() }
    });
    state.idempotency.shared.abandon(state, (&intent.owner, &intent.key), claim, failure);
}

/// A replica that was partitioned may have been considered dead and its key answered by another: then that answer counts,
/// and the work here had no effect.
async fn prefer_stored_answer(state: &HttpState, intent: &Intent, result: ApiResult<Answer>) -> ApiResult<Answer> {
    match result {
        Err(problem) if problem.code() == Code::Internal => {
            let stored = intent.replay(&state.pg, state.clock.now()).await;
            stored.ok().flatten().ok_or(problem)
        }
        other => other,
    }
}

/// Looks for a finished or running attempt. `None`: this replica does the work.
async fn find_attempt(state: &HttpState, intent: &Intent, claim: KeyClaim) -> ApiResult<Option<Answer>> {
    let keys = &state.idempotency;
    // The leader before us may have finished between our look and our becoming the leader.
    if let Some(answer) = keys.known(intent, state.clock.now())? {
        return Ok(Some(answer));
    }
    let until = Instant::now() + OTHERS_WAIT;
    let mut instead_of = None;
    loop {
        let theirs = match keys.shared.claim(state, intent, claim, instead_of).await {
            KeyReply::Unavailable => {
                keys.counters.add(IdempotencyCount::WithoutRedis);
                return Ok(None);
            }
            KeyReply::Done => {
                if instead_of.is_some() {
                    take_over(state, intent).await?;
                }
                return Ok(None);
            }
            KeyReply::Absent => return Ok(None),
            KeyReply::Exists(entry) if entry.request_hash != intent.request_hash => return Err(key_reused()),
            KeyReply::Exists(entry) => match entry.state {
                KeyState::Completed(answer) => {
                    keys.keep(intent, &answer, state.clock.now());
                    keys.counters.add(IdempotencyCount::Redis);
                    return Ok(Some(answer));
                }
                KeyState::Pending(theirs) => theirs,
                KeyState::Failed(..) => return Ok(None),
            },
        };
        // Ours from before cannot be running: we lead.
        instead_of = (keys.shared.is_ours(theirs) || !keys.shared.is_alive(state, theirs).await).then_some(theirs);
        if instead_of.is_none() {
            if Instant::now() >= until {
                return find_in_postgres(state, intent).await.map(Some);
            }
            tokio::time::sleep(LOOK_EVERY + Duration::from_millis(ids::jitter(LOOK_JITTER_MS))).await;
        }
    }
}

/// Redis reports another replica's claim; Postgres decides if it has ended.
async fn find_in_postgres(state: &HttpState, intent: &Intent) -> ApiResult<Answer> {
    let now = state.clock.now();
    match intent.replay(&state.pg, now).await? {
        Some(answer) => {
            publish_answer(state, intent, &answer, now);
            Ok(answer)
        }
        None => {
            state.idempotency.counters.add(IdempotencyCount::StillRunning);
            Err(still_running())
        }
    }
}

/// The replica that had this key is dead. What it left in Postgres unfinished runs out now.
async fn take_over(state: &HttpState, intent: &Intent) -> ApiResult<()> {
    let now = state.clock.now();
    let made_before = now.plus_ms(PENDING_LIFE_MS - LAST_CLAIM_AGE_MS);
    let was_left = sql::let_go(&state.pg, &intent.owner, &intent.key, &intent.request_hash, now, made_before).await?;
    state.idempotency.counters.add(IdempotencyCount::TakenOver);
    tracing::info!(was_left, "took over a request of a dead replica");
    Ok(())
}

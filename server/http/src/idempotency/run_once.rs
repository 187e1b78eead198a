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
use super::shared::{Failure, KeyClaim, KeyReply, KeyState, MIN_DEAD_CLAIM_AGE_MS};
use super::{
    Answer, IdempotencyCount, Intent, PENDING_LIFE_MS, Prefer, key_reused, request_status, sql, still_running,
};
use crate::{ApiResult, Code, HttpState, Problem};
use platform::ids;
use platform::telemetry::STEP;

/// Deadline of a caller who waits for the result of another request in this process: that of any request.
const SHARED_WAIT: Duration = Duration::from_secs(30);
/// Deadline of a caller whose key is running on another replica.
const OTHER_REPLICA_WAIT: Duration = Duration::from_secs(2);
/// Polling interval of such a caller, and the maximum of its random addition.
const POLL_EVERY: Duration = Duration::from_millis(40);
const POLL_JITTER_MS: u64 = 40;
/// Deadline of the work, gateway calls included; longer than that of its callers.
const WORK_DEADLINE: Duration = Duration::from_secs(60);

/// The result for a caller.
#[derive(Debug)]
pub enum IdempotentResponse {
    /// The answer: a new one or a replay.
    Answer(Answer),
    /// The key to poll with, for a caller who prefers not to wait; the work continues.
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
    let flag = Arc::clone(&has_worked);
    let work = move |intent| {
        flag.store(true, Ordering::Relaxed);
        work(own, intent)
    };
    let response = answer_once(&state, intent.clone(), prefer, work).await?;
    // The answer of this request's own work is cached with its fingerprint already.
    if !has_worked.load(Ordering::Relaxed) {
        // A visitor who has a cached answer to this request has passed the check: no store is needed.
        if !state.idempotency.cache.has_fingerprint(&intent) {
            check_caller.await?;
        }
        state.idempotency.add_fingerprint(&intent);
    }
    Ok(response)
}

/// The answer to an intent; the caller checks that it may be given.
async fn answer_once<W, F>(state: &HttpState, intent: Intent, prefer: Prefer, work: W) -> ApiResult<IdempotentResponse>
where
    W: FnOnce(Intent) -> F + Send + 'static,
    F: Future<Output = ApiResult<Answer>> + Send + 'static,
{
    let keys = &state.idempotency;
    if let Some(answer) = keys.find_cached(&intent, state.clock.now())? {
        return Ok(IdempotentResponse::Answer(answer));
    }
    let key = intent.key.clone();
    let mut progress = match keys.flights.join(intent.id(), intent.request_hash) {
        FlightRole::Leader(lead, progress) => {
            // The work logs and traces as part of the first request.
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
    let is_awaited = |progress: &Progress| match progress {
        Progress::Looking => false,
        Progress::Working => prefer.respond_async,
        Progress::Done(_) => true,
    };
    let seen = tokio::time::timeout(SHARED_WAIT, progress.wait_for(is_awaited)).await;
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
    // Without the fingerprint: it is added only after `check_caller` has passed.
    let found = find_attempt(&state, &intent.without_fingerprint(), claim).await;
    let result = match found {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => {
            lead.begin_work();
            state.idempotency.counters.add(IdempotencyCount::Worked);
            // Boxed: the future of a sale takes kilobytes, and a task is moved as a whole.
            let work = Box::pin(work(intent.clone()));
            let result = tokio::time::timeout(WORK_DEADLINE, work).await;
            let result = result.unwrap_or_else(|_| Err(Problem::internal(&"the work under a key takes too long")));
            let result = prefer_stored_answer(&state, &intent, result).await;
            match &result {
                Ok(answer) => publish_answer(&state, &intent, answer, asked_at),
                // Another replica, perhaps a dead one, has the claim in Postgres. Our claim stays in Redis, so that the next
                // attempt takes it over here.
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

/// Ends a failed attempt. The failure is stored for a while only if the caller polls for it.
fn abandon_claim(state: &HttpState, intent: &Intent, prefer: Prefer, claim: KeyClaim, problem: &Problem) {
    let failure = prefer.respond_async.then(|| {
        let (status, body) = problem.to_json();
        Failure { request_hash: &intent.request_hash, status: status.as_u16(), body: body.into() }
    });
    state.idempotency.shared.abandon(state, (&intent.owner, &intent.key), claim, failure);
}

/// Prefers the stored answer to an internal error: if this replica was partitioned, another may have taken over the key and
/// answered it, and the work here had no effect.
async fn prefer_stored_answer(state: &HttpState, intent: &Intent, result: ApiResult<Answer>) -> ApiResult<Answer> {
    match result {
        Err(problem) if problem.code() == Code::Internal => {
            let stored = intent.replay(&state.pg, state.clock.now()).await;
            stored.ok().flatten().ok_or(problem)
        }
        other => other,
    }
}

/// Finds the answer of a finished or running attempt; `None` if this replica must do the work.
async fn find_attempt(state: &HttpState, intent: &Intent, claim: KeyClaim) -> ApiResult<Option<Answer>> {
    let keys = &state.idempotency;
    // An earlier leader may have finished after the first lookup.
    if let Some(answer) = keys.find_cached(intent, state.clock.now())? {
        return Ok(Some(answer));
    }
    let until = Instant::now() + OTHER_REPLICA_WAIT;
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
        // An earlier claim of this replica cannot be running, because this request leads.
        instead_of = (keys.shared.is_ours(theirs) || !keys.shared.is_alive(state, theirs).await).then_some(theirs);
        if instead_of.is_none() {
            if Instant::now() >= until {
                return find_in_postgres(state, intent).await.map(Some);
            }
            tokio::time::sleep(POLL_EVERY + Duration::from_millis(ids::jitter(POLL_JITTER_MS))).await;
        }
    }
}

/// Finds the answer in Postgres while Redis has the claim of another replica.
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

/// Takes over the key of a dead replica: expires its claim in Postgres.
async fn take_over(state: &HttpState, intent: &Intent) -> ApiResult<()> {
    let now = state.clock.now();
    let max_expires_at = now.plus_ms(PENDING_LIFE_MS - MIN_DEAD_CLAIM_AGE_MS);
    let had_claim =
        sql::expire_claim(&state.pg, &intent.owner, &intent.key, &intent.request_hash, now, max_expires_at).await?;
    state.idempotency.counters.add(IdempotencyCount::TakenOver);
    tracing::info!(had_claim, "took over a request of a dead replica");
    Ok(())
}

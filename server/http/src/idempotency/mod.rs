//! Idempotency keys: a request that is retried with its key has one effect and gets the same answer each time. A key is
//! bound to its request and to its owner, and the answer is stored in the same Postgres transaction as the effect.
//!
//! Three layers; each only saves work for the next. The process caches completed answers (`process`) and lets equal
//! requests share one running result (`flights`). Redis (`shared`) shows other replicas that a key is running, and its
//! answer. The row in Postgres (`intent`, `sql`) is the truth and the lock: a second request with the key waits for it,
//! then replays. The first two layers store an answer only after its transaction has committed; they store no failures.
//!
//! `run_once` combines the layers. Not here: keys of holds, which are stored with the hold (docs/decisions/0004) and whose
//! answers are cached in the process only; and the keys sent to payment gateways (`payments`).

mod answer;
mod batch;
mod fingerprint;
mod flights;
mod intent;
mod key;
pub mod metrics;
mod process;
mod reconcile;
mod request_status;
mod run_once;
mod shared;
mod sql;

pub use self::metrics::{IdempotencyCount, IdempotencyCounters};
pub use answer::Answer;
pub use batch::{add_answers, add_claims, add_lookup, all_answered, all_keys_free, lost_claims, replay_all};
pub use fingerprint::Fingerprint;
pub use intent::Intent;
pub use key::{IdempotencyKey, Prefer, read_key};
pub use reconcile::reconcile_forever;
pub use request_status::{RequestStatus, RequestView, request_status, running_response};
pub use run_once::{IdempotentResponse, run_once};
pub use sql::purge_forever;

use domain::time::{MINUTE_MS, Timestamp};

use crate::{ApiResult, Code, HttpState, Problem};

/// Time after which the key of an unfinished request is free again.
const PENDING_LIFE_MS: i64 = 5 * MINUTE_MS;
/// Time for which an answer is stored under its key.
const COMPLETED_LIFE_MS: i64 = 24 * 60 * MINUTE_MS;
/// Time from the claim of a key to its `purge_at`, whether it is answered or not: by then it has usually expired. Rows are
/// purged in this order; `expires_at` decides whether a row is deleted (decision 60).
const KEPT_MS: i64 = PENDING_LIFE_MS + COMPLETED_LIFE_MS;

/// The idempotency keys of a replica: its cache, its running work and its link to Redis.
pub struct Idempotency {
    cache: process::ProcessCache,
    flights: flights::Flights,
    shared: shared::SharedKeys,
    /// Counters of outcomes.
    pub counters: IdempotencyCounters,
}

impl Idempotency {
    /// An empty cache and no running work. `prefix` is that of every Redis key.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self {
            cache: process::ProcessCache::default(),
            flights: flights::Flights::default(),
            shared: shared::SharedKeys::new(prefix),
            counters: IdempotencyCounters::default(),
        }
    }

    /// The cached answer to a request with the same bytes from the same visitor. Calls no store.
    #[must_use]
    pub fn find_replay(&self, fingerprint: &Fingerprint, now: Timestamp) -> Option<Answer> {
        let kept = self.cache.find_by_fingerprint(&fingerprint.digest, now)?;
        self.counters.add(IdempotencyCount::ReplayCache);
        Some(kept.answer.clone())
    }

    /// The cached answer to the same request, whatever its bytes. Calls no store.
    ///
    /// # Errors
    /// 422 when the key was used for another request.
    pub fn find_cached(&self, intent: &Intent, now: Timestamp) -> ApiResult<Option<Answer>> {
        let Some(kept) = self.cache.find(&intent.id(), now) else { return Ok(None) };
        if kept.request_hash != intent.request_hash {
            return Err(key_reused());
        }
        self.counters.add(IdempotencyCount::Process);
        Ok(Some(kept.answer.clone()))
    }

    /// Adds the fingerprint of a request whose cached answer was returned, so that [`Self::find_replay`] finds it.
    pub fn add_fingerprint(&self, intent: &Intent) {
        self.cache.add_fingerprint(intent);
    }

    /// Removes the fingerprints of visitors who were merged into accounts: [`Self::find_replay`] finds no answer of theirs.
    pub fn forget_fingerprints(&self, owners: impl IntoIterator<Item = String>, now: Timestamp) {
        self.cache.forget_fingerprints(owners, now);
    }

    /// Caches an answer in this process until it expires in the store: a day after `asked_at`.
    pub fn keep(&self, intent: &Intent, answer: &Answer, asked_at: Timestamp) {
        let until = answer.kept_until.unwrap_or_else(|| asked_at.plus_ms(COMPLETED_LIFE_MS));
        self.cache.keep(intent, answer, until, asked_at);
    }
}

/// Sends the heartbeat of this replica until the future is dropped, also while the server stops.
pub async fn announce_forever(state: HttpState) {
    shared::announce_forever(state).await;
}

fn still_running() -> Problem {
    Problem::new(Code::StillRunning, "Wait a moment, then send the same request again to get its answer.")
}

fn key_reused() -> Problem {
    Problem::new(
        Code::KeyReused,
        "Use a new Idempotency-Key for a new request; this one was used with another body or path.",
    )
}

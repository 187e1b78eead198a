//! Spent solutions, and visitors who are exempt because of one.
//!
//! `{puzzle:SHOW:OWNER}:spent:SALT` is the request a solution was spent on, until its challenge expires;
//! `{puzzle:SHOW:OWNER}:passed` exists while its visitor is exempt. Each visitor has an own hash tag, so that a
//! Cluster spreads the load: the slot of the show's seats is busy enough.

use std::time::Duration;

use domain::time::MINUTE_MS;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use redis::Value;
use uuid::Uuid;

use super::challenge::LIFE_MS;
use crate::AdmissionState;
use platform::redis_link::{LuaScript, ScriptCall};

/// Time for which a visitor is exempt in a show after a solution, milliseconds.
pub(super) const EXEMPT_MS: i64 = 10 * MINUTE_MS;
/// Timeout of Redis; after it this replica uses its own memory.
const DEADLINE: Duration = Duration::from_millis(250);
/// Maximum of solutions and visitors remembered locally; the oldest are evicted first.
const MAX_REMEMBERED: u64 = 100_000;

/// Spent solutions in Redis, with a local copy for its outages.
pub(super) struct SpentSolutions {
    prefix: String,
    spend: LuaScript,
    passes: LuaScript,
    /// Keys of solutions, and the requests they were spent on.
    local: Cache<String, Uuid>,
    /// Keys of exempt visitors.
    local_exempt: Cache<String, ()>,
}

impl SpentSolutions {
    /// `prefix` precedes every Redis key.
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            spend: LuaScript::new(include_str!("lua/spend.lua")),
            passes: LuaScript::new(include_str!("lua/passes.lua")),
            local: local_cache(LIFE_MS),
            local_exempt: local_cache(EXEMPT_MS),
        }
    }

    /// Spends a solution on a request and exempts its visitor. False if it was spent on another request.
    pub(super) async fn spend(&self, state: &AdmissionState, whose: (Uuid, &str), salt: u64, request: Uuid) -> bool {
        let (spent, passed) = (self.key(whose, &format!("spent:{salt:016x}")), self.key(whose, "passed"));
        let mut call = self.spend.call(&[&spent, &passed]);
        call.arg(request.simple().to_string()).arg(LIFE_MS).arg(EXEMPT_MS);
        let is_first = match run_script(state, &call).await {
            Some(answer) => answer,
            None => self.local.entry(spent).or_insert(request).await.into_value() == request,
        };
        if is_first {
            self.local_exempt.insert(passed, ()).await;
        }
        is_first
    }

    /// True if a visitor is exempt because of an earlier solution for this show.
    pub(super) async fn is_exempt(&self, state: &AdmissionState, show: Uuid, owner: &str) -> bool {
        let key = self.key((show, owner), "passed");
        if self.local_exempt.contains_key(&key) {
            return true;
        }
        run_script(state, &self.passes.call(&[&key])).await.unwrap_or(false)
    }

    fn key(&self, (show, owner): (Uuid, &str), name: &str) -> String {
        format!("{}{{puzzle:{show}:{owner}}}:{name}", self.prefix)
    }
}

/// Creates a cache whose entries live this long, milliseconds.
fn local_cache<V: Clone + Send + Sync + 'static>(life_ms: i64) -> Cache<String, V> {
    Cache::builder()
        .max_capacity(MAX_REMEMBERED)
        // A new entry evicts the oldest one; the default policy might reject it for entries that are read more often.
        .eviction_policy(EvictionPolicy::lru())
        .time_to_live(Duration::from_millis(life_ms.unsigned_abs()))
        .build()
}

/// Runs a script that answers 0 or 1; `None` if Redis does not answer in time.
async fn run_script(state: &AdmissionState, call: &ScriptCall<'_>) -> Option<bool> {
    match tokio::time::timeout(DEADLINE, state.redis.eval(call)).await {
        Ok(Ok(answer)) => match answer.value {
            Value::Int(flag @ (0 | 1)) => return Some(flag == 1),
            other => tracing::error!(answer = ?other, "a puzzle script gave an invalid answer"),
        },
        Ok(Err(cause)) => tracing::debug!(%cause, "spent puzzles are kept by this replica alone: Redis unavailable"),
        Err(_) => tracing::debug!("spent puzzles are kept by this replica alone: Redis timed out"),
    }
    None
}

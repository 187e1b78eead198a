//! Solutions that were used, and who passes because of one.
//!
//! `{puzzle:SHOW:OWNER}:spent:SALT` is the request a solution was used for, until its puzzle has run out;
//! `{puzzle:SHOW:OWNER}:passed` is there while its visitor is asked for no other. A tag for each visitor, so that a
//! Cluster spreads them: they need not lie where the show's seats are, which has enough to do.

use std::time::Duration;

use domain::time::MINUTE_MS;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use redis::Value;
use uuid::Uuid;

use super::challenge::LIFE_MS;
use crate::AdmissionState;
use platform::redis_link::{Call, LuaScript};

/// Who solved a puzzle is asked for no other in that show for so long, milliseconds.
pub(super) const PASSED_MS: i64 = 10 * MINUTE_MS;
/// Redis is waited for so long, then this replica goes by what it remembers itself.
const DEADLINE: Duration = Duration::from_millis(250);
/// Solutions and visitors remembered here at most; those longest ago are forgotten first.
const MAX_REMEMBERED: u64 = 100_000;

/// Which solutions were used, in Redis, and here for while it is away.
pub(super) struct Spent {
    prefix: String,
    spend: LuaScript,
    passes: LuaScript,
    /// Keys of solutions, and what they were used for.
    here: Cache<String, Uuid>,
    /// Keys of visitors who pass.
    passed_here: Cache<String, ()>,
}

impl Spent {
    /// `prefix` goes before every Redis key.
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            spend: LuaScript::new(include_str!("lua/spend.lua")),
            passes: LuaScript::new(include_str!("lua/passes.lua")),
            here: remembered(LIFE_MS),
            passed_here: remembered(PASSED_MS),
        }
    }

    /// Uses the solution of a visitor's puzzle for a request; whether it was used for no other. From then on they pass.
    pub(super) async fn spend(&self, state: &AdmissionState, whose: (Uuid, &str), salt: u64, request: Uuid) -> bool {
        let (spent, passed) = (self.key(whose, &format!("spent:{salt:016x}")), self.key(whose, "passed"));
        let mut call = self.spend.call(&[&spent, &passed]);
        call.arg(request.simple().to_string()).arg(LIFE_MS).arg(PASSED_MS);
        let is_first = match asked(state, &call).await {
            Some(answer) => answer,
            None => self.here.entry(spent).or_insert(request).await.into_value() == request,
        };
        if is_first {
            self.passed_here.insert(passed, ()).await;
        }
        is_first
    }

    /// Whether a visitor solved a puzzle of this show a while ago.
    pub(super) async fn passes(&self, state: &AdmissionState, show: Uuid, owner: &str) -> bool {
        let key = self.key((show, owner), "passed");
        if self.passed_here.contains_key(&key) {
            return true;
        }
        asked(state, &self.passes.call(&[&key])).await.unwrap_or(false)
    }

    fn key(&self, (show, owner): (Uuid, &str), name: &str) -> String {
        format!("{}{{puzzle:{show}:{owner}}}:{name}", self.prefix)
    }
}

/// Remembers for so long, milliseconds.
fn remembered<V: Clone + Send + Sync + 'static>(life_ms: i64) -> Cache<String, V> {
    Cache::builder()
        .max_capacity(MAX_REMEMBERED)
        // What comes new is never turned away for what was asked about more often.
        .eviction_policy(EvictionPolicy::lru())
        .time_to_live(Duration::from_millis(life_ms.unsigned_abs()))
        .build()
}

/// What a script says, yes or no; `None` when Redis does not answer in time.
async fn asked(state: &AdmissionState, call: &Call<'_>) -> Option<bool> {
    match tokio::time::timeout(DEADLINE, state.redis.eval(call)).await {
        Ok(Ok(answer)) => match answer.value {
            Value::Int(said @ (0 | 1)) => return Some(said == 1),
            other => tracing::error!(answer = ?other, "a puzzle script gave an invalid answer"),
        },
        Ok(Err(cause)) => tracing::debug!(%cause, "puzzles are remembered by this replica alone for now"),
        Err(_) => tracing::debug!("puzzles are remembered by this replica alone: Redis takes too long"),
    }
    None
}

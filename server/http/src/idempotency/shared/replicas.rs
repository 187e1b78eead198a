//! Liveness of replicas. A killed replica leaves its claims behind; other replicas free them before they expire.

use std::time::Duration;

use redis::Value;

use super::{Id, KeyClaim};
use crate::HttpState;
use platform::background::PeriodicLoop;
use platform::redis_link::LuaScript;

/// A replica that was silent for this long is taken for dead. If it lives, cut off from Redis, no harm is done:
/// its work and that of the replica that takes over meet at the rows in Postgres.
const REPLICA_LIFE: Duration = Duration::from_secs(5);
/// Interval of a replica's heartbeat.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Minimum age of a claim whose replica is considered dead: its last heartbeat may have been just before the claim, and a
/// little late.
pub(crate) const LAST_CLAIM_AGE_MS: i64 = (REPLICA_LIFE.as_millis() - 2 * SAY_EVERY.as_millis()) as i64;

const SAY: &str = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])";
const ASK: &str = "return redis.call('EXISTS', KEYS[1])";

impl super::SharedKeys {
    fn name_of(&self, replica: &Id) -> String {
        format!("{}replica:{}", self.prefix, hex::encode(replica))
    }

    /// True if the replica that made this claim is alive, or if Redis does not answer.
    pub(crate) async fn is_alive(&self, state: &HttpState, claim: KeyClaim) -> bool {
        let asked = LuaScript::new(ASK);
        let call = asked.call(&[self.name_of(&claim.replica)]);
        !matches!(state.redis.eval(&call).await, Ok(answer) if answer.value == Value::Int(0))
    }
}

/// Says that this replica is alive, until the server stops.
pub(crate) async fn announce_forever(state: HttpState) {
    let shared = &state.idempotency.shared;
    let say = LuaScript::new(SAY);
    let name = shared.name_of(&shared.replica);
    let mut rounds = PeriodicLoop::every(&state.stop, SAY_EVERY);
    while rounds.wait_next().await {
        let mut call = say.call(&[&name]);
        call.arg(REPLICA_LIFE.as_millis() as u64);
        shared.note(state.redis.eval(&call).await.err().as_ref());
    }
}

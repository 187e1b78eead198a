//! Which replicas are alive. One that was killed leaves its claims behind; nobody should have to wait
//! until they run out.

use std::time::Duration;

use redis::Value;

use super::{Claim, Id};
use crate::HttpState;
use platform::background::Rounds;
use platform::redis_link::LuaScript;

/// A replica that was silent for this long is taken for dead. If it lives, cut off from Redis, no harm is done:
/// its work and that of the replica that takes over meet at the rows in Postgres.
const REPLICA_LIFE: Duration = Duration::from_secs(5);
/// How often a replica says that it is alive.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// A claim is at least this old when the replica that made it is taken for dead: it may have said
/// that it is alive just before the claim, and a little late.
pub(in crate::idempotency) const LAST_CLAIM_AGE_MS: i64 = (REPLICA_LIFE.as_millis() - 2 * SAY_EVERY.as_millis()) as i64;

const SAY: &str = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])";
const ASK: &str = "return redis.call('EXISTS', KEYS[1])";

impl super::Shared {
    fn name_of(&self, replica: &Id) -> String {
        format!("{}replica:{}", self.prefix, hex::encode(replica))
    }

    /// Whether the replica that made this claim is alive. In doubt, it is.
    pub(in crate::idempotency) async fn is_alive(&self, state: &HttpState, claim: Claim) -> bool {
        let asked = LuaScript::new(ASK);
        let call = asked.call(&[self.name_of(&claim.replica)]);
        !matches!(state.redis.eval(&call).await, Ok(answer) if answer.value == Value::Int(0))
    }
}

/// Says that this replica is alive, until the server stops.
pub(in crate::idempotency) async fn announce_forever(state: HttpState) {
    let shared = &state.idempotency.shared;
    let say = LuaScript::new(SAY);
    let name = shared.name_of(&shared.replica);
    let mut rounds = Rounds::every(&state.stop, SAY_EVERY);
    while rounds.go_on().await {
        let mut call = say.call(&[&name]);
        call.arg(REPLICA_LIFE.as_millis() as u64);
        shared.note(state.redis.eval(&call).await.err().as_ref());
    }
}

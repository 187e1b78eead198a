//! The reconciler of Redis and Postgres: every replica compares a few keys per round; concurrent rounds are idempotent. An
//! entry that Redis lacks is written from Postgres; a different answer is logged.

use std::collections::HashSet;
use std::time::Duration;

use domain::time::{SECOND_MS, Timestamp};

use super::intent::{IntentId, id_of};
use super::shared::{BUCKETS, KeyClaim, KeyEntry, KeyReply, KeyState};
use super::sql::{self, ClaimPosition};
use super::{Answer, COMPLETED_LIFE_MS, IdempotencyCount, KEPT_MS};
use crate::{ApiResult, HttpState};
use platform::background::PeriodicLoop;

/// Interval of the comparison.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// Minimum age of a compared answer: Redis has it by then.
const MIN_COMPARED_AGE_MS: i64 = 3 * SECOND_MS;
/// Maximum number of keys compared in one round.
const MAX_ANSWERS: i64 = 500;
/// Maximum age of a compared claim; older ones are skipped: under load, sales have priority. A replay still finds their
/// answers in Postgres.
const MAX_COMPARED_AGE_MS: i64 = 60 * SECOND_MS;
/// Maximum number of unanswered keys that are compared again later.
const MAX_UNANSWERED: usize = 500;
/// Minimum age of a checked pending key: longer than any work takes.
const MIN_PENDING_AGE_MS: i64 = 10 * SECOND_MS;
/// Maximum number of pending keys of a bucket that are checked in one round.
const MAX_PENDING: usize = 50;
/// Maximum number of keys whose difference is logged; all are counted.
const MAX_LOGGED: usize = 1_000;

/// The progress of this replica's comparison.
struct Reconciliation {
    /// The last compared claim.
    last: ClaimPosition,
    /// Owners and keys that had no answer yet when they were due.
    unanswered: Vec<(String, String)>,
    /// Differences already logged.
    logged: HashSet<IntentId>,
}

/// Compares the stores once per round until the server stops.
pub async fn reconcile_forever(state: HttpState) {
    let mut rounds = PeriodicLoop::every(&state.stop, COMPARE_EVERY);
    let last = ClaimPosition::before(oldest_purge_at(&state));
    let mut reconciliation = Reconciliation { last, unanswered: Vec::new(), logged: HashSet::new() };
    while rounds.wait_next().await {
        for compared in [
            reconciliation.compare_late_answers(&state).await,
            reconciliation.compare_answers(&state).await,
            reconciliation.check_pending(&state).await,
        ] {
            if let Err(problem) = compared {
                // The cause is in the log; the next round continues from here.
                tracing::debug!(?problem, "compare idempotency keys failed");
            }
        }
    }
}

/// The `purge_at` of the oldest claim that is compared.
fn oldest_purge_at(state: &HttpState) -> Timestamp {
    state.clock.now().plus_ms(KEPT_MS - MAX_COMPARED_AGE_MS)
}

impl Reconciliation {
    /// Compares the answers of keys that were claimed since the last round.
    async fn compare_answers(&mut self, state: &HttpState) -> ApiResult<()> {
        let oldest_purge_at = oldest_purge_at(state);
        if self.last.purge_at < oldest_purge_at {
            self.skip_to(state, oldest_purge_at).await?;
        }
        let now = state.clock.now();
        let newest_purge_at = now.plus_ms(KEPT_MS - MIN_COMPARED_AGE_MS);
        for claimed in sql::claimed_after(&state.pg, &self.last, newest_purge_at, MAX_ANSWERS).await? {
            let (owner, key, row) = (claimed.named.owner, claimed.named.key, claimed.named.row);
            if !is_settled(&row, now) {
                if self.unanswered.len() < MAX_UNANSWERED {
                    self.unanswered.push((owner.clone(), key.clone()));
                }
            } else {
                match state.idempotency.shared.read(state, &owner, &key).await {
                    // Redis is down: the next round continues with this key.
                    KeyReply::Unavailable => return Ok(()),
                    reply => self.compare(state, (&owner, &key), row, reply).await?,
                }
            }
            self.last = ClaimPosition { purge_at: platform::clock::from_utc(claimed.purge_at), owner, key };
        }
        Ok(())
    }

    /// Compares keys that had no answer when they were due. Those that expire without an answer are dropped.
    async fn compare_late_answers(&mut self, state: &HttpState) -> ApiResult<()> {
        if self.unanswered.is_empty() {
            return Ok(());
        }
        let now = state.clock.now();
        let names: Vec<_> = self.unanswered.iter().map(|(owner, key)| (owner.as_str(), key.as_str())).collect();
        let mut connection = state.pg.acquire().await?;
        let mut rows = sql::find_all(&mut connection, &names, now).await?;
        drop(connection);
        let mut left = std::mem::take(&mut self.unanswered).into_iter();
        let mut compared = Ok(());
        for name in left.by_ref() {
            match rows.remove(&name) {
                None => {}
                Some(row) if !is_settled(&row, now) => self.unanswered.push(name),
                Some(row) => match state.idempotency.shared.read(state, &name.0, &name.1).await {
                    // Redis is down: the next round compares the remaining keys.
                    KeyReply::Unavailable => {
                        self.unanswered.push(name);
                        break;
                    }
                    reply => compared = self.compare(state, (&name.0, &name.1), row, reply).await,
                },
            }
            if compared.is_err() {
                break;
            }
        }
        self.unanswered.extend(left);
        compared
    }

    /// Skips older claims, because more were made than the comparison can follow; counts that.
    async fn skip_to(&mut self, state: &HttpState, purge_at: Timestamp) -> ApiResult<()> {
        let has_skipped = !sql::claimed_after(&state.pg, &self.last, purge_at, 1).await?.is_empty();
        self.last = ClaimPosition::before(purge_at);
        if has_skipped {
            state.idempotency.counters.add(IdempotencyCount::Skipped);
            tracing::debug!("compare idempotency keys skipped claims: more were made than it can follow");
        }
        Ok(())
    }

    /// Checks keys that have been pending for long: their answer may be missing in Redis, or their replica dead.
    async fn check_pending(&mut self, state: &HttpState) -> ApiResult<()> {
        let shared = &state.idempotency.shared;
        for bucket in 0..BUCKETS {
            let Some(due) = shared.due(state, bucket, MIN_PENDING_AGE_MS, MAX_PENDING).await else { return Ok(()) };
            for (owner, key) in due {
                let reply = shared.read(state, &owner, &key).await;
                // `read` removes a key in any other state from the pending list.
                let KeyReply::Exists(KeyEntry { state: KeyState::Pending(claim), .. }) = &reply else { continue };
                let claim = *claim;
                let mut connection = state.pg.acquire().await?;
                let row = sql::find(&mut connection, &owner, &key, state.clock.now()).await?;
                drop(connection);
                match row {
                    Some(row) if row.status.is_some() => self.compare(state, (&owner, &key), row, reply).await?,
                    // Claimed in Postgres too: if its replica is dead, a retry takes it over.
                    Some(_) => {}
                    None => free_if_dead(state, (&owner, &key), claim).await,
                }
            }
        }
        Ok(())
    }

    /// Compares an answer in Postgres with the entry in Redis, and writes an entry that is missing.
    async fn compare(
        &mut self,
        state: &HttpState,
        key: (&str, &str),
        row: sql::KeyRow,
        reply: KeyReply,
    ) -> ApiResult<()> {
        let Ok(request_hash) = <[u8; 32]>::try_from(row.request_hash.as_slice()) else { return Ok(()) };
        let until = platform::clock::from_utc(row.expires_at);
        let Some(answer) = row.answer()? else { return Ok(()) };
        let is_missing = match &reply {
            KeyReply::Absent => true,
            KeyReply::Exists(entry) if entry.request_hash != request_hash => false,
            KeyReply::Exists(entry) => match &entry.state {
                KeyState::Pending(_) | KeyState::Failed(..) => true,
                KeyState::Completed(theirs) if is_same_answer(theirs, &answer) => return Ok(()),
                KeyState::Completed(_) => false,
            },
            KeyReply::Done | KeyReply::Unavailable => return Ok(()),
        };
        if is_missing {
            if matches!(
                state.idempotency.shared.repair(state, key, &request_hash, &answer, until).await,
                KeyReply::Done
            ) {
                state.idempotency.counters.add(IdempotencyCount::Repaired);
            }
        } else {
            self.report(state, key);
        }
        Ok(())
    }

    /// Counts a key with different answers, and logs it once.
    fn report(&mut self, state: &HttpState, (owner, key): (&str, &str)) {
        state.idempotency.counters.add(IdempotencyCount::Diverged);
        let id = id_of(None, owner, key);
        if self.logged.len() < MAX_LOGGED && self.logged.insert(id) {
            tracing::error!(owner, "Redis and Postgres differ on an idempotency key of {owner}");
        }
    }
}

/// True if the key was answered long enough ago for Redis to have the answer.
fn is_settled(row: &sql::KeyRow, now: Timestamp) -> bool {
    let latest = now.plus_ms(COMPLETED_LIFE_MS - MIN_COMPARED_AGE_MS);
    row.status.is_some() && platform::clock::from_utc(row.expires_at) <= latest
}

/// Compares status and body; the expiry may differ by rounding.
fn is_same_answer(one: &Answer, other: &Answer) -> bool {
    (one.status(), one.body()) == (other.status(), other.body())
}

/// Frees a claim without a result if its replica is dead, or if it is ours and not running.
async fn free_if_dead(state: &HttpState, key: (&str, &str), claim: KeyClaim) {
    let (keys, id) = (&state.idempotency, id_of(None, key.0, key.1));
    let is_over = if keys.shared.is_ours(claim) {
        !keys.flights.contains(&id)
    } else {
        !keys.shared.is_alive(state, claim).await
    };
    if is_over {
        keys.shared.abandon(state, key, claim, None);
        keys.counters.add(IdempotencyCount::Repaired);
    }
}

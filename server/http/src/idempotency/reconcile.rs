//! The reconciler of Redis and Postgres: compares a few keys per round, on every replica; concurrent rounds are idempotent. An
//! entry that Redis lacks is written from Postgres; a contradiction is logged.

use std::collections::HashSet;
use std::time::Duration;

use domain::time::{SECOND_MS, Timestamp};

use super::intent::{IntentId, id_of};
use super::shared::{BUCKETS, KeyClaim, KeyEntry, KeyReply, KeyState};
use super::{Answer, COMPLETED_LIFE_MS, IdempotencyCount, KEPT_MS, sql};
use crate::{ApiResult, HttpState};
use platform::background::PeriodicLoop;

/// Interval of the comparison.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// Age at which a stored answer is compared: Redis has it by then.
const SETTLED_AFTER_MS: i64 = 3 * SECOND_MS;
/// Keys compared in one round, in the order of their claims…
const MAX_ANSWERS: i64 = 500;
/// …and maximum age of a compared key: under load, sales have priority over the comparison. A replay still finds an older one
/// in Postgres.
const GIVEN_UP_AFTER_MS: i64 = 60 * SECOND_MS;
/// Unanswered keys that are compared again; more are not.
const MAX_UNANSWERED: usize = 500;
/// Age at which a pending key is checked: longer than any work takes.
const PENDING_FOR_MS: i64 = 10 * SECOND_MS;
/// Pending keys of a bucket checked in one round.
const MAX_PENDING: usize = 50;
/// Keys whose difference is logged; more are only counted.
const MAX_LOGGED: usize = 1_000;

/// Progress of a replica's comparison.
struct Walk {
    /// Position in the order of claims: owner and key of the last compared key.
    after: (Timestamp, String, String),
    /// Keys that had no answer yet when they were compared.
    unanswered: Vec<(String, String)>,
    /// Differences already logged.
    logged: HashSet<IntentId>,
}

/// Runs until the server stops.
pub async fn reconcile_forever(state: HttpState) {
    let mut rounds = PeriodicLoop::every(&state.stop, COMPARE_EVERY);
    let after = (oldest(&state), String::new(), String::new());
    let mut walk = Walk { after, unanswered: Vec::new(), logged: HashSet::new() };
    while rounds.wait_next().await {
        for compared in [walk.late_answers(&state).await, walk.answers(&state).await, walk.pending(&state).await] {
            if let Err(problem) = compared {
                // Its cause is in the log; the next round goes on from here.
                tracing::debug!(?problem, "compare idempotency keys failed");
            }
        }
    }
}

/// The place of the oldest claim whose answer is compared.
fn oldest(state: &HttpState) -> Timestamp {
    state.clock.now().plus_ms(KEPT_MS - GIVEN_UP_AFTER_MS)
}

impl Walk {
    /// Answers of keys that were claimed since the last round: Redis has the same.
    async fn answers(&mut self, state: &HttpState) -> ApiResult<()> {
        let oldest = oldest(state);
        if self.after.0 < oldest {
            self.skip_to(state, oldest).await?;
        }
        let now = state.clock.now();
        for claimed in
            sql::claimed(&state.pg, &self.after, now.plus_ms(KEPT_MS - SETTLED_AFTER_MS), MAX_ANSWERS).await?
        {
            let (owner, key, row) = (claimed.named.owner, claimed.named.key, claimed.named.row);
            if !is_settled(&row, now) {
                if self.unanswered.len() < MAX_UNANSWERED {
                    self.unanswered.push((owner.clone(), key.clone()));
                }
            } else {
                match state.idempotency.shared.read(state, &owner, &key).await {
                    // When Redis is back it can be filled again; this round ends.
                    KeyReply::Unavailable => return Ok(()),
                    said => self.compare(state, (&owner, &key), row, said).await?,
                }
            }
            self.after = (platform::clock::from_utc(claimed.purge_at), owner, key);
        }
        Ok(())
    }

    /// The same of keys that were not answered when their turn came. Those that run out without an answer are forgotten.
    async fn late_answers(&mut self, state: &HttpState) -> ApiResult<()> {
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
                    // As above: the remaining keys are checked in the next round.
                    KeyReply::Unavailable => {
                        self.unanswered.push(name);
                        break;
                    }
                    said => compared = self.compare(state, (&name.0, &name.1), row, said).await,
                },
            }
            if compared.is_err() {
                break;
            }
        }
        self.unanswered.extend(left);
        compared
    }

    /// Too many to be compared in time.
    async fn skip_to(&mut self, state: &HttpState, oldest: Timestamp) -> ApiResult<()> {
        let skips = !sql::claimed(&state.pg, &self.after, oldest, 1).await?.is_empty();
        self.after = (oldest, String::new(), String::new());
        if skips {
            state.idempotency.counters.add(IdempotencyCount::Skipped);
            tracing::debug!("more answers stored than the comparison can follow");
        }
        Ok(())
    }

    /// Keys that have been pending for long: done, dead or forgotten.
    async fn pending(&mut self, state: &HttpState) -> ApiResult<()> {
        let shared = &state.idempotency.shared;
        for bucket in 0..BUCKETS {
            let Some(due) = shared.due(state, bucket, PENDING_FOR_MS, MAX_PENDING).await else { return Ok(()) };
            for (owner, key) in due {
                let said = shared.read(state, &owner, &key).await;
                // Reading takes anything else off the list.
                let KeyReply::Exists(KeyEntry { state: KeyState::Pending(claim), .. }) = &said else { continue };
                let claim = *claim;
                let mut connection = state.pg.acquire().await?;
                let row = sql::find(&mut connection, &owner, &key, state.clock.now()).await?;
                drop(connection);
                match row {
                    Some(row) if row.status.is_some() => self.compare(state, (&owner, &key), row, said).await?,
                    // Claimed in Postgres as well: a repeat takes it over, if its replica is dead.
                    Some(_) => {}
                    None => free_if_dead(state, (&owner, &key), claim).await,
                }
            }
        }
        Ok(())
    }

    /// An answer in Postgres against what Redis has of its key.
    async fn compare(
        &mut self,
        state: &HttpState,
        key: (&str, &str),
        row: sql::KeyRow,
        said: KeyReply,
    ) -> ApiResult<()> {
        let Ok(request_hash) = <[u8; 32]>::try_from(row.request_hash.as_slice()) else { return Ok(()) };
        let end = platform::clock::from_utc(row.expires_at);
        let Some(answer) = row.answer()? else { return Ok(()) };
        let is_missing = match &said {
            KeyReply::Absent => true,
            KeyReply::Exists(entry) if entry.request_hash != request_hash => false,
            KeyReply::Exists(entry) => match &entry.state {
                KeyState::Pending(_) | KeyState::Failed(..) => true,
                KeyState::Completed(theirs) if same(theirs, &answer) => return Ok(()),
                KeyState::Completed(_) => false,
            },
            KeyReply::Done | KeyReply::Unavailable => return Ok(()),
        };
        if is_missing {
            if matches!(state.idempotency.shared.repair(state, key, &request_hash, &answer, end).await, KeyReply::Done)
            {
                state.idempotency.counters.add(IdempotencyCount::Repaired);
            }
        } else {
            self.report(state, key);
        }
        Ok(())
    }

    fn report(&mut self, state: &HttpState, (owner, key): (&str, &str)) {
        state.idempotency.counters.add(IdempotencyCount::Diverged);
        let id = id_of(None, owner, key);
        if self.logged.len() < MAX_LOGGED && self.logged.insert(id) {
            tracing::error!(owner, "Redis and Postgres differ on an idempotency key of {owner}");
        }
    }
}

/// True if it was answered long enough ago for Redis to have it.
fn is_settled(row: &sql::KeyRow, now: Timestamp) -> bool {
    let latest = now.plus_ms(COMPLETED_LIFE_MS - SETTLED_AFTER_MS);
    row.status.is_some() && platform::clock::from_utc(row.expires_at) <= latest
}

/// The end may differ by rounding; the answer may not.
fn same(one: &Answer, other: &Answer) -> bool {
    (one.status(), one.body()) == (other.status(), other.body())
}

/// Frees a claim without result: its replica is dead, or it is ours and not running.
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

//! Many keys in one statement, for callers that commit many requests in one transaction.

use std::collections::HashSet;

use domain::time::Timestamp;
use sqlx::PgConnection;

use super::{Answer, COMPLETED_LIFE_MS, Intent, KEPT_MS, PENDING_LIFE_MS, sql};
use crate::ApiResult;
use platform::cte_batch::{CteBatch, StatementResults};

/// [`Intent::replay`] of many intents, in the caller's transaction.
///
/// # Errors
/// When the database fails.
pub async fn replay_all(
    tx: &mut PgConnection,
    intents: &[&Intent],
    now: Timestamp,
) -> sqlx::Result<Vec<ApiResult<Option<Answer>>>> {
    if intents.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = intents.iter().map(|intent| (intent.owner.as_str(), intent.key.as_str())).collect();
    let mut rows = sql::find_all(tx, &names, now).await?;
    // Each row is used once: the caller must handle duplicate keys in a batch.
    let answers = intents.iter().map(|intent| match rows.remove(&intent.name()) {
        Some(row) => intent.answer_of(row).map(Some),
        None => Ok(None),
    });
    Ok(answers.collect())
}

/// Adds a query for known keys to a batch; [`all_keys_free`] reads its result.
///
/// # Errors
/// When an argument cannot be encoded.
pub fn add_lookup(cte: &mut CteBatch, intents: &[&Intent], now: Timestamp) -> sqlx::Result<()> {
    let names: Vec<_> = intents.iter().map(|intent| (intent.owner.as_str(), intent.key.as_str())).collect();
    sql::add_lookup(cte, &names, now)
}

/// True if [`add_lookup`] found no known key; otherwise [`replay_all`] finds them.
///
/// # Errors
/// When the result cannot be decoded.
pub fn all_keys_free(results: &StatementResults) -> sqlx::Result<bool> {
    Ok(results.column::<String>("known_keys", "key")?.is_empty())
}

/// Adds the claims of keys that were free when looked up; keys with an answer are completed at once. Waits for concurrent
/// requests with the same key. Keys must be distinct. `assume_free`: no key has a row, not even an expired one; if one has,
/// the statement fails with a unique violation, and [`lost_claims`] does not apply.
///
/// # Errors
/// When an argument cannot be encoded.
pub fn add_claims(
    cte: &mut CteBatch,
    claims: &[(&Intent, Option<&Answer>)],
    assume_free: bool,
    now: Timestamp,
) -> sqlx::Result<()> {
    let rows = claims.iter().map(|(intent, answer)| sql::ClaimRow {
        owner: &intent.owner,
        key: &intent.key,
        request_hash: &intent.request_hash,
        state: if answer.is_some() { "completed" } else { "pending" },
        status: answer.map(|answer| answer.status.as_u16().cast_signed()),
        body: answer.map(|answer| &answer.body[..]),
        until: now.plus_ms(if answer.is_some() { COMPLETED_LIFE_MS } else { PENDING_LIFE_MS }),
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|row| (row.owner, row.key));
    sql::add_claims(cte, &rows, assume_free, now, now.plus_ms(KEPT_MS))
}

/// Indexes of the claims that another request won meanwhile: if there are any, the transaction must be rolled back.
///
/// # Errors
/// When the result cannot be decoded.
pub fn lost_claims(results: &StatementResults, claims: &[(&Intent, Option<&Answer>)]) -> sqlx::Result<Vec<usize>> {
    let owners: Vec<String> = results.column("claimed_keys", "owner")?;
    if owners.len() == claims.len() {
        return Ok(Vec::new());
    }
    let claimed: HashSet<(String, String)> = owners.into_iter().zip(results.column("claimed_keys", "key")?).collect();
    Ok((0..claims.len()).filter(|place| !claimed.contains(&claims[*place].0.name())).collect())
}

/// Adds the answers of claimed keys to a batch.
///
/// # Errors
/// When an argument cannot be encoded.
pub fn add_answers(cte: &mut CteBatch, answers: &[(&Intent, &Answer)], now: Timestamp) -> sqlx::Result<()> {
    let rows = answers.iter().map(|(intent, answer)| sql::AnswerRow {
        owner: &intent.owner,
        key: &intent.key,
        request_hash: &intent.request_hash,
        status: answer.status.as_u16().cast_signed(),
        body: &answer.body,
    });
    sql::add_answers(cte, &rows.collect::<Vec<_>>(), now.plus_ms(COMPLETED_LIFE_MS))
}

/// Checks that all answers were stored.
///
/// # Errors
/// `RowNotFound` when a claim is no longer ours, as [`Intent::complete`] says.
pub fn all_answered(results: &StatementResults, answers: &[(&Intent, &Answer)]) -> sqlx::Result<()> {
    let stored: Vec<String> = results.column("answered_keys", "key")?;
    if stored.len() == answers.len() { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

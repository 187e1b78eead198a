//! Many keys in one statement, for whoever commits many requests in one transaction.

use domain::time::Timestamp;
use sqlx::PgConnection;

use super::{Answer, COMPLETED_LIFE_MS, Intent, PENDING_LIFE_MS, sql};
use crate::web::Problem;

/// What [`Intent::replay`] says of each, in the caller's transaction.
///
/// # Errors
/// When the database fails.
pub async fn replay_all(
    tx: &mut PgConnection,
    intents: &[&Intent],
    now: Timestamp,
) -> Result<Vec<Result<Option<Answer>, Problem>>, sqlx::Error> {
    if intents.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = intents.iter().map(|intent| (intent.owner.as_str(), intent.key.as_str())).collect();
    let mut rows = sql::find_all(tx, &names, now).await?;
    // Taken out at its first place: the same key twice is the caller's to tell apart.
    let judged = intents.iter().map(|intent| match rows.remove(&intent.name()) {
        Some(row) => intent.judge(row).map(Some),
        None => Ok(None),
    });
    Ok(judged.collect())
}

/// Claims keys that nobody had when [`replay_all`] was asked, those with an answer completed at once. The
/// places of those that somebody else claimed meanwhile: then nothing of the transaction may be committed.
/// Waits for concurrent requests with the same key. No key may come twice. `surely_free`: none has a row, not
/// even one that has run out.
///
/// # Errors
/// When the database fails; a unique violation when one has a row against that word.
pub async fn claim_all(
    tx: &mut PgConnection,
    claims: &[(&Intent, Option<&Answer>)],
    surely_free: bool,
    now: Timestamp,
) -> Result<Vec<usize>, sqlx::Error> {
    let mut places: Vec<usize> = (0..claims.len()).collect();
    places.sort_unstable_by_key(|place| {
        let (intent, _) = claims[*place];
        (&intent.owner, &intent.key)
    });
    let rows = places.iter().map(|place| {
        let (intent, answer) = claims[*place];
        sql::ClaimRow {
            owner: &intent.owner,
            key: &intent.key,
            request_hash: &intent.request_hash,
            state: if answer.is_some() { "completed" } else { "pending" },
            status: answer.map(|answer| answer.status.as_u16().cast_signed()),
            body: answer.map(|answer| &answer.body[..]),
            until: now.plus_ms(if answer.is_some() { COMPLETED_LIFE_MS } else { PENDING_LIFE_MS }),
        }
    });
    let rows: Vec<_> = rows.collect();
    if surely_free {
        sql::insert_all(tx, &rows).await?;
        return Ok(Vec::new());
    }
    let claimed = sql::claim_all(tx, &rows, now).await?;
    places.retain(|place| !claimed.contains(&claims[*place].0.name()));
    Ok(places)
}

/// Stores the answers of claimed keys.
///
/// # Errors
/// When the database fails; `RowNotFound` when a claim is no longer ours, as [`Intent::complete`] says.
pub async fn complete_all(
    tx: &mut PgConnection,
    answers: &[(&Intent, &Answer)],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let rows: Vec<_> = answers
        .iter()
        .map(|(intent, answer)| sql::AnswerRow {
            owner: &intent.owner,
            key: &intent.key,
            request_hash: &intent.request_hash,
            status: answer.status.as_u16().cast_signed(),
            body: &answer.body,
        })
        .collect();
    let stored = sql::complete_all(tx, &rows, now.plus_ms(COMPLETED_LIFE_MS)).await?;
    if stored == rows.len() { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

//! What is unusual is written down every few seconds, so many at a time: nobody who tries for seats waits for it.

use std::collections::HashSet;
use std::time::Duration;

use domain::fairness::Kind;
use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use super::sql;
use super::watch::Sighting;
use crate::telemetry::unusual;
use crate::web::Problem;
use crate::{AppState, ids};

/// How often it is written down.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// So many at a time; the others wait.
const MAX_PER_WRITE: usize = 100;
/// Flags of a show at most, but for a batch: a list that is longer is read by nobody.
const MAX_PER_SHOW: i64 = 200;
/// Old flags are looked for so often, milliseconds.
const PURGE_EVERY_MS: i64 = 60 * MINUTE_MS;
/// A flag is kept for so long after its last sighting, milliseconds: 30 days.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_PURGED: i64 = 5_000;
/// Digits of what stands for a visitor or an address.
const TAG_DIGITS: usize = 16;

/// A row to be written.
pub(super) struct Row<'a> {
    pub(super) id: Uuid,
    pub(super) theatre: String,
    pub(super) tag: String,
    pub(super) sighting: &'a Sighting,
}

/// Runs until the server stops.
pub async fn write_forever(state: AppState) {
    let mut purge_at = state.locks.now();
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(WRITE_EVERY) => {}
        }
        let now = state.locks.now();
        if let Err(cause) = write(&state, now).await {
            tracing::warn!(%cause, "what is unusual could not be written down yet");
        }
        if now >= purge_at {
            purge_at = now.plus_ms(PURGE_EVERY_MS);
            if let Err(cause) = sql::purge(&state.pg, now.plus_ms(-KEPT_MS), MAX_PURGED).await {
                tracing::warn!(%cause, "old flags could not be deleted");
            }
        }
    }
}

async fn write(state: &AppState, now: Timestamp) -> Result<(), sqlx::Error> {
    let watches = &state.fairness.watches;
    let mut found = watches.unusual(now, MAX_PER_WRITE);
    if found.is_empty() {
        return Ok(());
    }
    let buyers = who_bought(state, &found).await?;
    found.retain(|one| {
        let did = one.kind == Kind::NeverBought
            && one.owners.iter().any(|owner| buyers.contains(&(one.whose.show, owner.clone())));
        if did {
            watches.bought(&one.whose);
        }
        !did
    });
    let mut rows = Vec::with_capacity(found.len());
    for sighting in &found {
        // A show that is gone, or cannot be read now: the next round tries again.
        let Some(theatre) = theatre_of(state, sighting.whose.show).await else { continue };
        let tag = tag(state, &theatre, sighting);
        rows.push(Row { id: ids::new_id(), theatre, tag, sighting });
    }
    if rows.is_empty() {
        return Ok(());
    }
    sql::write(&state.pg, &rows, MAX_PER_SHOW).await?;
    rows.iter().for_each(|row| unusual(row.sighting.kind));
    watches.written(rows.iter().map(|row| row.sighting));
    Ok(())
}

/// Who of those that held again and again bought something in the show.
async fn who_bought(state: &AppState, found: &[Sighting]) -> Result<HashSet<(Uuid, String)>, sqlx::Error> {
    let asked = found.iter().filter(|one| one.kind == Kind::NeverBought);
    let asked: Vec<(Uuid, &str)> =
        asked.flat_map(|one| one.owners.iter().map(|owner| (one.whose.show, owner.as_str()))).collect();
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    sql::who_bought(&state.pg, &asked).await
}

async fn theatre_of(state: &AppState, show: Uuid) -> Option<String> {
    let known: Result<_, Problem> = state.catalogue.known_show(show).await;
    known.ok().map(|show| show.theatre_id.clone())
}

/// What stands for a visitor or an address of a theatre: the same in all its shows, another one elsewhere.
fn tag(state: &AppState, theatre: &str, sighting: &Sighting) -> String {
    let whose = &sighting.whose;
    let of = format!("unusual\0{theatre}\0{}\0{}", whose.subject.as_str(), whose.name);
    let mut tag = state.accounts.derived_secret(&of);
    tag.truncate(TAG_DIGITS);
    tag
}

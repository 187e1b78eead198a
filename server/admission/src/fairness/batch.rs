//! What is unusual is written down every few seconds, so many at a time: nobody who tries for seats waits for it.

use std::collections::HashSet;
use std::time::Duration;

use domain::fairness::Kind;
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::sql;
use super::watch::Sighting;
use crate::{AdmissionState, puzzles};
use http::{Code, Problem};
use platform::background::Rounds;
use platform::ids;
use platform::telemetry::unusual;

/// How often it is written down.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// So many at a time; the others wait.
const MAX_PER_WRITE: usize = 100;
/// So many in one statement are asked about, or struck out; then the next.
const MAX_PER_LOOK: usize = 1_000;
/// Flags of a show at most, but for a batch: a list that is longer is read by nobody.
const MAX_PER_SHOW: i64 = 200;
/// Old flags are looked for so often, milliseconds.
const PURGE_EVERY_MS: i64 = 60 * MINUTE_MS;
/// A flag is kept for so long after its last sighting, milliseconds: 30 days.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Deleted in one statement at most, so that it never holds anyone up.
const MAX_PURGED: i64 = 5_000;
/// Whether somebody who is written down as having bought nothing did since is asked so often, milliseconds; of the next
/// ones each time, where they are more than are asked about at once.
const ASK_AGAIN_EVERY_MS: i64 = 6 * SECOND_MS;
/// Meters that say nothing any more are forgotten so often, milliseconds.
const FORGET_EVERY_MS: i64 = MINUTE_MS;
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
pub async fn write_forever(state: AdmissionState) {
    let mut purge_at = state.clock.now();
    let (mut ask_again_at, mut forget_at) = (purge_at, purge_at);
    let mut rounds = Rounds::every(&state.stop, WRITE_EVERY);
    while rounds.go_on().await {
        let now = state.clock.now();
        if now >= forget_at {
            forget_at = now.plus_ms(FORGET_EVERY_MS);
            state.fairness.limits.forget_idle(now);
        }
        let is_to_ask_again = now >= ask_again_at;
        if is_to_ask_again {
            ask_again_at = now.plus_ms(ASK_AGAIN_EVERY_MS);
        }
        if let Err(cause) = write(&state, now, is_to_ask_again).await {
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

async fn write(state: &AdmissionState, now: Timestamp, is_to_ask_again: bool) -> Result<(), sqlx::Error> {
    let watches = &state.fairness.watches;
    if is_to_ask_again {
        strike_out(state, &watches.without_purchase(MAX_PER_LOOK)).await?;
    }
    let found = watches.unusual(now, state.admission_settings.never_bought_after_ms, MAX_PER_WRITE);
    let found = without_staff(state, found).await?;
    let others = strike_out(state, &found).await?;
    let (rows, gone) = rows_of(state, &others).await;
    watches.written(gone.into_iter());
    if rows.is_empty() {
        return Ok(());
    }
    sql::write(&state.pg, &rows, MAX_PER_SHOW).await?;
    rows.iter().for_each(|row| unusual(row.sighting.kind));
    watches.written(rows.iter().map(|row| row.sighting));
    Ok(())
}

/// As they are written; and those of shows that are not there, or not sold here, of which nothing will be.
async fn rows_of<'a>(state: &AdmissionState, sightings: &[&'a Sighting]) -> (Vec<Row<'a>>, Vec<&'a Sighting>) {
    let (mut rows, mut gone) = (Vec::new(), Vec::new());
    for sighting in sightings.iter().copied() {
        match theatre_of(state, sighting.whose.show).await {
            Ok(theatre) => {
                let tag = tag(state, &theatre, sighting);
                rows.push(Row { id: ids::new_id(), theatre, tag, sighting });
            }
            Err(problem) if is_not_ours(&problem) => gone.push(sighting),
            // It cannot be read now: the next round tries again.
            Err(_) => {}
        }
    }
    (rows, gone)
}

/// Whoever works where the show is tries for those who stand in front of them: nothing of it is unusual, nor of where
/// they sit.
async fn without_staff(state: &AdmissionState, found: Vec<Sighting>) -> Result<Vec<Sighting>, sqlx::Error> {
    let asked: Vec<(Uuid, Uuid)> =
        found.iter().flat_map(|one| one.accounts.iter().map(|account| (one.whose.show, *account))).collect();
    if asked.is_empty() {
        return Ok(found);
    }
    let staff = sql::who_works(&state.pg, &asked).await?;
    for (show, account) in &staff {
        puzzles::note_works_there(state, *show, *account).await;
    }
    let is_staffs = |one: &Sighting| one.accounts.iter().any(|account| staff.contains(&(one.whose.show, *account)));
    let (theirs, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_staffs);
    theirs.iter().for_each(|one| state.fairness.watches.forget(&one.whose));
    Ok(others)
}

/// Whoever of these held for nothing, and bought something after all, is struck out, some at a time; the others are left.
async fn strike_out<'a>(state: &AdmissionState, sightings: &'a [Sighting]) -> Result<Vec<&'a Sighting>, sqlx::Error> {
    let mut others = Vec::with_capacity(sightings.len());
    for some in sightings.chunks(MAX_PER_LOOK) {
        let asked: Vec<&Sighting> = some.iter().filter(|one| one.kind == Kind::NeverBought).collect();
        let buyers = who_bought(state, &asked).await?;
        let has_bought = |one: &Sighting| {
            one.kind == Kind::NeverBought
                && one.owners.iter().any(|owner| buyers.contains(&(one.whose.show, owner.clone())))
        };
        let (bought, rest): (Vec<&Sighting>, Vec<&Sighting>) = some.iter().partition(|one| has_bought(one));
        withdraw(state, &bought).await?;
        others.extend(rest);
    }
    Ok(others)
}

/// They bought something: what is written down of their holds goes, unless a manager has put it aside.
async fn withdraw(state: &AdmissionState, bought: &[&Sighting]) -> Result<(), sqlx::Error> {
    let (rows, _) = rows_of(state, bought).await;
    if rows.is_empty() {
        return Ok(());
    }
    sql::withdraw(&state.pg, &rows).await?;
    rows.iter().for_each(|row| state.fairness.watches.bought(&row.sighting.whose));
    Ok(())
}

/// Who of those that held again and again bought something in the show.
async fn who_bought(state: &AdmissionState, asked: &[&Sighting]) -> Result<HashSet<(Uuid, String)>, sqlx::Error> {
    let asked: Vec<(Uuid, &str)> =
        asked.iter().flat_map(|one| one.owners.iter().map(|owner| (one.whose.show, owner.as_str()))).collect();
    let mut buyers = HashSet::new();
    // An address has many visitors.
    for some in asked.chunks(MAX_PER_LOOK) {
        buyers.extend(sql::who_bought(&state.pg, some).await?);
    }
    Ok(buyers)
}

async fn theatre_of(state: &AdmissionState, show: Uuid) -> Result<String, Problem> {
    state.catalogue.known_show(show).await.map(|show| show.theatre_id.clone())
}

/// Whether a show is gone, or another region's by now.
pub(super) fn is_not_ours(problem: &Problem) -> bool {
    matches!(problem.code(), Code::NotFound | Code::OtherRegion)
}

/// What stands for a visitor or an address of a theatre: the same in all its shows, another one elsewhere.
fn tag(state: &AdmissionState, theatre: &str, sighting: &Sighting) -> String {
    let whose = &sighting.whose;
    let of = format!("unusual\0{theatre}\0{}\0{}", whose.subject.as_str(), whose.name);
    let mut tag = state.accounts.derived_secret(&of);
    tag.truncate(TAG_DIGITS);
    tag
}

//! Writes flags of unusual behaviour every few seconds in batches, so that attempts at seats need not wait for it.

use std::collections::HashSet;
use std::time::Duration;

use domain::fairness::UnusualKind;
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::sql;
use super::watch::Sighting;
use crate::{AdmissionState, puzzles};
use http::{Code, Problem};
use platform::background::PeriodicLoop;
use platform::ids;
use platform::telemetry::unusual;

/// Period of the writer.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// Maximum of flags per round; the others wait for the next round.
const MAX_PER_WRITE: usize = 100;
/// Maximum of sightings per statement that reads purchases or deletes flags.
const MAX_PER_QUERY: usize = 1_000;
/// Maximum of flags of a show, give or take a batch: a longer list would not be read.
const MAX_PER_SHOW: i64 = 200;
/// Period of the deletion of old flags, milliseconds.
const PURGE_EVERY_MS: i64 = 60 * MINUTE_MS;
/// Retention of a flag after its last sighting, milliseconds: 30 days.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum of flags deleted in one statement, so that it blocks no other.
const MAX_PURGED: i64 = 5_000;
/// Period in which written `NeverBought` flags are checked for later purchases, milliseconds. Each round checks the
/// next ones, if there are more than one query takes.
const RECHECK_EVERY_MS: i64 = 6 * SECOND_MS;
/// Period of the eviction of idle meters, milliseconds.
const FORGET_EVERY_MS: i64 = MINUTE_MS;
/// Digits of the pseudonym of a visitor or an address.
const TAG_DIGITS: usize = 16;

/// A flag to be written.
pub(super) struct FlagRow<'a> {
    pub(super) id: Uuid,
    pub(super) theatre: String,
    pub(super) tag: String,
    pub(super) sighting: &'a Sighting,
}

/// Runs until the server stops.
pub async fn write_forever(state: AdmissionState) {
    let mut purge_at = state.clock.now();
    let (mut recheck_at, mut forget_at) = (purge_at, purge_at);
    let mut rounds = PeriodicLoop::every(&state.stop, WRITE_EVERY);
    while rounds.wait_next().await {
        let now = state.clock.now();
        if now >= forget_at {
            forget_at = now.plus_ms(FORGET_EVERY_MS);
            state.fairness.limits.forget_idle(now);
        }
        let is_recheck_due = now >= recheck_at;
        if is_recheck_due {
            recheck_at = now.plus_ms(RECHECK_EVERY_MS);
        }
        if let Err(cause) = write(&state, now, is_recheck_due).await {
            tracing::warn!(%cause, "write flags failed, retrying next round");
        }
        if now >= purge_at {
            purge_at = now.plus_ms(PURGE_EVERY_MS);
            if let Err(cause) = sql::purge(&state.pg, now.plus_ms(-KEPT_MS), MAX_PURGED).await {
                tracing::warn!(%cause, "delete old flags failed");
            }
        }
    }
}

async fn write(state: &AdmissionState, now: Timestamp, is_recheck_due: bool) -> Result<(), sqlx::Error> {
    let watches = &state.fairness.watches;
    if is_recheck_due {
        remove_buyers(state, &watches.without_purchase(MAX_PER_QUERY)).await?;
    }
    let found = watches.unusual(now, state.admission_settings.never_bought_after_ms, MAX_PER_WRITE);
    let found = without_staff(state, found).await?;
    let others = remove_buyers(state, &found).await?;
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

/// Prepares the rows; also returns sightings of shows that do not exist or are sold elsewhere, which are dropped.
async fn rows_of<'a>(state: &AdmissionState, sightings: &[&'a Sighting]) -> (Vec<FlagRow<'a>>, Vec<&'a Sighting>) {
    let (mut rows, mut gone) = (Vec::new(), Vec::new());
    for sighting in sightings.iter().copied() {
        match theatre_of(state, sighting.key.show).await {
            Ok(theatre) => {
                let tag = tag(state, &theatre, sighting);
                rows.push(FlagRow { id: ids::new_id(), theatre, tag, sighting });
            }
            Err(problem) if is_show_unavailable(&problem) => gone.push(sighting),
            // The show cannot be read now: the next round retries.
            Err(_) => {}
        }
    }
    (rows, gone)
}

/// Removes sightings of staff of the show's theatre and of their addresses: they make attempts for customers at the
/// counter.
async fn without_staff(state: &AdmissionState, found: Vec<Sighting>) -> Result<Vec<Sighting>, sqlx::Error> {
    let asked: Vec<(Uuid, Uuid)> =
        found.iter().flat_map(|one| one.accounts.iter().map(|account| (one.key.show, *account))).collect();
    if asked.is_empty() {
        return Ok(found);
    }
    let staff = sql::load_staff(&state.pg, &asked).await?;
    for (show, account) in &staff {
        puzzles::cache_staff_of(state, *show, *account).await;
    }
    let is_of_staff = |one: &Sighting| one.accounts.iter().any(|account| staff.contains(&(one.key.show, *account)));
    let (theirs, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_of_staff);
    theirs.iter().for_each(|one| state.fairness.watches.forget(&one.key));
    Ok(others)
}

/// Deletes `NeverBought` sightings of buyers, in batches, and returns the other sightings.
async fn remove_buyers<'a>(
    state: &AdmissionState,
    sightings: &'a [Sighting],
) -> Result<Vec<&'a Sighting>, sqlx::Error> {
    let mut others = Vec::with_capacity(sightings.len());
    for some in sightings.chunks(MAX_PER_QUERY) {
        let asked: Vec<&Sighting> = some.iter().filter(|one| one.kind == UnusualKind::NeverBought).collect();
        let buyers = load_buyers(state, &asked).await?;
        let has_bought = |one: &Sighting| {
            one.kind == UnusualKind::NeverBought
                && one.owners.iter().any(|owner| buyers.contains(&(one.key.show, owner.clone())))
        };
        let (bought, rest): (Vec<&Sighting>, Vec<&Sighting>) = some.iter().partition(|one| has_bought(one));
        delete_flags_of_buyers(state, &bought).await?;
        others.extend(rest);
    }
    Ok(others)
}

/// Deletes the flags of these buyers, unless a manager has dismissed them.
async fn delete_flags_of_buyers(state: &AdmissionState, bought: &[&Sighting]) -> Result<(), sqlx::Error> {
    let (rows, _) = rows_of(state, bought).await;
    if rows.is_empty() {
        return Ok(());
    }
    sql::delete_never_bought(&state.pg, &rows).await?;
    rows.iter().for_each(|row| state.fairness.watches.record_purchase(&row.sighting.key));
    Ok(())
}

/// Which owners of these sightings have bought something in the show.
async fn load_buyers(state: &AdmissionState, asked: &[&Sighting]) -> Result<HashSet<(Uuid, String)>, sqlx::Error> {
    let asked: Vec<(Uuid, &str)> =
        asked.iter().flat_map(|one| one.owners.iter().map(|owner| (one.key.show, owner.as_str()))).collect();
    let mut buyers = HashSet::new();
    // An address has many visitors.
    for some in asked.chunks(MAX_PER_QUERY) {
        buyers.extend(sql::load_buyers(&state.pg, some).await?);
    }
    Ok(buyers)
}

async fn theatre_of(state: &AdmissionState, show: Uuid) -> Result<String, Problem> {
    state.catalogue.find_show(show).await.map(|show| show.theatre_id.clone())
}

/// True if a show does not exist here, or moved to another region.
pub(super) fn is_show_unavailable(problem: &Problem) -> bool {
    matches!(problem.code(), Code::NotFound | Code::OtherRegion)
}

/// The pseudonym of a visitor or an address: the same in all shows of a theatre, different in other theatres.
fn tag(state: &AdmissionState, theatre: &str, sighting: &Sighting) -> String {
    let key = &sighting.key;
    let of = format!("unusual\0{theatre}\0{}\0{}", key.subject.as_str(), key.name);
    let mut tag = state.accounts.derived_secret(&of);
    tag.truncate(TAG_DIGITS);
    tag
}

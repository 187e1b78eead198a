//! Writes flags of unusual behaviour every few seconds in batches, so that attempts at seats need not wait for it.

use std::collections::HashSet;
use std::time::Duration;

use domain::VariantName;
use domain::fairness::UnusualKind;
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::watch::Sighting;
use crate::{AdmissionState, puzzles};
use http::{ApiResult, Code, Problem};
use platform::background::PeriodicLoop;
use platform::clock::to_utc;
use platform::database::BindAll;
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

struct FlagRow<'a> {
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
            if let Err(cause) = delete_old(&state.pg, now.plus_ms(-KEPT_MS), MAX_PURGED).await {
                tracing::warn!(%cause, "delete old flags failed");
            }
        }
    }
}

async fn write(state: &AdmissionState, now: Timestamp, is_recheck_due: bool) -> sqlx::Result<()> {
    let watches = &state.fairness.watches;
    if is_recheck_due {
        remove_buyers(state, &watches.without_purchase(MAX_PER_QUERY)).await?;
    }
    let found = watches.unusual(now, state.admission_settings.never_bought_after_ms, MAX_PER_WRITE);
    let found = without_staff(state, found).await?;
    let others = remove_buyers(state, &found).await?;
    let (rows, gone) = rows_of(state, &others).await;
    watches.mark_written(gone.into_iter());
    if rows.is_empty() {
        return Ok(());
    }
    insert(&state.pg, &rows).await?;
    rows.iter().for_each(|row| unusual(row.sighting.kind));
    watches.mark_written(rows.iter().map(|row| row.sighting));
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
async fn without_staff(state: &AdmissionState, found: Vec<Sighting>) -> sqlx::Result<Vec<Sighting>> {
    let asked: Vec<(Uuid, Uuid)> =
        found.iter().flat_map(|one| one.accounts.iter().map(|account| (one.key.show, *account))).collect();
    if asked.is_empty() {
        return Ok(found);
    }
    let staff = load_staff(&state.pg, &asked).await?;
    for (show, account) in &staff {
        puzzles::cache_staff_of(state, *show, *account).await;
    }
    let is_of_staff = |one: &Sighting| one.accounts.iter().any(|account| staff.contains(&(one.key.show, *account)));
    let (theirs, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_of_staff);
    theirs.iter().for_each(|one| state.fairness.watches.forget(&one.key));
    Ok(others)
}

/// Deletes `NeverBought` sightings of buyers, in batches, and returns the other sightings.
async fn remove_buyers<'a>(state: &AdmissionState, sightings: &'a [Sighting]) -> sqlx::Result<Vec<&'a Sighting>> {
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
async fn delete_flags_of_buyers(state: &AdmissionState, bought: &[&Sighting]) -> sqlx::Result<()> {
    let (rows, _) = rows_of(state, bought).await;
    if rows.is_empty() {
        return Ok(());
    }
    delete_never_bought(&state.pg, &rows).await?;
    rows.iter().for_each(|row| state.fairness.watches.record_purchase(&row.sighting.key));
    Ok(())
}

/// Returns the owners of these sightings who have bought something in the show.
async fn load_buyers(state: &AdmissionState, asked: &[&Sighting]) -> sqlx::Result<HashSet<(Uuid, String)>> {
    let asked: Vec<(Uuid, &str)> =
        asked.iter().flat_map(|one| one.owners.iter().map(|owner| (one.key.show, owner.as_str()))).collect();
    let mut buyers = HashSet::new();
    // An address has many visitors.
    for some in asked.chunks(MAX_PER_QUERY) {
        buyers.extend(read_buyers(&state.pg, some).await?);
    }
    Ok(buyers)
}

async fn theatre_of(state: &AdmissionState, show: Uuid) -> ApiResult<String> {
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

/// Reads which of these owners bought something in that show, or began to pay for it.
async fn read_buyers(pg: &PgPool, asked: &[(Uuid, &str)]) -> sqlx::Result<HashSet<(Uuid, String)>> {
    let bought: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT DISTINCT booking.show_id, booking.owner
         FROM unnest($1::uuid[], $2::text[]) AS asked (show_id, owner)
         JOIN bookings booking ON booking.owner = asked.owner AND booking.show_id = asked.show_id
         WHERE booking.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED')",
    )
    .bind(asked.iter().map(|(show, _)| *show).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, owner)| *owner).collect::<Vec<_>>())
    .fetch_all(pg)
    .await?;
    Ok(bought.into_iter().collect())
}

/// Reads which of these accounts work at that show's theatre.
async fn load_staff(pg: &PgPool, asked: &[(Uuid, Uuid)]) -> sqlx::Result<HashSet<(Uuid, Uuid)>> {
    let working: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT DISTINCT asked.show_id, asked.account_id
         FROM unnest($1::uuid[], $2::uuid[]) AS asked (show_id, account_id)
         JOIN shows show ON show.id = asked.show_id
         JOIN screens screen ON screen.id = show.screen_id
         JOIN staff_grants staff ON staff.account_id = asked.account_id AND staff.theatre_id = screen.theatre_id",
    )
    .bind(asked.iter().map(|(show, _)| *show).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, account)| *account).collect::<Vec<_>>())
    .fetch_all(pg)
    .await?;
    Ok(working.into_iter().collect())
}

/// Deletes the `never_bought` flags of buyers, except those a manager has dismissed.
async fn delete_never_bought(pg: &PgPool, rows: &[FlagRow<'_>]) -> sqlx::Result<()> {
    sqlx::query(
        "DELETE FROM unusual_flags flag
         USING unnest($1::uuid[], $2::text[], $3::text[]) AS bought (show_id, subject, tag)
         WHERE flag.show_id = bought.show_id AND flag.kind = 'never_bought' AND flag.subject = bought.subject
           AND flag.tag = bought.tag AND flag.dismissed_at IS NULL",
    )
    .bind(rows.iter().map(|row| row.sighting.key.show).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.sighting.key.subject.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.tag.as_str()).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(())
}

/// Writes flags: adds to existing ones, and inserts new ones for shows with fewer than [`MAX_PER_SHOW`].
async fn insert(pg: &PgPool, rows: &[FlagRow<'_>]) -> sqlx::Result<()> {
    let all = |text: fn(&FlagRow<'_>) -> String| rows.iter().map(text).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO unusual_flags (id, show_id, theatre_id, kind, subject, tag, seen, since, last_at)
         SELECT found.*
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                     $8::timestamptz[], $9::timestamptz[])
              AS found (id, show_id, theatre_id, kind, subject, tag, seen, since, last_at)
         JOIN shows show ON show.id = found.show_id
         WHERE (SELECT count(*) FROM unusual_flags flag WHERE flag.show_id = found.show_id) < $10
            OR EXISTS (SELECT 1 FROM unusual_flags flag
                       WHERE flag.show_id = found.show_id AND flag.kind = found.kind
                         AND flag.subject = found.subject AND flag.tag = found.tag)
         ORDER BY found.show_id, found.kind, found.subject, found.tag
         ON CONFLICT (show_id, kind, subject, tag) DO UPDATE
         SET seen = unusual_flags.seen + EXCLUDED.seen,
             since = LEAST(unusual_flags.since, EXCLUDED.since),
             last_at = GREATEST(unusual_flags.last_at, EXCLUDED.last_at)",
    )
    .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.sighting.key.show).collect::<Vec<_>>())
    .bind(all(|row| row.theatre.clone()))
    .bind(all(|row| row.sighting.kind.as_str().to_owned()))
    .bind(all(|row| row.sighting.key.subject.as_str().to_owned()))
    .bind(all(|row| row.tag.clone()))
    .bind(rows.iter().map(|row| i64::from(row.sighting.unwritten)).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| to_utc(row.sighting.since)).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| to_utc(row.sighting.last)).collect::<Vec<_>>())
    .bind(MAX_PER_SHOW)
    .execute(pg)
    .await?;
    Ok(())
}

/// Deletes flags last seen before that time.
async fn delete_old(pg: &PgPool, before: Timestamp, limit: i64) -> sqlx::Result<()> {
    sqlx::query(
        "DELETE FROM unusual_flags WHERE id IN (SELECT id FROM unusual_flags WHERE last_at < $1 ORDER BY last_at LIMIT $2)",
    )
    .bind_all((to_utc(before), limit))
    .execute(pg)
    .await?;
    Ok(())
}

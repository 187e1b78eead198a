//! Makes offers for a show: commits a plan, then holds the seats, then mails the offers. Every replica serves all lists
//! once a second. These rounds wait for no mail server: mails are sent concurrently ([`mails`]).

use std::time::Duration;

use domain::api::SeatKind;
use domain::seats::{Places, SeatIndex, SeatState};
use domain::time::{SECOND_MS, Timestamp};
use domain::waiting_list::{
    EntryRequest, FreeArea, FreePlaces, FreeSeat, MAX_OFFERS_AT_ONCE, MAX_WAITING_PER_SHOW, OfferedPlaces,
};
use uuid::Uuid;

use super::sql::{self, ListEntry};
use super::{hold_of, mails};
use crate::SellingState;
use catalogue::Show;
use http::ApiResult;
use platform::background::PeriodicLoop;
use seats::seat_locks::{
    HoldLimits, LockAttempt, MapSnapshot, Refusal, RequestIdentity, Selection, StoreError, StoredHold, with_map,
};

/// First pause for an entry whose owner holds other seats of the show, or is at the limit of seats, milliseconds. It doubles
/// with each offer, [`MAX_PAUSE_DOUBLINGS`] times at most: such entries reserve seats while it is their turn, and few of them
/// must not have all turns.
const ENTRY_PAUSE_MS: i64 = 30 * SECOND_MS;
/// The longest pause is half an hour.
const MAX_PAUSE_DOUBLINGS: i32 = 6;
/// Maximum entries read per round, the whole line: entries that want the free seats may be behind any number of
/// entries that want more. When a show moves to another screen, entries with offers return to the line, in addition to
/// the maximum of joined entries.
pub(super) const LONGEST_LINE: i64 = MAX_WAITING_PER_SHOW + MAX_OFFERS_AT_ONCE as i64;

/// Offers free seats and places to the line.
async fn serve(state: &SellingState, show: Uuid) -> ApiResult<()> {
    let show = state.catalogue.find_show(show).await?;
    if catalogue::sales_open(&show, state.clock.now()).is_err() {
        sql::close(&state.pg, show.id, state.clock.now()).await?;
        return Ok(());
    }
    if catalogue::on_sale(&show, state.clock.now()).is_err() {
        // Sales are closed for now: entries keep their place.
        return Ok(());
    }
    // Expired holds must be freed even if no client watches the show.
    state.watched.add(show.id);
    let snapshot = with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    plan(state, &show, &snapshot).await?;
    hold(state, &show).await
}

/// Plans offers and commits them before any call or mail.
async fn plan(state: &SellingState, show: &Show, snapshot: &MapSnapshot) -> ApiResult<()> {
    let mut free = free_in(show, snapshot);
    if free.is_empty() {
        return Ok(());
    }
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    if !sql::lock_list(&mut tx, show.id).await? {
        return Ok(());
    }
    // Planned offers that are not held yet reserve their seats.
    for entry in sql::offering(&mut tx, show.id).await? {
        entry.offer().iter().for_each(|offer| free.take(offer));
    }
    let mut open = sql::count_offers(&mut tx, show.id).await?;
    let is_over = |open: i64, free: &FreePlaces| open >= MAX_OFFERS_AT_ONCE as i64 || free.is_empty();
    if is_over(open, &free) {
        return Ok(());
    }
    // The free set only shrinks, so a request that did not fit never fits later in this round: a long line costs
    // hardly more than a short one.
    let mut unfit: Vec<EntryRequest> = Vec::new();
    for entry in sql::line(&mut tx, show.id, now, LONGEST_LINE).await? {
        if is_over(open, &free) {
            break;
        }
        let wish = entry.wish();
        if unfit.contains(&wish) {
            continue;
        }
        let Some(offer) = free.find_offer(&wish) else {
            unfit.push(wish);
            continue;
        };
        let number = entry.offer_number + 1;
        // An entry that left since the line was read leaves the offer to the next.
        if sql::plan_offer(&mut tx, &entry, number, hold_of(entry.id, number), &offer, now).await? {
            free.take(&offer);
            open += 1;
        }
    }
    tx.commit().await?;
    Ok(())
}

/// Holds the planned offers, of this replica or of one that crashed.
async fn hold(state: &SellingState, show: &Show) -> ApiResult<()> {
    let mut tx = state.pg.begin().await?;
    if !sql::lock_list(&mut tx, show.id).await? {
        return Ok(());
    }
    let planned = sql::offering(&mut tx, show.id).await?;
    if planned.is_empty() {
        return Ok(());
    }
    let attempts: Vec<LockAttempt> = planned.iter().filter_map(attempt).collect();
    let length_ms = state.selling_settings.waiting_offer_ms;
    let terms = HoldLimits { per_person: show.per_person, length_ms, life_ms: length_ms };
    // Not through `with_map`, which may need another connection: a map that was lost since the snapshot
    // is loaded again in the next round.
    let answers = match state.locks.lock(show.id, terms, &attempts).await {
        Ok(answers) => answers,
        Err(StoreError::NoMap(_)) => return Ok(()),
        Err(cause) => return Err(cause.into()),
    };
    let now = state.clock.now();
    for (attempt, answer) in attempts.iter().zip(answers) {
        let Some(entry) = planned.iter().find(|entry| entry.offer_hold == Some(attempt.asked.id)) else { continue };
        match outcome(entry, answer, now) {
            OfferOutcome::Offered(until) => sql::offered(&mut tx, entry, until, now).await?,
            OfferOutcome::BackInLine(not_before) => sql::back_in_line(&mut tx, entry, not_before, now).await?,
        }
    }
    tx.commit().await?;
    mails::wake(state);
    Ok(())
}

/// Builds the lock store request of an offer. Repeats are identical, so that the lock store returns the same answer.
fn attempt(entry: &ListEntry) -> Option<LockAttempt> {
    let selection = selection_of(entry.offer()?);
    let id = entry.offer_hold?;
    Some(LockAttempt {
        asked: RequestIdentity { id, digest: id.as_u64_pair().0 },
        owner: entry.owner.clone(),
        selection,
        takes_kept: false,
    })
}

pub(super) fn selection_of(offer: OfferedPlaces) -> Selection {
    match offer {
        OfferedPlaces::Seats(seats) => Selection::of_seats(seats),
        OfferedPlaces::Places(places) => Selection { seats: vec![], places: vec![places] },
    }
}

enum OfferOutcome {
    /// Held until this time.
    Offered(Timestamp),
    /// Back in line, with no offer before this time.
    BackInLine(Timestamp),
}

fn outcome(entry: &ListEntry, answer: Result<StoredHold, Refusal>, now: Timestamp) -> OfferOutcome {
    match answer {
        Ok(held) if held.expires_at > now => OfferOutcome::Offered(held.expires_at),
        // Held before a crash that lasted longer than the offer.
        Ok(_) => OfferOutcome::BackInLine(now),
        Err(Refusal::Taken(_) | Refusal::Full(_)) => OfferOutcome::BackInLine(now),
        Err(refusal) => {
            tracing::info!(entry = %entry.id, ?refusal, "{} is paused in the line", entry.id);
            let doublings = entry.offer_number.saturating_sub(1).clamp(0, MAX_PAUSE_DOUBLINGS);
            OfferOutcome::BackInLine(now.plus_ms(ENTRY_PAUSE_MS << doublings))
        }
    }
}

pub(super) fn free_in(show: &Show, snapshot: &MapSnapshot) -> FreePlaces {
    let is_free = |(_, byte): &(SeatIndex, &u8)| **byte == SeatState::Available as u8;
    let mut rows = 0;
    let mut last: Option<(&str, &str)> = None;
    let mut seats = Vec::new();
    for (seat, _) in (0..).zip(&snapshot.map).filter(is_free) {
        let Some(found) = show.layout.seat(seat) else { break };
        if last.replace((found.zone, found.row)) != Some((found.zone, found.row)) {
            rows += 1;
        }
        let category = show.categories.get(usize::from(found.category));
        seats.push(FreeSeat {
            seat,
            row: rows,
            category: category.map(|category| category.name.clone()).unwrap_or_default(),
            kind: category.map_or(SeatKind::Standard, |category| category.kind),
        });
    }
    let area = |(area, left): &(u16, u32)| {
        let known = show.area(*area)?;
        Some(FreeArea { left: Places { area: *area, count: *left }, category: known.category.clone() })
    };
    FreePlaces { seats, areas: snapshot.areas.iter().filter_map(area).collect() }
}

/// Interval of rounds.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Period in which a show that any replica has processed is skipped, milliseconds.
const LOOKED_AT_MS: i64 = 900;
/// Shows processed in one round, least recent first.
const MAX_SHOWS_PER_ROUND: i64 = 200;
/// Maximum categories of shows that are waited for in a replica's cache.
const MAX_WANTED: i64 = 100_000;

/// Runs until the server stops.
pub async fn serve_forever(state: SellingState) {
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    while rounds.wait_next().await {
        if let Err(cause) = serve_all_lists(&state).await {
            tracing::warn!(%cause, "serving waiting lists failed");
        }
    }
}

/// One round over all shows with a waiting list.
///
/// # Errors
/// When the database fails. Failures of single shows are logged, and the next round retries.
pub async fn serve_all_lists(state: &SellingState) -> sqlx::Result<()> {
    let now = state.clock.now();
    state.waiting.replace(sql::wanted_categories(&state.pg, MAX_WANTED).await?);
    settle(state, now).await?;
    let looked_at = now.plus_ms(-LOOKED_AT_MS);
    for show in sql::due_shows(&state.pg, now, looked_at, MAX_SHOWS_PER_ROUND).await? {
        if let Err(problem) = serve(state, show).await {
            tracing::warn!(?problem, %show, "serving the waiting list of {show} failed");
        }
    }
    Ok(())
}

/// Marks bought offers as taken, and expired ones as lapsed unless they are being paid for.
/// The lock store expires their holds.
async fn settle(state: &SellingState, now: Timestamp) -> sqlx::Result<()> {
    let (taken, lapsed) = (sql::note_taken(&state.pg, now).await?, sql::note_lapsed(&state.pg, now).await?);
    if taken + lapsed > 0 {
        tracing::info!(taken, lapsed, "waiting list offers ended");
    }
    Ok(())
}

//! Loads the state that a batch is planned on: from this replica's cache, or from Postgres.

use std::collections::HashMap;
use std::sync::Arc;

use domain::booking::BookingState;
use sqlx::PgConnection;
use uuid::Uuid;

use super::load::{self, LockMode};
use super::plan::Known;
use super::run::BatchError;
use super::{BookingDetails, Work};
use crate::SellingState;
use catalogue::Show;
use http::idempotency::{self, Intent};
use payments::PaymentEvent;
use platform::cte_batch::CteBatch;

/// Returns the bookings of the pieces, and true if a key that a piece claims is taken already. The bookings come from
/// the cache where possible.
pub(super) async fn load_batch(
    state: &SellingState,
    tx: &mut PgConnection,
    works: &[&Work],
    locks: LockMode,
    keys: &[&Intent],
) -> Result<(Known, bool), BatchError> {
    if locks == LockMode::Cached
        && let Some(known) = load_cached(state, works).await
    {
        return Ok((known, false));
    }
    let holds = works.iter().filter_map(|work| work.hold()).collect();
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let mut cte = CteBatch::default();
    load::add_versions(&mut cte, works.iter().filter_map(|work| work.booking()).collect(), locks)?;
    load::add_holds(&mut cte, holds)?;
    load::add_news(&mut cte, &news)?;
    idempotency::add_lookup(&mut cte, keys, state.clock.now())?;
    let results = cte.run(tx).await?;

    let recent: Vec<Arc<BookingDetails>> =
        news.iter().filter_map(|news| state.commits.recent.of(news.booking)).collect();
    let seen = works.iter().filter_map(|work| work.seen()).chain(recent.iter().map(|found| &**found));
    let seen = seen.map(|found| (found.row.id, found)).collect();
    let bookings = load::resolve_bookings(tx, &results, &seen).await?;
    let mut known = Known {
        booked_holds: load::booked_holds(&results)?,
        noted_events: load::noted_events(&results)?,
        ..Known::default()
    };
    known.shows = cached_shows(state, &news, &bookings).await;
    known.bookings = bookings;
    Ok((known, !idempotency::all_keys_free(&results)?))
}

/// Checks that all bookings of the pieces are cached and usable.
pub(super) fn is_cached<'a>(state: &SellingState, mut works: impl Iterator<Item = &'a Work>) -> bool {
    works.all(|work| match work.booking() {
        Some(id) => latest_usable(work, state.commits.recent.of(id).as_deref()).is_some(),
        None => true,
    })
}

/// Returns the bookings of the pieces without a query, if this replica wrote all of them recently.
async fn load_cached(state: &SellingState, works: &[&Work]) -> Option<Known> {
    let mut bookings: HashMap<Uuid, BookingDetails> = HashMap::with_capacity(works.len());
    for work in works {
        let Some(id) = work.booking() else { continue };
        let recent = state.commits.recent.of(id);
        let found = latest_usable(work, recent.as_deref())?;
        if bookings.get(&id).is_none_or(|known| known.row.version < found.row.version) {
            bookings.insert(id, found.clone());
        }
    }
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let shows = cached_shows(state, &news, &bookings).await;
    Some(Known { bookings, shows, ..Known::default() })
}

/// Returns a piece's booking as this replica wrote it last; `None` where the piece would write nothing that verifies
/// it. A move is written for exactly this version. A booking that is paid already may be answered from the cache: it
/// was paid at that moment, whatever happened since, and its money is not taken twice.
fn latest_usable<'a>(work: &'a Work, recent: Option<&'a BookingDetails>) -> Option<&'a BookingDetails> {
    use BookingState::{Confirmed, PaymentPending, SeatsLocked};
    let newest =
        |seen: &'a BookingDetails| recent.filter(|recent| recent.row.version > seen.row.version).unwrap_or(seen);
    let in_state = |found: &&BookingDetails, states: &[BookingState]| states.contains(&found.row.machine.state);
    match work {
        Work::Submit(_) => Some(newest(work.seen()?)).filter(|found| in_state(found, &[SeatsLocked])),
        // The webhook with the same outcome may have been faster.
        Work::RecordChargeOutcome(charge) if charge.is_paid() => {
            Some(newest(work.seen()?)).filter(|found| in_state(found, &[PaymentPending, Confirmed]))
        }
        Work::ApplyWebhook(_) => recent.filter(|found| in_state(found, &[PaymentPending, Confirmed])),
        Work::Create(_) | Work::RecordChargeOutcome(_) => None,
    }
}

/// Returns the shows of bookings with webhooks, as far as they are in memory: loading one takes another connection,
/// which a transaction must not wait for.
async fn cached_shows(
    state: &SellingState,
    news: &[&PaymentEvent],
    bookings: &HashMap<Uuid, BookingDetails>,
) -> HashMap<Uuid, Arc<Show>> {
    let mut shows = HashMap::new();
    for show in news.iter().filter_map(|news| bookings.get(&news.booking)).map(|found| found.row.show_id) {
        if !shows.contains_key(&show)
            && let Some(at_hand) = state.catalogue.cached_show(show).await
        {
            shows.insert(show, at_hand);
        }
    }
    shows
}

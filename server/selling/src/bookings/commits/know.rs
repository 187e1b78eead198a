//! Loads the state that a batch is planned on: from this replica's cache, or from Postgres.

use std::collections::HashMap;
use std::sync::Arc;

use domain::booking::BookingState;
use sqlx::PgConnection;
use uuid::Uuid;

use super::load::{self, Locks};
use super::plan::Known;
use super::run::Trouble;
use super::{Found, Work};
use crate::SellingState;
use catalogue::Show;
use http::idempotency::{self, Intent};
use payments::PaymentNews;
use platform::together::Together;

/// Returns the bookings of the pieces, and true if a key that a piece claims is taken already. The bookings come from
/// the cache where possible.
pub(super) async fn know(
    state: &SellingState,
    tx: &mut PgConnection,
    works: &[&Work],
    locks: Locks,
    keys: &[&Intent],
) -> Result<(Known, bool), Trouble> {
    if locks == Locks::Unread
        && let Some(known) = at_hand(state, works).await
    {
        return Ok((known, false));
    }
    let holds = works.iter().filter_map(|work| work.hold()).collect();
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let mut together = Together::default();
    load::add_versions(&mut together, works.iter().filter_map(|work| work.booking()).collect(), locks)?;
    load::add_holds(&mut together, holds)?;
    load::add_news(&mut together, &news)?;
    idempotency::add_question(&mut together, keys, state.clock.now())?;
    let told = together.run(tx).await?;

    let recent: Vec<Arc<Found>> = news.iter().filter_map(|news| state.commits.recent.of(news.booking)).collect();
    let seen = works.iter().filter_map(|work| work.seen()).chain(recent.iter().map(|found| &**found));
    let seen = seen.map(|found| (found.row.id, found)).collect();
    let bookings = load::as_told(tx, &told, &seen).await?;
    let mut known = Known {
        booked_holds: load::booked_holds(&told)?,
        noted_events: load::noted_events(&told)?,
        ..Known::default()
    };
    known.shows = shows_of(state, &news, &bookings).await;
    known.bookings = bookings;
    Ok((known, !idempotency::none_known(&told)?))
}

/// Checks that all bookings of the pieces are cached and usable.
pub(super) fn is_at_hand<'a>(state: &SellingState, mut works: impl Iterator<Item = &'a Work>) -> bool {
    works.all(|work| match work.booking() {
        Some(id) => latest(work, state.commits.recent.of(id).as_deref()).is_some(),
        None => true,
    })
}

/// Returns the bookings of the pieces without a query, if this replica wrote all of them recently.
async fn at_hand(state: &SellingState, works: &[&Work]) -> Option<Known> {
    let mut bookings: HashMap<Uuid, Found> = HashMap::with_capacity(works.len());
    for work in works {
        let Some(id) = work.booking() else { continue };
        let recent = state.commits.recent.of(id);
        let found = latest(work, recent.as_deref())?;
        if bookings.get(&id).is_none_or(|known| known.row.version < found.row.version) {
            bookings.insert(id, found.clone());
        }
    }
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let shows = shows_of(state, &news, &bookings).await;
    Some(Known { bookings, shows, ..Known::default() })
}

/// Returns a piece's booking as this replica wrote it last; `None` where the piece would write nothing that verifies
/// it. A move is written for exactly this version. A booking that is paid already may be answered from the cache: it
/// was paid at that moment, whatever happened since, and its money is not taken twice.
fn latest<'a>(work: &'a Work, recent: Option<&'a Found>) -> Option<&'a Found> {
    use BookingState::{Confirmed, PaymentPending, SeatsLocked};
    let newest = |seen: &'a Found| recent.filter(|recent| recent.row.version > seen.row.version).unwrap_or(seen);
    let in_state = |found: &&Found, states: &[BookingState]| states.contains(&found.row.machine.state);
    match work {
        Work::Submit(_) => Some(newest(work.seen()?)).filter(|found| in_state(found, &[SeatsLocked])),
        // The webhook with the same outcome may have been faster.
        Work::Learn(lesson) if lesson.is_paid() => {
            Some(newest(work.seen()?)).filter(|found| in_state(found, &[PaymentPending, Confirmed]))
        }
        Work::Hear(_) => recent.filter(|found| in_state(found, &[PaymentPending, Confirmed])),
        Work::Create(_) | Work::Learn(_) => None,
    }
}

/// Returns the shows of bookings with webhooks, as far as they are in memory: loading one takes another connection,
/// which a transaction must not wait for.
async fn shows_of(
    state: &SellingState,
    news: &[&PaymentNews],
    bookings: &HashMap<Uuid, Found>,
) -> HashMap<Uuid, Arc<Show>> {
    let mut shows = HashMap::new();
    for show in news.iter().filter_map(|news| bookings.get(&news.booking)).map(|found| found.row.show_id) {
        if !shows.contains_key(&show)
            && let Some(at_hand) = state.catalogue.at_hand(show).await
        {
            shows.insert(show, at_hand);
        }
    }
    shows
}

//! What is known of a batch before it is planned: as far as this replica knows it, or as it is read.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::PgConnection;
use uuid::Uuid;

use super::load::{self, Locks};
use super::plan::Known;
use super::run::Trouble;
use super::{Found, Work};
use crate::AppState;
use crate::catalogue::Show;
use crate::idempotency::{self, Intent};
use crate::payments::PaymentNews;
use crate::together::Together;

/// What the pieces are about, and whether a key that one of them is to claim is taken: as far as this replica knows, or as
/// it is read.
pub(super) async fn know(
    state: &AppState,
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
    idempotency::add_question(&mut together, keys, state.locks.now())?;
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

/// What the pieces are about without a question, if this replica wrote all of it a moment ago. None of them may be
/// answered by what is not written: each moves its booking or makes it, which nobody else may have done meanwhile; or its
/// booking is paid, and stays so whatever becomes of it.
async fn at_hand(state: &AppState, works: &[&Work]) -> Option<Known> {
    let mut bookings: HashMap<Uuid, Found> = HashMap::with_capacity(works.len());
    for work in works {
        let Some(id) = work.booking() else { continue };
        let recent = state.commits.recent.of(id);
        let seen = match work {
            // Being paid, or paid. Before that somebody else has had it submitted.
            Work::Hear(_) if recent.as_ref().is_some_and(|recent| recent.gateway.is_some()) => None,
            _ if work.moves_its_booking() => Some(work.seen()?),
            _ => return None,
        };
        // The webhook that says the same may have been faster, here or in this batch.
        let latest = recent.as_deref().into_iter().chain(seen).max_by_key(|found| found.row.version)?;
        if bookings.get(&id).is_none_or(|known| known.row.version < latest.row.version) {
            bookings.insert(id, latest.clone());
        }
    }
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let shows = shows_of(state, &news, &bookings).await;
    Some(Known { bookings, shows, ..Known::default() })
}

/// Shows of bookings that there is news of, as far as they are in memory: loading one takes a connection of its own, which
/// a transaction must not wait for.
async fn shows_of(
    state: &AppState,
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

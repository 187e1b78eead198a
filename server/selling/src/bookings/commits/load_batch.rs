//! Loads the state that a batch is planned on. A booking in memory is used only if its locked row has the same version.

use std::collections::HashMap;
use std::sync::Arc;

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

/// Locks and returns the bookings of the pieces, and true if a key that a piece claims is taken already.
pub(super) async fn load_batch(
    state: &SellingState,
    tx: &mut PgConnection,
    works: &[&Work],
    locks: LockMode,
    keys: &[&Intent],
) -> Result<(Known, bool), BatchError> {
    let locked = load::lock_bookings(tx, works.iter().filter_map(|work| work.booking()).collect(), locks).await?;
    let holds: Vec<Uuid> = works.iter().filter_map(|work| work.hold()).collect();
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let mut cte = CteBatch::default();
    if !(holds.is_empty() && news.is_empty() && keys.is_empty()) {
        load::add_holds(&mut cte, holds)?;
        load::add_news(&mut cte, &news)?;
        idempotency::add_lookup(&mut cte, keys, state.clock.now())?;
    }
    let results = cte.run(tx).await?;

    // Only for webhooks: the gateway's page of a pending payment may be newer than the booking's version.
    let recent: Vec<Arc<BookingDetails>> =
        news.iter().filter_map(|news| state.commits.recent.of(news.booking)).collect();
    let seen = works.iter().filter_map(|work| work.seen()).chain(recent.iter().map(|found| &**found));
    let seen = seen.map(|found| (found.row.id, found)).collect();
    let bookings = load::load_locked(tx, locked, &seen).await?;
    let mut known = Known {
        booked_holds: load::booked_holds(&results)?,
        noted_events: load::noted_events(&results)?,
        ..Known::default()
    };
    known.shows = cached_shows(state, &news, &bookings).await;
    known.bookings = bookings;
    Ok((known, !idempotency::all_keys_free(&results)?))
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

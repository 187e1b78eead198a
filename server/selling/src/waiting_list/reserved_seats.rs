//! The free seats and places that are reserved for the waiting list: those that its entries could be offered. What no entry
//! can use is for all, so that an entry which is never served keeps nothing from sale.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use domain::api::SeatKind;
use domain::seats::Places;
use domain::waiting_list::{FreePlaces, OfferedPlaces, takes};
use moka::future::Cache;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::offers::{LONGEST_LINE, free_in};
use super::sql;
use crate::SellingState;
use catalogue::Show;
use http::{ApiResult, Problem};
use seats::seat_locks::{Selection, with_map};

/// Time for which a replica uses the computed [`FreePlaces`] of a show. A seat that is released meanwhile is reserved, until
/// the line was served.
const COMPUTED_FOR: Duration = Duration::from_secs(1);
/// Shows whose free seats are cached at most; the others are computed for each request.
const MAX_COMPUTED_SHOWS: u64 = 1_000;
/// Joins that a replica commits at once. Those of one show wait for its row, and must not occupy the pool meanwhile.
const MAX_CONCURRENT_JOINS: usize = 4;

/// By show, the categories that its waiting entries named; `None` of those that named none.
type WantedCategories = HashMap<Uuid, HashSet<Option<String>>>;

/// A replica's view of all waiting lists. In memory, because every hold checks it; changes of other replicas arrive within
/// a second.
pub struct WaitingListState {
    categories: RwLock<WantedCategories>,
    /// By show, the result of [`free_for_all`], less what this replica has let pass since.
    free_for_all: Cache<Uuid, Arc<Mutex<FreePlaces>>>,
    /// Taken by a join for its transaction.
    pub(super) join_slots: Semaphore,
}

impl Default for WaitingListState {
    fn default() -> Self {
        let free_for_all = Cache::builder().max_capacity(MAX_COMPUTED_SHOWS).time_to_live(COMPUTED_FOR).build();
        Self { categories: RwLock::default(), free_for_all, join_slots: Semaphore::new(MAX_CONCURRENT_JOINS) }
    }
}

impl WaitingListState {
    /// Checks for people who wait for seats or places like one of these, which exist in the show.
    pub(crate) fn has_any(&self, show: &Show, selection: &Selection) -> bool {
        let shows = self.categories.read().unwrap_or_else(PoisonError::into_inner);
        let Some(wanted) = shows.get(&show.id) else { return false };
        let is_wanted = |category: &str, kind| wanted.iter().any(|wanted| takes(wanted.as_deref(), category, kind));
        let mut categories = selection.seats.iter().map(|seat| show.category(*seat));
        let mut areas = selection.places.iter().filter_map(|places| show.area(places.area));
        categories.any(|category| is_wanted(&category.name, category.kind))
            || areas.any(|area| is_wanted(&area.category, SeatKind::Standard))
    }

    pub(super) async fn add(&self, show: Uuid, category: Option<String>) {
        self.categories.write().unwrap_or_else(PoisonError::into_inner).entry(show).or_default().insert(category);
        self.free_for_all.invalidate(&show).await;
    }

    pub(super) fn replace(&self, wanted: impl IntoIterator<Item = (Uuid, Option<String>)>) {
        let mut shows = WantedCategories::new();
        for (show, category) in wanted {
            shows.entry(show).or_default().insert(category);
        }
        *self.categories.write().unwrap_or_else(PoisonError::into_inner) = shows;
    }
}

/// Returns true if one of these seats or places, which exist in the show, is reserved for the waiting list, or is of a wanted
/// category and not free, or was released within the last second. False lets this one request pass: what it wants counts as
/// taken in that second.
///
/// # Errors
/// When the database or the lock store fails.
pub async fn is_reserved(state: &SellingState, show: &Show, selection: &Selection) -> ApiResult<bool> {
    if !state.waiting.has_any(show, selection) {
        return Ok(false);
    }
    // One of several concurrent requests computes.
    let compute = async { free_for_all(state, show).await.map(|free| Arc::new(Mutex::new(free))) };
    let free = state.waiting.free_for_all.try_get_with(show.id, compute).await;
    let free = free.map_err(|problem: Arc<Problem>| Problem::clone(&problem))?;
    let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
    if !includes(&free, selection) {
        return Ok(true);
    }
    free.take(&OfferedPlaces::Seats(selection.seats.clone()));
    selection.places.iter().for_each(|places| free.take(&OfferedPlaces::Places(*places)));
    Ok(false)
}

/// Returns the free seats and places that are left when every entry in line has been offered what it can use. Entries that
/// are paused, because they could not hold their last offer, reserve nothing.
pub(super) async fn free_for_all(state: &SellingState, show: &Show) -> ApiResult<FreePlaces> {
    let snapshot = with_map(state, show, || state.locks.snapshot(show.id)).await?;
    let mut free = free_in(show, &snapshot);
    if free.is_empty() {
        return Ok(free);
    }
    let mut connection = state.pg.acquire().await?;
    let claimants = sql::claimants(&mut connection, show.id, state.clock.now(), LONGEST_LINE).await?;
    drop(connection);
    let (waiting, planned): (Vec<_>, Vec<_>) =
        claimants.iter().partition(|entry| entry.state == sql::EntryState::Waiting);
    planned.into_iter().filter_map(sql::ListEntry::offer).for_each(|offer| free.take(&offer));
    free.serve_all(waiting.into_iter().map(sql::ListEntry::wish));
    Ok(free)
}

fn includes(free: &FreePlaces, selection: &Selection) -> bool {
    let has_seat = |seat| free.seats.binary_search_by_key(seat, |free| free.seat).is_ok();
    let has_places = |places: &Places| {
        let area = free.areas.iter().find(|area| area.left.area == places.area);
        area.is_some_and(|area| area.left.count >= places.count)
    };
    selection.seats.iter().all(has_seat) && selection.places.iter().all(has_places)
}

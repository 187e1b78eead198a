//! The current catalogue, for holds, sales and staff. Equal concurrent reads are shared.
//!
//! Public data that may be a few seconds old is in `listings`.

use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use chrono::{Days, NaiveDate};
use domain::api::PlanView;
use domain::api::catalogue::{CityView, TheatreView};
use domain::api::organiser::Sales;
use domain::layout::{Layout, PlanError};
use domain::time::Timestamp;
use domain::wire::encode_dots;
use moka::future::Cache;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use crate::show::{Show, local_start};
use crate::{Listings, Regions, Standby, is_slug, sql};
use http::{ApiResult, Problem};
use platform::clock;
use platform::database::is_temporary;

/// Number of days in the date strip, today included.
pub const DAYS_AHEAD: u64 = 7;

/// Maximum number of cached shows: far more than are on sale.
const SHOWS_KEPT: u64 = 10_000;
/// Lifetime of a cached show.
const SHOW_LIFE: Duration = Duration::from_secs(300);
/// Maximum number of seats of all cached rooms.
const LAYOUT_SEATS_KEPT: u64 = 1_000_000;
/// Maximum size of all cached plans, bytes.
const PLAN_BYTES_KEPT: u64 = 64 * 1024 * 1024;

/// A part of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanPart {
    /// The whole room, or the overview of a large one: a JSON [`PlanView`].
    Room,
    /// One section: a JSON [`PlanView`].
    Section(u32),
    /// The coordinates of all seats, as bytes: [`domain::wire::encode_dots`].
    Dots,
}

/// A rendered part of a room, with its entity tag.
#[derive(Debug)]
pub struct PlanDocument {
    /// The body.
    pub content: Bytes,
    /// Entity tag, quotes included.
    pub etag: String,
}

impl PlanDocument {
    fn new(content: Vec<u8>) -> Self {
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&content)[..12]));
        Self { content: content.into(), etag }
    }
}

/// Cities, theatres, films, shows and rooms. Cheap to clone; clones share their caches.
#[derive(Clone)]
pub struct Catalogue {
    pool: PgPool,
    shows: Cache<Uuid, Option<Arc<Show>>>,
    rehearsals: Cache<Uuid, Option<Arc<Show>>>,
    layouts: Cache<Uuid, Arc<Layout>>,
    plans: Cache<(Uuid, PlanPart), Option<Arc<PlanDocument>>>,
    listings: Listings,
    regions: Option<Arc<Regions>>,
}

impl Catalogue {
    /// A catalogue that reads from this database.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let seats = |_: &Uuid, layout: &Arc<Layout>| layout.seat_count();
        let bytes = |_: &(Uuid, PlanPart), plan: &Option<Arc<PlanDocument>>| {
            plan.as_ref().map_or(1, |plan| u32::try_from(plan.content.len()).unwrap_or(u32::MAX))
        };
        Self {
            listings: Listings::new(pool.clone(), None),
            regions: None,
            pool,
            shows: Cache::builder().max_capacity(SHOWS_KEPT).time_to_live(SHOW_LIFE).build(),
            rehearsals: Cache::builder().max_capacity(SHOWS_KEPT).time_to_live(SHOW_LIFE).build(),
            layouts: Cache::builder().max_capacity(LAYOUT_SEATS_KEPT).weigher(seats).build(),
            plans: Cache::builder().max_capacity(PLAN_BYTES_KEPT).weigher(bytes).time_to_live(SHOW_LIFE).build(),
        }
    }

    /// This catalogue with its lists read from a standby.
    #[must_use]
    pub fn with_standby(self, standby: Standby) -> Self {
        Self { listings: Listings::new(self.pool.clone(), Some(Arc::new(standby))), ..self }
    }

    /// This catalogue limited to one region: it has no shows of theatres of other regions.
    #[must_use]
    pub fn of_region(self, regions: Regions) -> Self {
        Self { regions: Some(Arc::new(regions)), ..self }
    }

    /// True if this server sells for one region among others.
    #[must_use]
    pub const fn has_regions(&self) -> bool {
        self.regions.is_some()
    }

    /// The address of the region of a show; `None` for a show that no known region has.
    pub async fn other_region_of(&self, id: Uuid) -> sqlx::Result<Option<&str>> {
        let Some(regions) = &self.regions else { return Ok(None) };
        let region = sql::region_of(&self.pool, id).await?;
        Ok(region.and_then(|region| regions.address_of_other(&region)))
    }

    /// The public lists, which may be a few seconds old: do not base decisions on them.
    #[must_use]
    pub const fn listings(&self) -> &Listings {
        &self.listings
    }

    /// A show; `None` when there is none of this id, or it is of another region.
    ///
    /// # Errors
    /// When the database fails, or a row is invalid.
    pub async fn show(&self, id: Uuid) -> sqlx::Result<Option<Arc<Show>>> {
        let show = load_once(&self.shows, id, || async {
            let own = self.regions.as_deref().map(Regions::own);
            let Some(row) = sql::show(&self.pool, id, own).await? else { return Ok(None) };
            let layout = self.layout(row.layout_id).await?;
            Ok(Some(Arc::new(Show::new(row, layout)?)))
        })
        .await?;
        if show.as_ref().is_none_or(|show| show.sales == Sales::Planned) {
            // It may be planned, moved or put on sale in the next moment; only published shows are cached.
            self.shows.invalidate(&id).await;
        }
        Ok(show)
    }

    /// The show of that id.
    ///
    /// # Errors
    /// 421 when it is of another region, 404 when there is none.
    pub async fn find_show(&self, id: Uuid) -> ApiResult<Arc<Show>> {
        match self.show(id).await? {
            Some(show) => Ok(show),
            None => Err(self.unknown_show(id).await?),
        }
    }

    async fn unknown_show(&self, id: Uuid) -> sqlx::Result<Problem> {
        Ok(match Box::pin(self.other_region_of(id)).await? {
            Some(address) => Problem::misdirected(address),
            None => Problem::not_found("show"),
        })
    }

    /// The public show of that id; a planned show is not public.
    ///
    /// # Errors
    /// 404 when there is no public show of that id.
    pub async fn find_public_show(&self, id: Uuid) -> ApiResult<Arc<Show>> {
        require_public(self.find_show(id).await?)
    }

    /// The show of that id, or that of the running rehearsal of that id. A rehearsal has no row in `shows`: no list,
    /// report, booking or other function of the catalogue finds it. Its id is random and given to its simulated
    /// visitors only.
    ///
    /// # Errors
    /// As [`Self::find_show`].
    pub async fn find_show_or_rehearsal(&self, id: Uuid) -> ApiResult<Arc<Show>> {
        if let Some(Some(show)) = self.rehearsals.get(&id).await {
            return Ok(show);
        }
        if let Some(show) = self.show(id).await? {
            return Ok(show);
        }
        match Box::pin(self.rehearsal(id)).await? {
            Some(show) => Ok(show),
            None => Err(self.unknown_show(id).await?),
        }
    }

    /// The public show of that id, or that of the running rehearsal of that id.
    ///
    /// # Errors
    /// As [`Self::find_public_show`].
    pub async fn find_public_show_or_rehearsal(&self, id: Uuid) -> ApiResult<Arc<Show>> {
        require_public(self.find_show_or_rehearsal(id).await?)
    }

    async fn rehearsal(&self, id: Uuid) -> sqlx::Result<Option<Arc<Show>>> {
        let show = load_once(&self.rehearsals, id, || async {
            let Some(rehearsed) = sql::rehearsed_show(&self.pool, id).await? else { return Ok(None) };
            let own = self.regions.as_deref().map(Regions::own);
            let Some(row) = sql::show(&self.pool, rehearsed, own).await? else { return Ok(None) };
            let layout = self.layout(row.layout_id).await?;
            Ok(Some(Arc::new(Show::new(row.rehearsed_as(id), layout)?)))
        })
        .await?;
        if show.is_none() {
            self.rehearsals.invalidate(&id).await;
        }
        Ok(show)
    }

    /// Evicts the show of a rehearsal that has ended.
    pub async fn evict_rehearsal(&self, id: Uuid) {
        self.rehearsals.invalidate(&id).await;
    }

    /// Marks a cached show as called off, for all holders of its `Arc`.
    pub async fn call_off(&self, id: Uuid) {
        if let Some(Some(show)) = self.shows.get(&id).await {
            show.call_off();
        }
    }

    /// Evicts a show whose settings have changed; the next read loads it.
    pub async fn evict(&self, id: Uuid) {
        self.shows.invalidate(&id).await;
        // Plans are cached by show and part.
        let plans: Vec<(Uuid, PlanPart)> =
            self.plans.iter().map(|(key, _)| *key).filter(|(show, _)| *show == id).collect();
        for key in plans {
            self.plans.invalidate(&key).await;
        }
    }

    /// A cached show; never reads the database.
    pub async fn cached_show(&self, id: Uuid) -> Option<Arc<Show>> {
        self.shows.get(&id).await.flatten()
    }

    /// A room that some screen has, or had.
    ///
    /// # Errors
    /// When the database fails, or has no such room.
    pub async fn layout(&self, id: Uuid) -> sqlx::Result<Arc<Layout>> {
        load_once(&self.layouts, id, || async {
            let text = sql::plan(&self.pool, id).await?;
            // An arena takes long enough to read that it would hold up every request on this thread.
            let read = tokio::task::spawn_blocking(move || serde_json::from_str::<Layout>(&text));
            let layout = read.await.map_err(|cause| sqlx::Error::Decode(cause.into()))?;
            layout.map(Arc::new).map_err(|cause| sqlx::Error::Decode(cause.into()))
        })
        .await
    }

    /// The room of a show: whole, in overview when it is large, or one section of it.
    ///
    /// # Errors
    /// When it has no such section.
    pub fn plan(show: &Show, section: Option<u32>) -> Result<PlanView, PlanError> {
        // A section beyond usize is beyond every room.
        let section = section.map(|section| usize::try_from(section).unwrap_or(usize::MAX));
        let plan = show.layout.plan_view(show.id, &show.prices, section)?;
        Ok(PlanView { areas: show.areas.clone(), room: Some(show.layout_id), ..plan })
    }

    /// A part of a show's room, rendered once for all concurrent callers; `None` when there is no such section.
    ///
    /// # Errors
    /// None of the database; the type is that of shared loads.
    pub async fn plan_document(&self, show: &Arc<Show>, part: PlanPart) -> sqlx::Result<Option<Arc<PlanDocument>>> {
        if let PlanPart::Section(section) = part
            && show.layout.sections().nth(section as usize).is_none()
        {
            // Not cached: callers choose the number, so absent sections could fill the memory.
            return Ok(None);
        }
        load_once(&self.plans, (show.id, part), || async {
            let section = match part {
                PlanPart::Dots => {
                    let content = encode_dots(&show.layout.dots());
                    return Ok(Some(Arc::new(PlanDocument::new(content))));
                }
                PlanPart::Section(section) => Some(section),
                PlanPart::Room => None,
            };
            let Ok(plan) = Self::plan(show, section) else { return Ok(None) };
            let content = serde_json::to_vec(&plan).map_err(|cause| sqlx::Error::Encode(cause.into()))?;
            Ok(Some(Arc::new(PlanDocument::new(content))))
        })
        .await
    }

    /// All cities, by name, current: for organisers.
    pub async fn cities(&self) -> sqlx::Result<Vec<CityView>> {
        sql::cities(&self.pool).await
    }

    /// One theatre by its slug, current: for staff.
    pub async fn theatre(&self, id: &str) -> sqlx::Result<Option<TheatreView>> {
        if !is_slug(id) {
            return Ok(None);
        }
        Ok(sql::theatres(&self.pool, None, Some(id)).await?.pop())
    }

    /// Every show of a theatre on a local day, started or cancelled or not, in the order of their start. Planned shows are
    /// drafts and left out.
    pub async fn shows_of_day(&self, theatre: &str, date: NaiveDate) -> sqlx::Result<Vec<Uuid>> {
        sql::shows_of_day(&self.pool, theatre, date).await
    }
}

/// Refuses a show that is not public.
fn require_public(show: Arc<Show>) -> ApiResult<Arc<Show>> {
    if show.sales == Sales::Planned { Err(Problem::not_found("show")) } else { Ok(show) }
}

/// The date in a zone at an instant.
///
/// # Errors
/// When the zone is unknown.
pub fn today_in(zone: &str, now: Timestamp) -> sqlx::Result<NaiveDate> {
    Ok(local_start(clock::to_utc(now), zone)?.date_naive())
}

/// An instant on the clocks of a zone: `20:15`.
///
/// # Errors
/// When the zone is unknown.
pub fn clock_in(zone: &str, at: Timestamp) -> sqlx::Result<String> {
    Ok(local_start(clock::to_utc(at), zone)?.format("%H:%M").to_string())
}

/// The days of the date strip, from `today`.
pub fn days_from(today: NaiveDate) -> impl Iterator<Item = NaiveDate> {
    (0..DAYS_AHEAD).filter_map(move |ahead| today.checked_add_days(Days::new(ahead)))
}

/// Reads from the cache, or loads once for all concurrent callers. A failure is returned to all of them and not cached.
///
/// # Errors
/// When loading fails.
pub async fn load_once<K, V, F>(cache: &Cache<K, V>, key: K, load: impl FnOnce() -> F) -> sqlx::Result<V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = sqlx::Result<V>>,
{
    if let Some(known) = cache.get(&key).await {
        return Ok(known);
    }
    // Boxed: most values are cached, and loading would add kilobytes to the future of every caller.
    let loaded = Box::pin(cache.try_get_with(key, load())).await;
    loaded.map_err(|shared| Arc::try_unwrap(shared).unwrap_or_else(|shared| copy_error(&shared)))
}

/// Copies an error for each of several waiting callers. A temporary error stays temporary, which decides between 503 and
/// 500.
fn copy_error(shared: &sqlx::Error) -> sqlx::Error {
    if is_temporary(shared) {
        sqlx::Error::Io(std::io::Error::other(shared.to_string()))
    } else {
        sqlx::Error::Protocol(shared.to_string())
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

    use super::*;

    const ROOM: &str = r#"{"sketch": 1, "name": "Club", "categories": [{"name": "gold"}],
        "zones": [{"category": "gold", "rows": [{"rows": "A", "seats": "1-4"}]}]}"#;

    #[tokio::test]
    async fn only_sections_of_the_room_are_cached() {
        let nowhere = PgConnectOptions::new().host("127.0.0.1").port(1);
        let catalogue = Catalogue::new(PgPoolOptions::new().connect_lazy_with(nowhere));
        let show = Arc::new(Show::in_room(Layout::from_json(ROOM).expect("a room")));
        for (section, exists) in [(0, true), (1, false), (u32::MAX, false)] {
            let part = PlanPart::Section(section);
            let document = catalogue.plan_document(&show, part).await.expect("no database is asked");
            assert_eq!(document.is_some(), exists, "{section}");
            assert_eq!(catalogue.plans.contains_key(&(show.id, part)), exists, "{section}");
        }
    }
}

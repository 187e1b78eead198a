//! Public data that may be a few seconds old: cities, theatres, films, lists of shows.
//!
//! Read from a standby of Postgres if one is near enough, else from the primary (docs/decisions/0046). So nothing here may
//! decide anything: whether a seat is free, its price, permissions. Staff read the [`Catalogue`](super::Catalogue) instead:
//! they must see their own writes.

use std::sync::Arc;
use std::time::Duration;

use domain::api::catalogue::{CityView, FilmView, TheatreView};
use domain::time::{MINUTE_MS, Timestamp};
use moka::future::Cache;
use sqlx::PgPool;
use uuid::Uuid;

use super::service::load_once;
use super::sql::{self, FilmTonight, ListedShow, ShowSearchResult};
use super::{ShowSearch, Standby, is_slug};
use platform::telemetry::{CatalogueRead, catalogue_read};

/// "Tonight" on the front page: what starts within this many milliseconds.
const TONIGHT_MS: i64 = 14 * 60 * MINUTE_MS;
/// The sitemap has the shows that start within this many milliseconds: two weeks.
const SITEMAP_MS: i64 = 14 * 24 * 60 * MINUTE_MS;
/// Maximum number of cached searches, and of shows whose seats left are cached.
const SEARCHES_KEPT: u64 = 1_000;
/// Lifetime of both: they have the number of free seats, not a map.
const SEARCH_LIFE: Duration = Duration::from_secs(2);

/// The public lists. Cheap to clone; clones share their cache.
#[derive(Clone)]
pub struct Listings {
    primary: PgPool,
    standby: Option<Arc<Standby>>,
    searches: Cache<ShowSearch, Arc<ShowSearchResult>>,
    seats_left: Cache<Uuid, Option<u32>>,
}

impl Listings {
    pub(super) fn new(primary: PgPool, standby: Option<Arc<Standby>>) -> Self {
        let searches = Cache::builder().max_capacity(SEARCHES_KEPT).time_to_live(SEARCH_LIFE).build();
        let seats_left = Cache::builder().max_capacity(SEARCHES_KEPT).time_to_live(SEARCH_LIFE).build();
        Self { primary, standby, searches, seats_left }
    }

    pub(super) const fn standby(&self) -> Option<&Arc<Standby>> {
        self.standby.as_ref()
    }

    /// All cities, by name.
    pub async fn cities(&self) -> sqlx::Result<Vec<CityView>> {
        self.read(|pool| async move { sql::cities(&pool).await }).await
    }

    /// One city by its slug.
    pub async fn city(&self, id: &str) -> sqlx::Result<Option<CityView>> {
        if !is_slug(id) {
            return Ok(None);
        }
        self.find(|pool| async move { Ok(sql::cities(&pool).await?.into_iter().find(|city| city.id == id)) }).await
    }

    /// Theatres of a city, or all, by city and name.
    pub async fn theatres(&self, city: Option<&str>) -> sqlx::Result<Vec<TheatreView>> {
        self.read(|pool| async move { sql::theatres(&pool, city, None).await }).await
    }

    /// One theatre by its slug.
    pub async fn theatre(&self, id: &str) -> sqlx::Result<Option<TheatreView>> {
        if !is_slug(id) {
            return Ok(None);
        }
        self.find(|pool| async move { Ok(sql::theatres(&pool, None, Some(id)).await?.pop()) }).await
    }

    /// One film by its slug.
    pub async fn film(&self, id: &str) -> sqlx::Result<Option<FilmView>> {
        if !is_slug(id) {
            return Ok(None);
        }
        self.find(|pool| async move { sql::film(&pool, id).await }).await
    }

    /// Films that start in the next hours, the most shown first.
    pub async fn films_tonight(&self, now: Timestamp) -> sqlx::Result<Vec<FilmTonight>> {
        self.read(|pool| async move { sql::films_between(&pool, now, now.plus_ms(TONIGHT_MS)).await }).await
    }

    /// Languages one may search for.
    pub async fn languages(&self, now: Timestamp) -> sqlx::Result<Vec<String>> {
        self.read(|pool| async move { sql::languages(&pool, now).await }).await
    }

    /// Shows that start after `now` and answer the search, in the order of their start.
    ///
    /// # Errors
    /// When the database fails, or a row is invalid.
    pub async fn search(&self, search: &ShowSearch, now: Timestamp) -> sqlx::Result<Arc<ShowSearchResult>> {
        let found = || self.read(|pool| async move { sql::shows(&pool, search, now).await.map(Arc::new) });
        load_once(&self.searches, search.clone(), found).await
    }

    /// One show as a list has it, with the seats left; started or not.
    ///
    /// # Errors
    /// When the database fails, or a row is invalid.
    pub async fn listed(&self, id: Uuid, now: Timestamp) -> sqlx::Result<Option<ListedShow>> {
        self.find(|pool| async move { sql::listed(&pool, id, now).await }).await
    }

    /// Seats left of a show, shared by all callers of two seconds; `None` when there is no such show.
    ///
    /// # Errors
    /// When the database fails, or a row is invalid.
    pub async fn seats_left(&self, id: Uuid, now: Timestamp) -> sqlx::Result<Option<u32>> {
        let seats_left = |listed: Option<ListedShow>| listed.map(|listed| listed.show.seats_left);
        load_once(&self.seats_left, id, || async { self.listed(id, now).await.map(seats_left) }).await
    }

    /// Shows of a city in the next two weeks, cancelled ones as well, with the slug of their film: for search engines, which
    /// must see that a show is cancelled.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn shows_for_sitemap(&self, city: &str, now: Timestamp) -> sqlx::Result<Vec<(Uuid, String)>> {
        self.read(|pool| async move { sql::shows_between(&pool, city, now, now.plus_ms(SITEMAP_MS)).await }).await
    }

    /// Reads a list: of the standby if it may be and answers, else of the primary.
    async fn read<T, F>(&self, ask: impl Fn(PgPool) -> F) -> sqlx::Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        self.first_of(ask, |_| true).await
    }

    /// Reads one row. If the standby has none, the primary is asked: a link may lead to a row that was written a moment ago.
    async fn find<T, F>(&self, ask: impl Fn(PgPool) -> F) -> sqlx::Result<Option<T>>
    where
        F: Future<Output = sqlx::Result<Option<T>>>,
    {
        self.first_of(ask, Option::is_some).await
    }

    async fn first_of<T, F>(&self, ask: impl Fn(PgPool) -> F, is_answer: impl Fn(&T) -> bool) -> sqlx::Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let why = match &self.standby {
            None => CatalogueRead::Primary,
            Some(standby) => match standby.read(&ask).await {
                Ok(found) if is_answer(&found) => {
                    catalogue_read(CatalogueRead::Standby);
                    return Ok(found);
                }
                Ok(_) => CatalogueRead::NotThere,
                Err(why) => why,
            },
        };
        catalogue_read(why);
        ask(self.primary.clone()).await
    }
}

//! Every query of the catalogue. All of them read.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use domain::api::SeatKind;
use domain::api::catalogue::{Availability, CityView, FilmView, ShowStatus, ShowView, TheatreView};
use domain::api::organiser::Sales;
use domain::money::{Currency, Money};
use domain::pricing::PriceList;
use domain::time::Timestamp;
use serde::Deserialize;
use sqlx::postgres::PgArguments;
use sqlx::types::Json;
use sqlx::{Arguments, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::show::{ShowRow, local_start, lowest_price, wrong_row};
use crate::{ShowSearch, alive_since, claim_is_alive};
use platform::clock;
use platform::database::BindAll;

/// Most rows of a list of places or films.
const PLACE_LIMIT: i64 = 500;

/// Converts a count: Postgres counts in i64; ours fit u32 by the limits on the rows.
fn count(rows: i64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// All cities, by name.
pub(super) async fn cities(pool: &PgPool) -> sqlx::Result<Vec<CityView>> {
    let sql = "SELECT c.id, c.name, c.country, c.time_zone, count(t.id) AS theatres
               FROM cities c
               LEFT JOIN theatres t ON t.city_id = c.id
               GROUP BY c.id
               ORDER BY c.name, c.id
               LIMIT $1";
    let rows: Vec<(String, String, String, String, i64)> =
        sqlx::query_as(sql).bind(PLACE_LIMIT).fetch_all(pool).await?;
    let view =
        |(id, name, country, time_zone, theatres)| CityView { id, name, country, time_zone, theatres: count(theatres) };
    Ok(rows.into_iter().map(view).collect())
}

/// Theatres, of one city or all, or one by its id.
pub(super) async fn theatres(
    pool: &PgPool,
    city: Option<&str>,
    theatre: Option<&str>,
) -> sqlx::Result<Vec<TheatreView>> {
    let sql = "SELECT t.id, t.name, t.address, c.id AS city, c.name AS city_name, c.time_zone,
                      count(sc.id) AS screens
               FROM theatres t
               JOIN cities c ON c.id = t.city_id
               LEFT JOIN screens sc ON sc.theatre_id = t.id
               WHERE ($1::text IS NULL OR t.city_id = $1)
                 AND ($2::text IS NULL OR t.id = $2)
               GROUP BY t.id, c.id
               ORDER BY c.name, t.name, t.id
               LIMIT $3";
    let rows: Vec<(String, String, String, String, String, String, i64)> =
        sqlx::query_as(sql).bind_all((city, theatre, PLACE_LIMIT)).fetch_all(pool).await?;
    let view = |(id, name, address, city, city_name, time_zone, screens)| TheatreView {
        id,
        name,
        address,
        city,
        city_name,
        time_zone,
        screens: count(screens),
    };
    Ok(rows.into_iter().map(view).collect())
}

/// A film with what is left of today.
#[derive(Clone, Debug)]
pub struct FilmTonight {
    /// The film.
    pub film: FilmView,
    /// Number of shows that start in the window.
    pub shows: u32,
    /// Names of the cities that show it, in alphabetical order.
    pub cities: Vec<String>,
}

#[derive(platform::FromRow)]
struct FilmRow {
    film_id: String,
    title: String,
    tagline: String,
    synopsis: String,
    running_minutes: i32,
    rating: String,
    genre: String,
    hue: i16,
}

impl From<FilmRow> for FilmView {
    fn from(row: FilmRow) -> Self {
        Self {
            id: row.film_id,
            title: row.title,
            tagline: row.tagline,
            synopsis: row.synopsis,
            // Both are checked by the table.
            running_minutes: row.running_minutes.unsigned_abs(),
            rating: row.rating,
            genre: row.genre,
            hue: row.hue.unsigned_abs(),
        }
    }
}

pub(super) async fn film(pool: &PgPool, id: &str) -> sqlx::Result<Option<FilmView>> {
    let sql = "SELECT id AS film_id, title, tagline, synopsis, running_minutes, rating, genre, hue
               FROM films
               WHERE id = $1";
    let row: Option<FilmRow> = sqlx::query_as(sql).bind(id).fetch_optional(pool).await?;
    Ok(row.map(FilmView::from))
}

#[derive(platform::FromRow)]
struct TonightRow {
    #[flatten]
    film: FilmRow,
    shows: i64,
    cities: Vec<String>,
}

/// Films with a show starting after `from` and not after `until`, the most shown first.
pub(super) async fn films_between(pool: &PgPool, from: Timestamp, until: Timestamp) -> sqlx::Result<Vec<FilmTonight>> {
    let sql = "SELECT f.id AS film_id, f.title, f.tagline, f.synopsis, f.running_minutes, f.rating, f.genre, f.hue,
                      count(*) AS shows,
                      array_agg(DISTINCT c.name ORDER BY c.name) AS cities
               FROM shows s
               JOIN films f ON f.id = s.film_id
               JOIN screens sc ON sc.id = s.screen_id
               JOIN theatres t ON t.id = sc.theatre_id
               JOIN cities c ON c.id = t.city_id
               WHERE s.starts_at > $1 AND s.starts_at <= $2 AND NOT s.called_off AND s.sales <> 'planned'
               GROUP BY f.id
               ORDER BY count(*) DESC, f.title, f.id
               LIMIT $3";
    let rows: Vec<TonightRow> =
        sqlx::query_as(sql).bind_all((clock::to_utc(from), clock::to_utc(until), PLACE_LIMIT)).fetch_all(pool).await?;
    Ok(rows
        .into_iter()
        .map(|row| FilmTonight { film: row.film.into(), shows: count(row.shows), cities: row.cities })
        .collect())
}

/// Languages of shows still to come.
pub(super) async fn languages(pool: &PgPool, now: Timestamp) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(
        "SELECT DISTINCT language FROM shows WHERE starts_at > $1 AND sales <> 'planned' ORDER BY language LIMIT $2",
    )
    .bind_all((clock::to_utc(now), PLACE_LIMIT))
    .fetch_all(pool)
    .await
}

/// Most shows in one answer; a theatre's busiest day is about a fifth of it.
const SHOW_LIMIT: i64 = 300;

/// A show in a list, with its film.
#[derive(Clone, Debug)]
pub struct ListedShow {
    /// The show.
    pub show: ShowView,
    /// Its film.
    pub film: FilmView,
}

impl ListedShow {
    /// The ids of its theatre and film, under which a CDN keeps answers that list it.
    #[must_use]
    pub fn theatre_and_film(&self) -> (&str, &str) {
        (&self.show.theatre, &self.film.id)
    }
}

/// The result of a search, in the order of the start.
#[derive(Debug)]
pub struct ShowSearchResult {
    /// The shows.
    pub shows: Vec<ListedShow>,
    /// True if there are more than the limit.
    pub more: bool,
    /// Time of the query: the data is no older, except for the lag of a standby.
    pub asked: Instant,
}

/// A category in `layouts.categories`.
#[derive(Deserialize)]
struct StoredCategory {
    name: String,
    #[serde(default)]
    kind: SeatKind,
}

#[derive(platform::FromRow)]
struct ListedRow {
    id: Uuid,
    starts_at: DateTime<Utc>,
    local_date: NaiveDate,
    language: String,
    format: String,
    currency: String,
    prices: Json<BTreeMap<String, i64>>,
    categories: Json<Vec<StoredCategory>>,
    screen: String,
    theatre: String,
    theatre_name: String,
    city: String,
    city_name: String,
    time_zone: String,
    #[flatten]
    film: FilmRow,
    seat_count: i32,
    house_seats: i32,
    taken: i64,
    places: i64,
    places_taken: i64,
    sales: String,
    sales_from: Option<DateTime<Utc>>,
    called_off: bool,
}

impl ListedRow {
    /// A row that cannot be is an error that names itself, never a default.
    fn read(self, now: Timestamp) -> sqlx::Result<ListedShow> {
        let id = self.id;
        let sales = self.sales.parse::<Sales>().map_err(|_| wrong_row("shows", "sales", &id))?;
        let sales_from = self.sales_from.map(clock::from_utc);
        let currency = Currency::parse(&self.currency).ok_or_else(|| wrong_row("shows", "currency", &id))?;
        let prices = PriceList { currency, by_category: self.prices.0 };
        let by_kind =
            self.categories.iter().filter_map(|category| Some((category.kind, prices.price(&category.name)?)));
        // A room may have wheelchair spaces and companions' seats only.
        let from_price = lowest_price(by_kind)
            .or_else(|| prices.by_category.values().min().map(|minor| Money::new(*minor, currency)))
            .ok_or_else(|| wrong_row("shows", "prices", &id))?;
        let local = local_start(self.starts_at, &self.time_zone)?;
        let seat_count = u32::try_from(self.seat_count).map_err(|_| wrong_row("layouts", "seat_count", &id))?;
        let seats_free = seat_count.saturating_sub(self.house_seats.unsigned_abs()).saturating_sub(count(self.taken));
        // Capacity: seats and standing places.
        let seat_count = seat_count.saturating_add(count(self.places));
        let seats_left = seats_free.saturating_add(count(self.places.saturating_sub(self.places_taken)));
        let film = FilmView::from(self.film);
        let starts_at = clock::from_utc(self.starts_at);
        let show = ShowView {
            id,
            film: film.id.clone(),
            film_title: film.title.clone(),
            running_minutes: film.running_minutes,
            theatre: self.theatre,
            theatre_name: self.theatre_name,
            screen: self.screen,
            city: self.city,
            city_name: self.city_name,
            starts_at: clock::rfc3339(starts_at),
            starts_at_ms: starts_at.0,
            local_date: self.local_date.to_string(),
            local_time: local.format("%H:%M").to_string(),
            language: self.language,
            format: self.format,
            from_price,
            seat_count,
            seats_left,
            availability: Availability::of(seats_left, seat_count),
            status: ShowStatus::of(self.called_off, sales, sales_from, starts_at, now),
        };
        let show = if self.called_off { show.called_off() } else { show };
        Ok(ListedShow { show, film })
    }
}

const LISTED: &str = "
    WITH listed AS (
        SELECT s.id, s.starts_at, s.local_date, s.language, s.format, s.currency, s.prices,
               s.sales, s.sales_from, s.called_off,
               cardinality(s.blocked) AS house_seats,
               sc.name AS screen,
               t.id AS theatre, t.name AS theatre_name,
               c.id AS city, c.name AS city_name, c.time_zone,
               f.id AS film_id, f.title, f.tagline, f.synopsis, f.running_minutes, f.rating, f.genre, f.hue,
               l.seat_count, l.categories
        FROM shows s
        JOIN screens sc ON sc.id = s.screen_id
        JOIN theatres t ON t.id = sc.theatre_id
        JOIN cities c ON c.id = t.city_id
        JOIN films f ON f.id = s.film_id
        JOIN layouts l ON l.id = s.layout_id
        WHERE ";
const FIRST_TO_START: &str = "
        ORDER BY s.starts_at, t.name, sc.name, s.id
        LIMIT ";
/// Counts after the limit, so that claims of other shows are not read. `$1`: the time since when claims are alive.
const WITH_TAKEN: &str = concat!(
    "
    )
    SELECT listed.*, stock.places, stock.places_taken,
           (SELECT count(*)
            FROM seat_claims k
            WHERE k.show_id = listed.id AND ",
    claim_is_alive!("k", "$1"),
    ") AS taken
    FROM listed
    CROSS JOIN LATERAL (SELECT coalesce(sum(a.capacity), 0)::bigint AS places,
                               coalesce(sum(a.claimed + a.sold), 0)::bigint AS places_taken
                        FROM area_stock a
                        WHERE a.show_id = listed.id) stock
    ORDER BY listed.starts_at, listed.theatre_name, listed.screen, listed.id"
);

/// The query for lists of shows, up to its conditions; `$1` is that of [`WITH_TAKEN`].
fn listing(now: Timestamp) -> sqlx::Result<QueryBuilder<Postgres>> {
    let mut arguments = PgArguments::default();
    arguments.add(alive_since(now)).map_err(sqlx::Error::Encode)?;
    Ok(QueryBuilder::with_arguments(LISTED, arguments))
}

/// Shows that start after `now` and answer the search.
pub(super) async fn shows(pool: &PgPool, search: &ShowSearch, now: Timestamp) -> sqlx::Result<ShowSearchResult> {
    let mut query = listing(now)?;
    query.push("NOT s.called_off AND s.sales <> 'planned' AND s.starts_at > ").push_bind(clock::to_utc(now));
    // Only given fields become conditions, so that each query can use its index.
    if let Some(film) = &search.film {
        query.push(" AND s.film_id = ").push_bind(film);
    }
    if let Some(city) = &search.city {
        query.push(" AND t.city_id = ").push_bind(city);
    }
    if let Some(date) = search.date {
        query.push(" AND s.local_date = ").push_bind(date);
    }
    if let Some(theatre) = &search.theatre {
        query.push(" AND t.id = ").push_bind(theatre);
    }
    if let Some(language) = &search.language {
        query.push(" AND lower(s.language) = lower(").push_bind(language).push(")");
    }
    if let Some(format) = &search.format {
        query.push(" AND s.format = upper(").push_bind(format).push(")");
    }
    if let Some(text) = &search.text {
        for (column, before) in [("f.title", " AND ("), ("f.genre", " OR "), ("t.name", " OR ")] {
            query.push(format_args!("{before}strpos(search_text({column}), search_text(")).push_bind(text);
            query.push(")) > 0");
        }
        query.push(")");
    }
    query.push(FIRST_TO_START).push_bind(SHOW_LIMIT + 1);
    query.push(WITH_TAKEN);

    let asked = Instant::now();
    let rows: Vec<ListedRow> = query.build_query_as().fetch_all(pool).await?;
    let limit = usize::try_from(SHOW_LIMIT).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    let shows = rows.into_iter().take(limit).map(|row| row.read(now)).collect::<Result<_, _>>()?;
    Ok(ShowSearchResult { shows, more, asked })
}

/// Most shows of a city in one answer to search engines. A sitemap may have 50,000 addresses, and has those of theatres and
/// films as well (sitemaps.org).
const SITEMAP_SHOWS: i64 = 20_000;

/// Shows of a city that start after `from` and not after `until`, cancelled ones as well, with the slug of their film, in the
/// order of their start.
pub(super) async fn shows_between(
    pool: &PgPool,
    city: &str,
    from: Timestamp,
    until: Timestamp,
) -> sqlx::Result<Vec<(Uuid, String)>> {
    // An index has the local date, which is a day off at most.
    let sql = "SELECT s.id, s.film_id
               FROM shows s
               JOIN screens sc ON sc.id = s.screen_id
               JOIN theatres t ON t.id = sc.theatre_id
               WHERE t.city_id = $1 AND s.starts_at > $2 AND s.starts_at <= $3 AND s.sales <> 'planned'
                 AND s.local_date >= ($2::timestamptz AT TIME ZONE 'UTC')::date - 1
                 AND s.local_date <= ($3::timestamptz AT TIME ZONE 'UTC')::date + 1
               ORDER BY s.starts_at, s.id
               LIMIT $4";
    sqlx::query_as(sql).bind_all((city, clock::to_utc(from), clock::to_utc(until), SITEMAP_SHOWS)).fetch_all(pool).await
}

/// Every show of a theatre on a day but planned ones, in the order of their start.
pub(super) async fn shows_of_day(pool: &PgPool, theatre: &str, date: NaiveDate) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT s.id FROM shows s JOIN screens sc ON sc.id = s.screen_id
               WHERE sc.theatre_id = $1 AND s.local_date = $2 AND s.sales <> 'planned'
               ORDER BY s.starts_at, sc.name, s.id LIMIT $3";
    sqlx::query_scalar(sql).bind_all((theatre, date, SHOW_LIMIT)).fetch_all(pool).await
}

/// One show, started or not.
pub(super) async fn listed(pool: &PgPool, id: Uuid, now: Timestamp) -> sqlx::Result<Option<ListedShow>> {
    let mut query = listing(now)?;
    query.push("s.id = ").push_bind(id);
    query.push(FIRST_TO_START).push_bind(1_i64);
    query.push(WITH_TAKEN);
    let row: Option<ListedRow> = query.build_query_as().fetch_optional(pool).await?;
    row.map(|row| row.read(now)).transpose()
}

/// A LIKE pattern for "contains `text`", in which the text's own wildcards mean themselves.
#[must_use]
pub fn containing(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// Everything about a show that does not change while it sells, but for its room. None of a theatre that is of another
/// region than this.
pub(super) async fn show(pool: &PgPool, id: Uuid, region: Option<&str>) -> sqlx::Result<Option<ShowRow>> {
    sqlx::query_as(
        "SELECT s.id, s.layout_id, s.starts_at, s.language, s.format, s.currency, s.prices, s.tax_basis_points,
                s.fee_minor, s.blocked, s.hold_ms, s.flash_sale, s.per_person, s.email_code, s.per_instrument, s.sales,
                s.sales_from, s.called_off,
                false AS is_rehearsal, f.id AS film_id, f.title AS film_title, f.hue, f.running_minutes, f.rating,
                sc.name AS screen,
                t.id AS theatre_id, t.name AS theatre, t.address,
                c.id AS city_id, c.name AS city, c.time_zone,
                (SELECT coalesce(jsonb_agg(jsonb_build_object('area', a.area_no, 'name', a.name, 'category', a.category,
                                                              'capacity', a.capacity) ORDER BY a.area_no), '[]')
                 FROM area_stock a WHERE a.show_id = s.id) AS areas
         FROM shows s
         JOIN films f ON f.id = s.film_id
         JOIN screens sc ON sc.id = s.screen_id
         JOIN theatres t ON t.id = sc.theatre_id
         JOIN cities c ON c.id = t.city_id
         WHERE s.id = $1 AND ($2::text IS NULL OR t.region IS NULL OR t.region = $2)",
    )
    .bind_all((id, region))
    .fetch_optional(pool)
    .await
}

/// The show that a running rehearsal sells.
pub(super) async fn rehearsed_show(pool: &PgPool, rehearsal: Uuid) -> sqlx::Result<Option<Uuid>> {
    let query = "SELECT show_id FROM rehearsals WHERE id = $1 AND ended_at IS NULL";
    sqlx::query_scalar(query).bind(rehearsal).fetch_optional(pool).await
}

/// The region of a show, here or elsewhere.
pub(super) async fn region_of(pool: &PgPool, show: Uuid) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT region FROM show_regions WHERE show_id = $1").bind(show).fetch_optional(pool).await
}

/// A room as stored: JSON text of `domain::layout::Layout`.
pub(super) async fn plan(pool: &PgPool, layout: Uuid) -> sqlx::Result<String> {
    sqlx::query_scalar("SELECT plan::text FROM layouts WHERE id = $1").bind(layout).fetch_one(pool).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_a_search_mean_themselves() {
        assert_eq!(containing("100% o_k\\"), "%100\\% o\\_k\\\\%");
    }
}

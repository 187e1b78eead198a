//! Shows in lists: what a search finds, and what is left of each.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use domain::api::catalogue::{Availability, FilmView, ShowStatus, ShowView};
use domain::api::organiser::Sales;
use domain::money::{Currency, Money};
use domain::time::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::types::Json;
use sqlx::{Arguments, FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::count;
use super::films::FilmRow;
use crate::ShowSearch;
use crate::show::{local_start, wrong_row};
use crate::{alive_since, claim_is_alive};
use platform::clock;

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

#[derive(FromRow)]
struct ListedRow {
    id: Uuid,
    starts_at: DateTime<Utc>,
    local_date: NaiveDate,
    language: String,
    format: String,
    currency: String,
    prices: Json<BTreeMap<String, i64>>,
    screen: String,
    theatre: String,
    theatre_name: String,
    city: String,
    city_name: String,
    time_zone: String,
    #[sqlx(flatten)]
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
    fn read(self, now: Timestamp) -> Result<ListedShow, sqlx::Error> {
        let id = self.id;
        let sales = Sales::parse(&self.sales).ok_or_else(|| wrong_row("shows", "sales", &id))?;
        let sales_from = self.sales_from.map(clock::from_utc);
        let currency = Currency::parse(&self.currency).ok_or_else(|| wrong_row("shows", "currency", &id))?;
        let cheapest = self.prices.values().min().ok_or_else(|| wrong_row("shows", "prices", &id))?;
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
            from_price: Money::new(*cheapest, currency),
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
               l.seat_count
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
fn listing(now: Timestamp) -> Result<QueryBuilder<Postgres>, sqlx::Error> {
    let mut arguments = PgArguments::default();
    arguments.add(alive_since(now)).map_err(sqlx::Error::Encode)?;
    Ok(QueryBuilder::with_arguments(LISTED, arguments))
}

/// Shows that start after `now` and answer the search.
pub(crate) async fn shows(pool: &PgPool, search: &ShowSearch, now: Timestamp) -> Result<ShowSearchResult, sqlx::Error> {
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

/// Every show of a theatre on a day, in the order of their start.
pub(crate) async fn shows_of_day(pool: &PgPool, theatre: &str, date: NaiveDate) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT s.id FROM shows s JOIN screens sc ON sc.id = s.screen_id
         WHERE sc.theatre_id = $1 AND s.local_date = $2 ORDER BY s.starts_at, sc.name, s.id LIMIT $3",
    )
    .bind(theatre)
    .bind(date)
    .bind(SHOW_LIMIT)
    .fetch_all(pool)
    .await
}

/// One show, started or not.
pub(crate) async fn listed(pool: &PgPool, id: Uuid, now: Timestamp) -> Result<Option<ListedShow>, sqlx::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_a_search_mean_themselves() {
        assert_eq!(containing("100% o_k\\"), "%100\\% o\\_k\\\\%");
    }
}

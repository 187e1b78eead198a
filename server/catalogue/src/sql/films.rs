//! Films, and the languages they are shown in.

use domain::api::catalogue::FilmView;
use domain::time::Timestamp;
use sqlx::{FromRow, PgPool};

use super::{PLACE_LIMIT, count};
use platform::clock;

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

#[derive(FromRow)]
pub(super) struct FilmRow {
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

pub(crate) async fn film(pool: &PgPool, id: &str) -> Result<Option<FilmView>, sqlx::Error> {
    let row: Option<FilmRow> = sqlx::query_as(
        "SELECT id AS film_id, title, tagline, synopsis, running_minutes, rating, genre, hue
         FROM films
         WHERE id = $1",
    )
    .bind(id)
    .fetch_optional(pool)
    .await?;
    Ok(row.map(FilmView::from))
}

#[derive(FromRow)]
struct TonightRow {
    #[sqlx(flatten)]
    film: FilmRow,
    shows: i64,
    cities: Vec<String>,
}

/// Films with a show starting after `from` and not after `until`, the most shown first.
pub(crate) async fn films_between(
    pool: &PgPool,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<FilmTonight>, sqlx::Error> {
    let rows: Vec<TonightRow> = sqlx::query_as(
        "SELECT f.id AS film_id, f.title, f.tagline, f.synopsis, f.running_minutes, f.rating, f.genre, f.hue,
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
         LIMIT $3",
    )
    .bind(clock::to_utc(from))
    .bind(clock::to_utc(until))
    .bind(PLACE_LIMIT)
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| FilmTonight { film: row.film.into(), shows: count(row.shows), cities: row.cities })
        .collect())
}

/// Languages of shows still to come.
pub(crate) async fn languages(pool: &PgPool, now: Timestamp) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT DISTINCT language FROM shows WHERE starts_at > $1 AND sales <> 'planned' ORDER BY language LIMIT $2",
    )
    .bind(clock::to_utc(now))
    .bind(PLACE_LIMIT)
    .fetch_all(pool)
    .await
}

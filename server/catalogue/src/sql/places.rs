//! Cities and theatres.

use domain::api::catalogue::{CityView, TheatreView};
use sqlx::{FromRow, PgPool};

use super::{PLACE_LIMIT, count};

#[derive(FromRow)]
struct CityRow {
    id: String,
    name: String,
    country: String,
    time_zone: String,
    theatres: i64,
}

impl From<CityRow> for CityView {
    fn from(row: CityRow) -> Self {
        let CityRow { id, name, country, time_zone, theatres } = row;
        Self { id, name, country, time_zone, theatres: count(theatres) }
    }
}

pub(crate) async fn cities(pool: &PgPool) -> Result<Vec<CityView>, sqlx::Error> {
    let rows: Vec<CityRow> = sqlx::query_as(
        "SELECT c.id, c.name, c.country, c.time_zone, count(t.id) AS theatres
         FROM cities c
         LEFT JOIN theatres t ON t.city_id = c.id
         GROUP BY c.id
         ORDER BY c.name, c.id
         LIMIT $1",
    )
    .bind(PLACE_LIMIT)
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(CityView::from).collect())
}

#[derive(FromRow)]
struct TheatreRow {
    id: String,
    name: String,
    address: String,
    city: String,
    city_name: String,
    time_zone: String,
    screens: i64,
}

impl From<TheatreRow> for TheatreView {
    fn from(row: TheatreRow) -> Self {
        let TheatreRow { id, name, address, city, city_name, time_zone, screens } = row;
        Self { id, name, address, city, city_name, time_zone, screens: count(screens) }
    }
}

/// Theatres, of one city or all, or one by its id.
pub(crate) async fn theatres(
    pool: &PgPool,
    city: Option<&str>,
    theatre: Option<&str>,
) -> Result<Vec<TheatreView>, sqlx::Error> {
    let rows: Vec<TheatreRow> = sqlx::query_as(
        "SELECT t.id, t.name, t.address, c.id AS city, c.name AS city_name, c.time_zone,
                count(sc.id) AS screens
         FROM theatres t
         JOIN cities c ON c.id = t.city_id
         LEFT JOIN screens sc ON sc.theatre_id = t.id
         WHERE ($1::text IS NULL OR t.city_id = $1)
           AND ($2::text IS NULL OR t.id = $2)
         GROUP BY t.id, c.id
         ORDER BY c.name, t.name, t.id
         LIMIT $3",
    )
    .bind(city)
    .bind(theatre)
    .bind(PLACE_LIMIT)
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(TheatreView::from).collect())
}

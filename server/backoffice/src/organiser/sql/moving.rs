//! Queries of shows to be moved to another screen.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

/// The facts of a show that a move depends on.
#[derive(sqlx::FromRow)]
pub(in crate::organiser) struct MovingShow {
    /// The current screen.
    pub screen_id: String,
    pub title: String,
    pub running_minutes: i32,
    pub cleaning_minutes: i32,
    pub starts_at: DateTime<Utc>,
    pub time_zone: String,
    pub format: String,
    pub currency: String,
    pub prices: Json<BTreeMap<String, i64>>,
}

pub(in crate::organiser) async fn show(
    connection: &mut PgConnection,
    theatre: &str,
    show: Uuid,
) -> Result<Option<MovingShow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT show.screen_id, film.title, film.running_minutes, show.cleaning_minutes, show.starts_at,
                city.time_zone, show.format, show.currency, show.prices
         FROM shows show
         JOIN films film ON film.id = show.film_id
         JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id
         JOIN cities city ON city.id = theatre.city_id
         WHERE theatre.id = $1 AND show.id = $2",
    )
    .bind(theatre)
    .bind(show)
    .fetch_optional(connection)
    .await
}

//! One show as it is sold, and its room.

use sqlx::PgPool;
use uuid::Uuid;

use crate::show::ShowRow;

/// Everything about a show that does not change while it sells, but for its room. None of a theatre that is of another
/// region than this.
pub(crate) async fn show(pool: &PgPool, id: Uuid, region: Option<&str>) -> Result<Option<ShowRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT s.id, s.layout_id, s.starts_at, s.language, s.format, s.currency, s.prices, s.blocked, s.hold_ms, s.flash_sale, s.per_person, s.email_code, s.per_instrument, s.sales, s.sales_from, s.called_off,
                f.id AS film_id, f.title AS film_title, f.hue, f.running_minutes, f.rating,
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
    .bind(id)
    .bind(region)
    .fetch_optional(pool)
    .await
}

/// The region of a show, here or elsewhere.
pub(crate) async fn region_of(pool: &PgPool, show: Uuid) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT region FROM show_regions WHERE show_id = $1").bind(show).fetch_optional(pool).await
}

/// A room as stored: JSON text of `domain::layout::Layout`.
pub(crate) async fn plan(pool: &PgPool, layout: Uuid) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("SELECT plan::text FROM layouts WHERE id = $1").bind(layout).fetch_one(pool).await
}

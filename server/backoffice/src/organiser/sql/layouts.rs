//! Queries of layouts.

use domain::api::organiser::LayoutView;
use domain::layout::import::Finding;
use domain::time::Timestamp;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use platform::clock::to_utc;

/// A layout as stored.
#[derive(sqlx::FromRow)]
pub(in crate::organiser) struct LayoutRow {
    /// JSON of `domain::layout::Layout`.
    pub plan: String,
    pub remarks: Json<Vec<Finding>>,
    pub published: bool,
    pub is_own: bool,
}

pub(in crate::organiser) async fn insert(
    tx: &mut PgConnection,
    theatre: &str,
    view: &LayoutView,
    plan: &str,
    who: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO layouts (id, name, plan, seat_count) VALUES ($1, $2, $3::text::jsonb, $4)")
        .bind(view.id)
        .bind(&view.name)
        .bind(plan)
        .bind(view.seats.cast_signed())
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "INSERT INTO theatre_layouts (layout_id, theatre_id, remarks, imported_by, imported_at) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(view.id)
    .bind(theatre)
    .bind(Json(&view.remarks))
    .bind(who)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes layouts of a theatre that were never used, except the newest `keep`.
pub(in crate::organiser) async fn delete_oldest(
    tx: &mut PgConnection,
    theatre: &str,
    keep: i64,
) -> Result<(), sqlx::Error> {
    let old: Vec<Uuid> = sqlx::query_scalar(
        "DELETE FROM theatre_layouts WHERE layout_id IN (
             SELECT layout_id FROM theatre_layouts WHERE theatre_id = $1 AND published_at IS NULL
             ORDER BY imported_at DESC OFFSET $2 FOR UPDATE SKIP LOCKED)
         RETURNING layout_id",
    )
    .bind(theatre)
    .bind(keep)
    .fetch_all(&mut *tx)
    .await?;
    if !old.is_empty() {
        sqlx::query("DELETE FROM layouts WHERE id = ANY($1)").bind(old).execute(tx).await?;
    }
    Ok(())
}

/// Returns a layout that was imported in a theatre, or that one of its screens has.
pub(in crate::organiser) async fn of_theatre(
    connection: &mut PgConnection,
    theatre: &str,
    layout: Uuid,
) -> Result<Option<LayoutRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT room.plan::text AS plan, coalesce(brought.remarks, '[]') AS remarks,
                (brought.layout_id IS NULL OR brought.published_at IS NOT NULL) AS published,
                brought.layout_id IS NOT NULL AS is_own
         FROM layouts room
         LEFT JOIN theatre_layouts brought ON brought.layout_id = room.id AND brought.theatre_id = $1
         WHERE room.id = $2
           AND (brought.layout_id IS NOT NULL
                OR EXISTS (SELECT 1 FROM screens WHERE theatre_id = $1 AND layout_id = room.id))",
    )
    .bind(theatre)
    .bind(layout)
    .fetch_optional(connection)
    .await
}

/// Locks a layout that was imported in a theatre; `false` when there is none.
pub(in crate::organiser) async fn lock(
    tx: &mut PgConnection,
    theatre: &str,
    layout: Uuid,
) -> Result<bool, sqlx::Error> {
    let found: Option<i32> =
        sqlx::query_scalar("SELECT 1 FROM theatre_layouts WHERE theatre_id = $1 AND layout_id = $2 FOR UPDATE")
            .bind(theatre)
            .bind(layout)
            .fetch_optional(tx)
            .await?;
    Ok(found.is_some())
}

/// Marks a layout as used by a screen.
pub(in crate::organiser) async fn mark_published(
    tx: &mut PgConnection,
    layout: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE theatre_layouts SET published_at = $2 WHERE layout_id = $1 AND published_at IS NULL")
        .bind(layout)
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    Ok(())
}

/// Returns seats of a layout that are sold in a theatre's future shows.
pub(in crate::organiser) async fn sold_seats(
    connection: &mut PgConnection,
    theatre: &str,
    layout: Uuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<u32>, sqlx::Error> {
    // OFFSET 0 keeps the planner from flattening the subquery: each show then reads its own partition of the claims.
    let seats: Vec<i32> = sqlx::query_scalar(
        "SELECT DISTINCT claim.seat_no
         FROM shows show
         JOIN screens screen ON screen.id = show.screen_id
         CROSS JOIN LATERAL (SELECT seat_no FROM seat_claims WHERE show_id = show.id AND state = 'sold' OFFSET 0) claim
         WHERE screen.theatre_id = $1 AND show.layout_id = $2 AND show.starts_at > $3 AND NOT show.called_off
         ORDER BY claim.seat_no LIMIT $4",
    )
    .bind(theatre)
    .bind(layout)
    .bind(to_utc(now))
    .bind(limit)
    .fetch_all(connection)
    .await?;
    // A table constraint excludes negative numbers.
    Ok(seats.into_iter().map(i32::unsigned_abs).collect())
}

//! Queries of `rehearsals`.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::rehearsal::{RehearsalEnd, RehearsalFigures};
use domain::time::Timestamp;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use admission::waiting_room;
use platform::clock::to_utc;
use platform::database::BindAll;

/// A rehearsal, running or ended.
#[derive(platform::FromRow)]
pub(super) struct RehearsalRow {
    pub(super) id: Uuid,
    pub(super) figures: Json<RehearsalFigures>,
    end_reason: Option<String>,
}

impl RehearsalRow {
    /// How it ended; `None` while it runs.
    pub(super) fn end(&self) -> sqlx::Result<Option<RehearsalEnd>> {
        let end = self.end_reason.as_deref().map(RehearsalEnd::from_str).transpose();
        end.map_err(|_| sqlx::Error::Decode(format!("rehearsals.end_reason of {} is none", self.id).into()))
    }
}

/// Records a rehearsal in place of the last one of its show; `false` while any rehearsal runs.
pub(super) async fn insert(
    tx: &mut PgConnection,
    (id, show, theatre): (Uuid, Uuid, &str),
    figures: &RehearsalFigures,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "DELETE FROM rehearsals WHERE show_id = $1 AND ended_at IS NOT NULL";
    sqlx::query(sql).bind(show).execute(&mut *tx).await?;
    let sql = "INSERT INTO rehearsals (id, show_id, theatre_id, started_at, figures) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT DO NOTHING";
    let done = sqlx::query(sql).bind_all((id, show, theatre, to_utc(now), Json(figures))).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Claims a rehearsal that no server has begun.
pub(super) async fn claim(pg: &PgPool, now: Timestamp) -> sqlx::Result<Option<(Uuid, Json<RehearsalFigures>)>> {
    let sql = "UPDATE rehearsals SET seen_at = $1
               WHERE id = (SELECT id FROM rehearsals WHERE ended_at IS NULL AND seen_at IS NULL
                           ORDER BY started_at LIMIT 1 FOR UPDATE SKIP LOCKED)
               RETURNING id, figures";
    sqlx::query_as(sql).bind(to_utc(now)).fetch_optional(pg).await
}

/// Records figures and renews the lease. Returns whether a stop is requested; `None` if the rehearsal has ended.
pub(super) async fn report(
    pg: &PgPool,
    id: Uuid,
    figures: &RehearsalFigures,
    now: Timestamp,
) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar(
        "UPDATE rehearsals SET seen_at = $2, figures = $3 WHERE id = $1 AND ended_at IS NULL RETURNING stop_wanted",
    )
    .bind_all((id, to_utc(now), Json(figures)))
    .fetch_optional(pg)
    .await
}

/// Ends a rehearsal, unless it has ended, and deletes its waiting room. Without figures the reported ones stay.
pub(super) async fn end(
    pg: &PgPool,
    id: Uuid,
    end: RehearsalEnd,
    figures: Option<&RehearsalFigures>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut tx = pg.begin().await?;
    let sql = "UPDATE rehearsals SET ended_at = $2, end_reason = $3, figures = coalesce($4, figures)
               WHERE id = $1 AND ended_at IS NULL";
    sqlx::query(sql).bind_all((id, to_utc(now), end.as_str(), figures.map(Json))).execute(&mut *tx).await?;
    waiting_room::delete_of_rehearsal(&mut tx, id).await?;
    tx.commit().await
}

/// Running rehearsals without a report since then.
pub(super) async fn abandoned(pg: &PgPool, since: Timestamp) -> sqlx::Result<Vec<Uuid>> {
    ids(pg, "SELECT id FROM rehearsals WHERE ended_at IS NULL AND coalesce(seen_at, started_at) < $1", to_utc(since))
        .await
}

/// Rehearsals that ended since then.
pub(super) async fn ended(pg: &PgPool, since: Timestamp) -> sqlx::Result<Vec<Uuid>> {
    ids(pg, "SELECT id FROM rehearsals WHERE ended_at >= $1", to_utc(since)).await
}

async fn ids(pg: &PgPool, query: &'static str, since: DateTime<Utc>) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(query).bind(since).fetch_all(pg).await
}

/// The rehearsal of a show.
pub(super) async fn of_show(pg: &PgPool, show: Uuid) -> sqlx::Result<Option<RehearsalRow>> {
    let sql = "SELECT id, figures, end_reason FROM rehearsals WHERE show_id = $1";
    sqlx::query_as(sql).bind(show).fetch_optional(pg).await
}

/// Requests that the rehearsal of a show stops; `false` if none runs or its stop is requested already.
pub(super) async fn request_stop(tx: &mut PgConnection, theatre: &str, show: Uuid) -> sqlx::Result<bool> {
    let query = "UPDATE rehearsals SET stop_wanted = true
                 WHERE show_id = $1 AND theatre_id = $2 AND ended_at IS NULL AND NOT stop_wanted";
    let done = sqlx::query(query).bind(show).bind(theatre).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes the rehearsal of a show; `false` if there is none or it runs.
pub(super) async fn delete(tx: &mut PgConnection, theatre: &str, show: Uuid) -> sqlx::Result<bool> {
    let query = "DELETE FROM rehearsals WHERE show_id = $1 AND theatre_id = $2 AND ended_at IS NOT NULL";
    let done = sqlx::query(query).bind(show).bind(theatre).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

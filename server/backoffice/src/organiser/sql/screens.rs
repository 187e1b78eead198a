//! Queries of screens.

use domain::api::organiser::ScreenView;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use platform::clock::to_utc;

#[derive(sqlx::FromRow)]
struct ScreenRow {
    id: String,
    name: String,
    layout_id: Uuid,
    version: i32,
    seat_count: i32,
    shows: i64,
    house_seats: i64,
    house_seats_gone: Vec<String>,
}

impl From<ScreenRow> for ScreenView {
    fn from(row: ScreenRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            layout: row.layout_id,
            // Table constraints exclude negative numbers.
            version: row.version.unsigned_abs(),
            seats: row.seat_count.unsigned_abs(),
            shows: u32::try_from(row.shows).unwrap_or(u32::MAX),
            house_seats: u32::try_from(row.house_seats).unwrap_or(u32::MAX),
            house_seats_gone: row.house_seats_gone,
        }
    }
}

const SCREENS: &str = "
    SELECT screen.id, screen.name, screen.layout_id, room.seat_count,
           coalesce((SELECT max(version) FROM screen_layouts WHERE screen_id = screen.id), 1) AS version,
           (SELECT count(*) FROM shows WHERE screen_id = screen.id AND starts_at > $2 AND NOT called_off) AS shows,
           (SELECT count(*) FROM standing_house_seats kept
            WHERE kept.screen_id = screen.id AND kept.layout_id = screen.layout_id AND kept.seat_no IS NOT NULL) AS house_seats,
           ARRAY(SELECT label FROM standing_house_seats kept
                 WHERE kept.screen_id = screen.id AND kept.layout_id = screen.layout_id AND kept.seat_no IS NULL
                 ORDER BY label) AS house_seats_gone
    FROM screens screen JOIN layouts room ON room.id = screen.layout_id
    WHERE screen.theatre_id = $1 AND ($3::text IS NULL OR screen.id = $3)
    ORDER BY screen.name, screen.id LIMIT $4";

pub(in crate::organiser) async fn of_theatre(
    connection: &mut PgConnection,
    theatre: &str,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ScreenView>, sqlx::Error> {
    let rows: Vec<ScreenRow> = sqlx::query_as(SCREENS)
        .bind(theatre)
        .bind(to_utc(now))
        .bind(None::<String>)
        .bind(limit)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(ScreenView::from).collect())
}

pub(in crate::organiser) async fn one(
    connection: &mut PgConnection,
    theatre: &str,
    screen: &str,
    now: Timestamp,
) -> Result<Option<ScreenView>, sqlx::Error> {
    let row: Option<ScreenRow> = sqlx::query_as(SCREENS)
        .bind(theatre)
        .bind(to_utc(now))
        .bind(screen)
        .bind(1_i64)
        .fetch_optional(connection)
        .await?;
    Ok(row.map(ScreenView::from))
}

/// Locks the theatre, so that concurrent creations of screens are counted one after the other.
pub(in crate::organiser) async fn lock_theatre(tx: &mut PgConnection, theatre: &str) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(tx).await?;
    Ok(())
}

pub(in crate::organiser) async fn count(tx: &mut PgConnection, theatre: &str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM screens WHERE theatre_id = $1").bind(theatre).fetch_one(tx).await
}

pub(in crate::organiser) async fn insert(
    tx: &mut PgConnection,
    id: &str,
    theatre: &str,
    name: &str,
    layout: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO screens (id, theatre_id, name, layout_id) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(theatre)
        .bind(name)
        .bind(layout)
        .execute(&mut *tx)
        .await?;
    version(tx, id, 1, layout, now).await
}

async fn version(
    tx: &mut PgConnection,
    screen: &str,
    version: i32,
    layout: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO screen_layouts (screen_id, version, layout_id, published_at) VALUES ($1, $2, $3, $4)")
        .bind(screen)
        .bind(version)
        .bind(layout)
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    Ok(())
}

/// Locks a screen of a theatre and returns its layout. Planning and layout changes hold this lock.
pub(in crate::organiser) async fn lock(
    tx: &mut PgConnection,
    theatre: &str,
    screen: &str,
) -> Result<Option<Uuid>, sqlx::Error> {
    sqlx::query_scalar("SELECT layout_id FROM screens WHERE theatre_id = $1 AND id = $2 FOR NO KEY UPDATE")
        .bind(theatre)
        .bind(screen)
        .fetch_optional(tx)
        .await
}

/// Gives a locked screen another layout.
pub(in crate::organiser) async fn change_room(
    tx: &mut PgConnection,
    screen: &str,
    before: Uuid,
    after: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let last: Option<i32> = sqlx::query_scalar("SELECT max(version) FROM screen_layouts WHERE screen_id = $1")
        .bind(screen)
        .fetch_one(&mut *tx)
        .await?;
    let last = match last {
        Some(last) => last,
        // The screen's initial layout has no version row yet.
        None => {
            version(tx, screen, 1, before, now).await?;
            1
        }
    };
    version(tx, screen, last + 1, after, now).await?;
    let done = sqlx::query("UPDATE screens SET layout_id = $3 WHERE id = $1 AND layout_id = $2")
        .bind(screen)
        .bind(before)
        .bind(after)
        .execute(tx)
        .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

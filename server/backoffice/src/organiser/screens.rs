//! Screens and their layouts.

use axum::http::StatusCode;
use domain::api::organiser::{PublishRequest, ScreenRequest, ScreenView};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{layouts, name_of, slug_of, standing};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::{StaffAction, StartedAction};
use platform::clock::to_utc;
use platform::database::BindAll;

/// Maximum number of screens per theatre.
const MAX_SCREENS: i64 = 200;

/// Lists the screens of a theatre, by name.
pub async fn list(state: &BackofficeState, theatre: &str) -> ApiResult<Vec<ScreenView>> {
    let now = state.clock.now();
    Ok(load_all(&mut *state.pg.acquire().await?, theatre, now).await?)
}

/// Creates a screen with a layout that was imported here.
///
/// # Errors
/// 404 for another theatre's layout, 400 for an invalid name or too many screens.
pub async fn create(state: &BackofficeState, action: &StaffAction<'_>, request: &ScreenRequest) -> ApiResult<Answer> {
    let name = name_of(&request.name, "the screen's name")?;
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    lock_theatre(&mut begun.tx, action.theatre).await?;
    if count(&mut begun.tx, action.theatre).await? >= MAX_SCREENS {
        return Err(Problem::new(Code::Malformed, format!("A theatre has at most {MAX_SCREENS} screens.")));
    }
    use_layout(&mut begun, action.theatre, request.layout).await?;
    let id = slug_of(name);
    insert(&mut begun.tx, &id, action.theatre, name, request.layout, begun.now).await?;
    let view = find(&mut begun.tx, action.theatre, &id, begun.now).await?;
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    begun.finish("screen_created", format!("screen {id} with layout {}", request.layout), answer).await
}

/// Gives a screen another layout. Planned shows keep theirs. House seats carry over by label; the answer lists labels
/// that the new layout lacks.
///
/// # Errors
/// 404 for another theatre's screen or layout.
pub async fn publish(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    screen: &str,
    request: &PublishRequest,
) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let before = lock(&mut begun.tx, action.theatre, screen).await?;
    let before = before.ok_or_else(|| Problem::not_found("screen"))?;
    use_layout(&mut begun, action.theatre, request.layout).await?;
    if before != request.layout {
        change_room(&mut begun.tx, screen, before, request.layout, begun.now).await?;
        standing::carry_over(&mut begun.tx, (action.theatre, screen), before, request.layout).await?;
    }
    let view = find(&mut begun.tx, action.theatre, screen, begun.now).await?;
    let answer = Answer::json(StatusCode::OK, &view)?;
    begun.finish("layout_published", format!("screen {screen} with layout {}", request.layout), answer).await
}

/// Locks a layout of this theatre and marks it as used.
async fn use_layout(begun: &mut StartedAction<'_>, theatre: &str, layout: Uuid) -> ApiResult<()> {
    if !layouts::lock(&mut begun.tx, theatre, layout).await? {
        return Err(Problem::not_found("layout"));
    }
    let now = begun.now;
    Ok(layouts::mark_published(&mut begun.tx, layout, now).await?)
}

#[derive(platform::FromRow)]
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

async fn load_all(connection: &mut PgConnection, theatre: &str, now: Timestamp) -> sqlx::Result<Vec<ScreenView>> {
    let rows: Vec<ScreenRow> = sqlx::query_as(SCREENS)
        .bind_all((theatre, to_utc(now), None::<String>, MAX_SCREENS))
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(ScreenView::from).collect())
}

async fn find(connection: &mut PgConnection, theatre: &str, screen: &str, now: Timestamp) -> ApiResult<ScreenView> {
    let row: Option<ScreenRow> =
        sqlx::query_as(SCREENS).bind_all((theatre, to_utc(now), screen, 1_i64)).fetch_optional(connection).await?;
    row.map(ScreenView::from).ok_or_else(|| Problem::not_found("screen"))
}

/// Locks the theatre, so that concurrent creations of screens are counted one after the other.
pub(super) async fn lock_theatre(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<()> {
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(tx).await.map(drop)
}

async fn count(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT count(*) FROM screens WHERE theatre_id = $1").bind(theatre).fetch_one(tx).await
}

async fn insert(
    tx: &mut PgConnection,
    id: &str,
    theatre: &str,
    name: &str,
    layout: Uuid,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "INSERT INTO screens (id, theatre_id, name, layout_id) VALUES ($1, $2, $3, $4)";
    sqlx::query(sql).bind_all((id, theatre, name, layout)).execute(&mut *tx).await?;
    version(tx, id, 1, layout, now).await
}

async fn version(tx: &mut PgConnection, screen: &str, version: i32, layout: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "INSERT INTO screen_layouts (screen_id, version, layout_id, published_at) VALUES ($1, $2, $3, $4)";
    sqlx::query(sql).bind_all((screen, version, layout, to_utc(now))).execute(tx).await.map(drop)
}

/// Locks a screen of a theatre and returns its layout. Planning and layout changes hold this lock.
pub(super) async fn lock(tx: &mut PgConnection, theatre: &str, screen: &str) -> sqlx::Result<Option<Uuid>> {
    let sql = "SELECT layout_id FROM screens WHERE theatre_id = $1 AND id = $2 FOR NO KEY UPDATE";
    sqlx::query_scalar(sql).bind_all((theatre, screen)).fetch_optional(tx).await
}

/// Gives a locked screen another layout.
async fn change_room(
    tx: &mut PgConnection,
    screen: &str,
    before: Uuid,
    after: Uuid,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "SELECT max(version) FROM screen_layouts WHERE screen_id = $1";
    let last: Option<i32> = sqlx::query_scalar(sql).bind(screen).fetch_one(&mut *tx).await?;
    let last = match last {
        Some(last) => last,
        // The screen's initial layout has no version row yet.
        None => {
            version(tx, screen, 1, before, now).await?;
            1
        }
    };
    version(tx, screen, last + 1, after, now).await?;
    let sql = "UPDATE screens SET layout_id = $3 WHERE id = $1 AND layout_id = $2";
    let done = sqlx::query(sql).bind_all((screen, before, after)).execute(tx).await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// The facts of a screen that planning depends on.
#[derive(platform::FromRow)]
pub(super) struct ScreenFacts {
    pub name: String,
    pub layout_id: Uuid,
    pub currency: String,
    pub time_zone: String,
}

pub(super) async fn facts(connection: &mut PgConnection, theatre: &str, screen: &str) -> ApiResult<ScreenFacts> {
    let sql = "SELECT screen.name, screen.layout_id, theatre.currency, city.time_zone
               FROM screens screen
               JOIN theatres theatre ON theatre.id = screen.theatre_id
               JOIN cities city ON city.id = theatre.city_id
               WHERE theatre.id = $1 AND screen.id = $2";
    let found: Option<ScreenFacts> = sqlx::query_as(sql).bind_all((theatre, screen)).fetch_optional(connection).await?;
    found.ok_or_else(|| Problem::not_found("screen"))
}

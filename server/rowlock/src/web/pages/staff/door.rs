//! The door: the shows of today, and the scanner of one.

use app::staff::pages::{Door, DoorShows, Section};
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use uuid::Uuid;

use super::super::booking::passing_or_fault;
use super::super::{PRIVATE_CACHE, html};
use super::{StaffPageResult, StaffResult, desk};
use crate::AppState;
use crate::web::pages::PathResult;
use backoffice::door;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/staff/{theatre}/door", get(shows)).route("/staff/{theatre}/door/{show}", get(scanner))
}

async fn shows(State(state): State<AppState>, who: StaffResult, theatre: PathResult<String>) -> StaffPageResult {
    let Path(theatre) = theatre?;
    let (_, desk) = desk(&state, who, &theatre, Section::Door).await?;
    let shows = door::shows(&state, &theatre).await.map_err(passing_or_fault)?;
    Ok(html(DoorShows { desk, shows }, PRIVATE_CACHE))
}

async fn scanner(State(state): State<AppState>, who: StaffResult, path: PathResult<(String, Uuid)>) -> StaffPageResult {
    let Path((theatre, show)) = path?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Door).await?;
    let show = door::show_at(&state, &staff, &theatre, show).await.map_err(passing_or_fault)?;
    let page = Door {
        desk,
        show: show.id,
        film: show.film.clone(),
        screen: show.screen.clone(),
        starts_local: show.local_iso(show.starts_at),
    };
    Ok(html(page, PRIVATE_CACHE))
}

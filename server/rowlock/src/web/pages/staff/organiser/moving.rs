//! A show on another screen: a look at what it would mean, and the move.

use app::staff::pages::organiser::{MovePage, Trouble};
use app::staff::pages::{Desk, Field, Section};
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use domain::api::moving::{MoveQuery, MoveRequest};
use serde::Deserialize;
use uuid::Uuid;

use super::super::{StaffPageResult, StaffResult, desk};
use super::{intent, new_key, passing_or_fault, private, see, trouble, with_status};
use crate::AppState;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use backoffice::organiser::{self, OrganiserAction};
use http::Code;

pub(super) async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    query: QueryResult<MoveQuery>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(MoveQuery { screen }) = query?;
    page(&state, desk, show, &screen, Field::default(), None).await
}

/// The plan of the move; or the reason why it is impossible, if no other problem is given.
async fn page(
    state: &AppState,
    desk: Desk,
    show: Uuid,
    screen: &str,
    reason: Field,
    before: Option<(StatusCode, Trouble)>,
) -> StaffPageResult {
    let known = organiser::show(state, &desk.theatre, show).await.map_err(passing_or_fault)?;
    let (preview, found) = match organiser::preview_move(state, &desk.theatre, show, screen).await {
        Ok(preview) => (Some(preview), None),
        Err(problem) => (None, Some(trouble(problem)?)),
    };
    let (status, trouble) = before.or(found).unzip();
    let page = private(MovePage { desk, show: known, preview, reason, key: new_key(), trouble });
    Ok(with_status(status.unwrap_or(StatusCode::OK), page))
}

#[derive(Deserialize)]
pub(super) struct MoveForm {
    key: String,
    screen: String,
    reason: String,
}

pub(super) async fn start(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    form: FormResult<MoveForm>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(MoveForm { key, screen, reason }) = form?;
    let request = MoveRequest { screen, reason };
    let done = async {
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/shows/{show}/move"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::move_show(&state, &act, show, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/shows/{show}"))),
        // The screen is another theatre's, or gone: there is no page of it.
        Err(problem) if problem.code() == Code::NotFound => Err(passing_or_fault(problem).into()),
        Err(problem) => {
            let before = trouble(problem)?;
            page(&state, desk, show, &request.screen, Field::reason(request.reason), Some(before)).await
        }
    }
}

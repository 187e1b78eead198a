//! Screens and their layouts.

use axum::http::StatusCode;
use domain::api::organiser::{PublishRequest, ScreenRequest, ScreenView};
use uuid::Uuid;

use super::{OrganiserAction, StartedAction, name_of, slug_of, sql, standing};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{Code, Problem};

/// Maximum number of screens per theatre.
const MAX_SCREENS: i64 = 200;

/// Lists the screens of a theatre, by name.
pub async fn list(state: &BackofficeState, theatre: &str) -> Result<Vec<ScreenView>, Problem> {
    let now = state.clock.now();
    Ok(sql::screens::of_theatre(&mut *state.pg.acquire().await?, theatre, now, MAX_SCREENS).await?)
}

/// Creates a screen with a layout that was imported here.
///
/// # Errors
/// 404 for another theatre's layout, 400 for an invalid name or too many screens.
pub async fn create(
    state: &BackofficeState,
    action: &OrganiserAction<'_>,
    request: &ScreenRequest,
) -> Result<Answer, Problem> {
    let name = name_of(&request.name, "the screen's name")?;
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    sql::screens::lock_theatre(&mut begun.tx, action.theatre).await?;
    if sql::screens::count(&mut begun.tx, action.theatre).await? >= MAX_SCREENS {
        return Err(Problem::new(Code::Malformed, format!("A theatre has at most {MAX_SCREENS} screens.")));
    }
    use_layout(&mut begun, action.theatre, request.layout).await?;
    let id = slug_of(name);
    sql::screens::insert(&mut begun.tx, &id, action.theatre, name, request.layout, begun.now).await?;
    let view = sql::screens::one(&mut begun.tx, action.theatre, &id, begun.now).await?;
    let view = view.ok_or_else(|| Problem::internal(&"a screen that was written is not there"))?;
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
    action: &OrganiserAction<'_>,
    screen: &str,
    request: &PublishRequest,
) -> Result<Answer, Problem> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let before = sql::screens::lock(&mut begun.tx, action.theatre, screen).await?;
    let before = before.ok_or_else(|| Problem::not_found("screen"))?;
    use_layout(&mut begun, action.theatre, request.layout).await?;
    if before != request.layout {
        sql::screens::change_room(&mut begun.tx, screen, before, request.layout, begun.now).await?;
        standing::carry_over(&mut begun.tx, (action.theatre, screen), before, request.layout).await?;
    }
    let view = sql::screens::one(&mut begun.tx, action.theatre, screen, begun.now).await?;
    let view = view.ok_or_else(|| Problem::not_found("screen"))?;
    let answer = Answer::json(StatusCode::OK, &view)?;
    begun.finish("layout_published", format!("screen {screen} with layout {}", request.layout), answer).await
}

/// Locks a layout of this theatre and marks it as used.
async fn use_layout(begun: &mut StartedAction<'_>, theatre: &str, layout: Uuid) -> Result<(), Problem> {
    if !sql::layouts::lock(&mut begun.tx, theatre, layout).await? {
        return Err(Problem::not_found("layout"));
    }
    let now = begun.now;
    Ok(sql::layouts::mark_published(&mut begun.tx, layout, now).await?)
}

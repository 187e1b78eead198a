//! A show that will not take place, at an organiser's word. What becomes of its bookings is the work of `bookings`.

use axum::http::StatusCode;
use domain::api::organiser::CancelShowRequest;
use uuid::Uuid;

use super::week;
use crate::BackofficeState;
use crate::organiser::Act;
use crate::organiser::sql::shows as sql;
use http::idempotency::Answer;
use http::{Code, Problem};
use selling::bookings;

/// Calls a show off. The answer says how far the undoing is, which goes on by itself.
///
/// # Errors
/// 404 for a show of others, 409 when it was called off before.
pub async fn call_off(
    state: &BackofficeState,
    act: &Act<'_>,
    show: Uuid,
    request: &CancelShowRequest,
) -> Result<Answer, Problem> {
    let mut begun = match act.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let now = begun.now;
    if !sql::lock(&mut begun.tx, act.theatre, show).await? {
        return Err(Problem::not_found("show"));
    }
    if !bookings::call_off_in(&mut begun.tx, show, &request.reason, now).await? {
        return Err(Problem::new(Code::WrongState, "This show was called off before. Its page says how far that is."));
    }
    let row = sql::one(&mut begun.tx, act.theatre, show).await?.ok_or_else(|| Problem::not_found("show"))?;
    let answer = Answer::json(StatusCode::ACCEPTED, &week::view_of(row)?)?;
    let answer = begun.done("show_called_off", format!("show {show}"), answer).await?;
    // Here at once, elsewhere within a second.
    state.catalogue.call_off(show).await;
    Ok(answer)
}

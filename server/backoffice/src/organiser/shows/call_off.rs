//! Calls a show off. `bookings` refunds its bookings.

use axum::http::StatusCode;
use domain::api::organiser::CancelShowRequest;
use uuid::Uuid;

use super::week;
use crate::BackofficeState;
use crate::organiser::OrganiserAction;
use crate::organiser::sql::shows as sql;
use http::idempotency::Answer;
use http::{Code, Problem};
use selling::bookings;

/// Calls a show off. The answer contains the progress of the refunds, which run in the background.
///
/// # Errors
/// 404 for another theatre's show, 409 when it is already called off.
pub async fn call_off(
    state: &BackofficeState,
    action: &OrganiserAction<'_>,
    show: Uuid,
    request: &CancelShowRequest,
) -> Result<Answer, Problem> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let now = begun.now;
    if !sql::lock(&mut begun.tx, action.theatre, show).await? {
        return Err(Problem::not_found("show"));
    }
    if !bookings::call_off_in(&mut begun.tx, show, &request.reason, now).await? {
        return Err(Problem::new(Code::WrongState, "This show was called off before. Its page says how far that is."));
    }
    let row = sql::one(&mut begun.tx, action.theatre, show).await?.ok_or_else(|| Problem::not_found("show"))?;
    let answer = Answer::json(StatusCode::ACCEPTED, &week::view_of(row)?)?;
    let answer = begun.finish("show_called_off", format!("show {show}"), answer).await?;
    // Immediate on this replica; the others follow within a second.
    state.catalogue.call_off(show).await;
    Ok(answer)
}

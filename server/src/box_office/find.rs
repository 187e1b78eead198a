//! A booking at the counter: found by the name people read aloud, and only where its show is.

use std::sync::Arc;

use domain::api::box_office::CounterBooking;
use domain::booking::BookingState;
use domain::till::undo_until;
use uuid::Uuid;

use super::{Counter, sql};
use crate::AppState;
use crate::bookings::{self, CounterFound};
use crate::catalogue::Show;
use crate::clock::from_utc;
use crate::web::Problem;

fn nothing() -> Problem {
    Problem::not_found("booking")
}

/// The booking of that reference.
///
/// # Errors
/// 404 when there is none of a show of this theatre.
pub async fn by_reference(state: &AppState, counter: Counter<'_>, reference: &str) -> Result<CounterBooking, Problem> {
    let found = bookings::find_by_reference(&mut *state.pg.acquire().await?, reference).await?;
    view(state, counter, found).await
}

/// The booking of that id.
///
/// # Errors
/// 404 when there is none of a show of this theatre.
pub async fn by_id(state: &AppState, counter: Counter<'_>, booking: Uuid) -> Result<CounterBooking, Problem> {
    let found = bookings::find_by_id(&mut *state.pg.acquire().await?, booking).await?;
    view(state, counter, found).await
}

async fn view(state: &AppState, counter: Counter<'_>, found: Option<CounterFound>) -> Result<CounterBooking, Problem> {
    let found = found.ok_or_else(nothing)?;
    let show = show_here(state, counter, found.show).await.map_err(|problem| match problem.code() {
        crate::web::Code::NotFound => nothing(),
        _ => problem,
    })?;
    let mut connection = state.pg.acquire().await?;
    let mut view = found.view(&mut connection, &show).await?;
    if view.state == BookingState::Confirmed
        && let Some((till, seller, at)) = sql::sale_of(&mut connection, view.id).await?
    {
        let open = sql::open_till(&mut connection, counter.theatre, counter.account()).await?;
        let until = undo_until(from_utc(at));
        let may = seller == counter.account() && open.is_some_and(|open| open.id == till) && state.locks.now() < until;
        view.undo_until_ms = may.then_some(until.0);
    }
    Ok(view)
}

/// The show of a booking, if it is one of the theatre's.
///
/// # Errors
/// 404 when there is no such booking here.
pub(super) async fn show_of(state: &AppState, counter: Counter<'_>, booking: Uuid) -> Result<Arc<Show>, Problem> {
    let found = bookings::find_by_id(&mut *state.pg.acquire().await?, booking).await?.ok_or_else(nothing)?;
    show_here(state, counter, found.show).await
}

/// A show, if it is one of the theatre's.
///
/// # Errors
/// 404 when it is not.
pub(super) async fn show_here(state: &AppState, counter: Counter<'_>, show: Uuid) -> Result<Arc<Show>, Problem> {
    let show = state.catalogue.known_show(show).await?;
    if show.theatre_id == counter.theatre { Ok(show) } else { Err(Problem::not_found("show")) }
}

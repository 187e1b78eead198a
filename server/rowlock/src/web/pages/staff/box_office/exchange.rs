//! A booking that is exchanged: for which show, and what its page at the counter needs to know of it.

use app::staff::islands::box_office::BookingToExchange;
use app::staff::pages::box_office::ExchangePage;
use axum::extract::{Path, Query, State};
use domain::api::box_office::{CounterBooking, DayQuery};
use domain::booking::BookingState;
use uuid::Uuid;

use super::super::super::browse::days;
use super::super::super::{PRIVATE_CACHE, PageError, html, start_in_words};
use super::{CounterContext, StaffPageError, StaffPageResult, StaffResult, away, see};
use crate::AppState;
use crate::web::pages::{PathResult, QueryResult};
use backoffice::box_office;
use catalogue::{read_date, today_in};
use identity::accounts;

/// The booking, if it can be exchanged; otherwise its own page explains why not.
async fn sold(
    state: &AppState,
    here: &CounterContext,
    booking: Uuid,
) -> Result<Option<CounterBooking>, StaffPageError> {
    let found = box_office::by_id(state, here.counter(), booking).await.map_err(away)?;
    Ok((found.state == BookingState::Confirmed).then_some(found))
}

/// The data of a booking whose seats are exchanged at the counter; none after the exchange.
pub(super) async fn at_counter(
    state: &AppState,
    here: &CounterContext,
    booking: Uuid,
) -> Result<Option<BookingToExchange>, StaffPageError> {
    let Some(found) = sold(state, here, booking).await? else { return Ok(None) };
    let managers = accounts::managers_with_pin(state, &here.desk.theatre).await?;
    let CounterBooking { id, reference, total, means, .. } = found;
    Ok(Some(BookingToExchange { booking: id, reference, total, means, managers }))
}

/// The shows of a day that a booking may be exchanged for.
pub(super) async fn choose(
    State(state): State<AppState>,
    who: StaffResult,
    path: PathResult<(String, Uuid)>,
    query: QueryResult<DayQuery>,
) -> StaffPageResult {
    let (Path((theatre, booking)), Query(query)) = (path?, query?);
    let here = CounterContext::of(&state, who, &theatre).await?;
    let own = format!("{}/bookings/{booking}", here.base());
    let Some(found) = sold(&state, &here, booking).await? else { return Ok(see(&own)) };
    let show = state.catalogue.find_show(found.show).await.map_err(away)?;
    let asked = read_date(query.date.as_deref()).map_err(PageError::from)?;
    let today = today_in(&show.time_zone, state.clock.now())?;
    let date = asked.unwrap_or(today);
    let shows = box_office::today(&state, here.counter(), Some(date)).await.map_err(away)?;
    let page = ExchangePage {
        starts: start_in_words(&show),
        days: days(today, date, |day| format!("{own}/exchange?date={day}")),
        date: date.to_string(),
        shows,
        booking: found,
        desk: here.desk,
    };
    Ok(html(page, PRIVATE_CACHE))
}

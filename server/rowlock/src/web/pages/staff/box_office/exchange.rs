//! A booking that is exchanged: for which show, and what its page at the counter needs to know of it.

use app::staff::islands::box_office::BookingToExchange;
use app::staff::pages::box_office::ExchangePage;
use domain::api::box_office::{CounterBooking, DayQuery};
use domain::booking::BookingState;
use uuid::Uuid;

use super::super::super::browse::days;
use super::super::super::{PageError, SignedInPageError, SignedInPageResult, start_in_words};
use super::super::visit::{PageQuery, StaffVisit};
use super::{BookingPath, base, counter};
use backoffice::box_office;
use catalogue::{read_date, today_in};
use identity::accounts;

/// The booking, if it can be exchanged; otherwise its own page explains why not.
async fn sold(visit: &StaffVisit, booking: Uuid) -> Result<Option<CounterBooking>, SignedInPageError> {
    let found = box_office::by_id(&visit.state, counter(visit), booking).await?;
    Ok((found.state == BookingState::Confirmed).then_some(found))
}

/// The data of a booking whose seats are exchanged at the counter; none after the exchange.
pub(super) async fn at_counter(
    visit: &StaffVisit,
    booking: Uuid,
) -> Result<Option<BookingToExchange>, SignedInPageError> {
    let Some(found) = sold(visit, booking).await? else { return Ok(None) };
    let managers = accounts::managers_with_pin(&visit.state, &visit.desk.theatre).await?;
    let CounterBooking { id, reference, total, means, .. } = found;
    Ok(Some(BookingToExchange { booking: id, reference, total, means, managers }))
}

/// The shows of a day that a booking may be exchanged for.
pub(in super::super) async fn choose(
    visit: StaffVisit<BookingPath>,
    PageQuery(query): PageQuery<DayQuery>,
) -> SignedInPageResult {
    let (visit, BookingPath { booking }) = visit.split();
    let Some(found) = sold(&visit, booking).await? else {
        return Ok(visit.see(&format!("box-office/bookings/{booking}")));
    };
    let show = visit.state.catalogue.find_show(found.show).await?;
    let asked = read_date(query.date.as_deref()).map_err(PageError::from)?;
    let today = today_in(&show.time_zone, visit.state.clock.now())?;
    let date = asked.unwrap_or(today);
    let shows = box_office::today(&visit.state, counter(&visit), Some(date)).await?;
    let own = format!("{}/bookings/{booking}", base(&visit));
    Ok(visit.show(|desk| ExchangePage {
        starts: start_in_words(&show),
        days: days(today, date, |day| format!("{own}/exchange?date={day}")),
        date: date.to_string(),
        shows,
        booking: found,
        desk,
    }))
}

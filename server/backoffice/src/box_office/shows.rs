//! The shows of a day with their current occupancy.

use chrono::NaiveDate;
use domain::api::box_office::{CounterShow, Occupancy};
use domain::seats::SeatState;
use domain::time::Timestamp;

use super::CounterStaff;
use crate::BackofficeState;
use catalogue::{Show, today_in};
use http::Problem;
use seats::seat_locks::{MapSnapshot, read_map_or_claims};

/// Returns the shows of a theatre on `date` (default: today), in the order of their start. The numbers are current,
/// from the lock store. Without the lock store, held seats count as free.
pub async fn today(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    date: Option<NaiveDate>,
) -> Result<Vec<CounterShow>, Problem> {
    let now = state.clock.now();
    let theatre = state.catalogue.theatre(counter.theatre).await?.ok_or_else(|| Problem::not_found("theatre"))?;
    let date = match date {
        Some(date) => date,
        None => today_in(&theatre.time_zone, now)?,
    };
    let ids = state.catalogue.shows_of_day(counter.theatre, date).await?;
    let mut shows = Vec::with_capacity(ids.len());
    for id in ids {
        let show = state.catalogue.find_show(id).await?;
        let map = read_map_or_claims(state, &show).await?;
        shows.push(view(&show, &map, now));
    }
    Ok(shows)
}

fn view(show: &Show, map: &MapSnapshot, now: Timestamp) -> CounterShow {
    CounterShow {
        id: show.id,
        film: show.film.clone(),
        screen: show.screen.clone(),
        time: show.local_iso(show.starts_at).get(11..16).unwrap_or_default().to_owned(),
        starts_at_ms: show.starts_at.0,
        kind: format!("{}, {}", show.language, show.format),
        is_on_sale: catalogue::sales_open(show, now).is_ok(),
        is_called_off: show.is_called_off(),
        seats: occupancy(show, map),
    }
}

fn occupancy(show: &Show, map: &MapSnapshot) -> Occupancy {
    let mut seats = Occupancy {
        places: show.areas.iter().map(|area| area.capacity).sum(),
        places_free: map.areas.iter().map(|(_, left)| *left).sum(),
        ..Occupancy::default()
    };
    for byte in &map.map {
        match SeatState::from_byte(*byte) {
            Some(SeatState::Available) => seats.free += 1,
            Some(SeatState::Locked) => seats.held += 1,
            Some(SeatState::Booked) => seats.sold += 1,
            Some(SeatState::Blocked) | None => seats.kept += 1,
        }
    }
    seats
}

//! The shows of a day with their current occupancy, and the holders of seats, which only staff of the theatre see.

use chrono::NaiveDate;
use domain::api::box_office::{CounterShow, Occupancy, SeatHolder};
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CounterStaff, caller_holds, find};
use crate::BackofficeState;
use catalogue::{Show, today_in};
use http::{ApiResult, Code, Problem};
use platform::database::BindAll;
use seats::seat_locks::{MapSnapshot, read_map_or_claims};
use selling::bookings::{self, Holder};

/// Returns the shows of a theatre on `date` (default: today) without planned ones, in the order of their start. The
/// numbers are current, from the lock store. Without the lock store, held seats count as free.
pub async fn today(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    date: Option<NaiveDate>,
) -> ApiResult<Vec<CounterShow>> {
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
        is_on_sale: catalogue::on_sale(show, now).is_ok(),
        has_closed: catalogue::sales_open(show, now).is_err(),
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

/// Returns the current holder of this seat. 404 for another theatre's show, 400 for an unknown seat.
pub(super) async fn holder_of(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    seat: SeatIndex,
) -> ApiResult<SeatHolder> {
    let show = find::show_here(state, counter, show).await?;
    if !show.has(seat) {
        return Err(Problem::new(Code::UnknownSeat, "The room has no such seat."));
    }
    let map = read_map_or_claims(state, &show).await?;
    let byte = map.map.get(seat as usize).copied().unwrap_or_default();
    let mut connection = state.pg.acquire().await?;
    // A claim in Postgres, of a sale or a running payment, takes precedence over the map.
    let now = state.clock.now();
    let known = bookings::holder_of_seat(&mut connection, show.id, seat, now).await?;
    let known = match known {
        Some(Holder { booking, reference, name, is_claimed: true }) => {
            return Ok(SeatHolder::Booking { booking, reference, name });
        }
        other => other,
    };
    match SeatState::from_byte(byte) {
        Some(SeatState::Blocked) => {
            let (reason, name) = why_kept(&mut connection, show.id, seat).await?.unwrap_or_default();
            Ok(SeatHolder::House { reason, name })
        }
        Some(SeatState::Locked | SeatState::Booked) => {
            let caller = caller_holds::name_at(&mut connection, show.id, seat, now).await?;
            Ok(match (caller, known) {
                (Some(name), _) => SeatHolder::Caller { name },
                (None, known) => SeatHolder::Hold { name: known.map(|holder| holder.name).unwrap_or_default() },
            })
        }
        Some(SeatState::Available) | None => Ok(SeatHolder::Free),
    }
}

async fn why_kept(
    connection: &mut PgConnection,
    show: Uuid,
    seat: SeatIndex,
) -> sqlx::Result<Option<(String, String)>> {
    let sql =
        "SELECT kept.reason, account.name FROM house_seats kept JOIN accounts account ON account.id = kept.kept_by
               WHERE kept.show_id = $1 AND kept.seat_no = $2";
    sqlx::query_as(sql).bind_all((show, seat.cast_signed())).fetch_optional(connection).await
}

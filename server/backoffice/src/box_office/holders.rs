//! Holders of seats, visible only to staff of the theatre.

use domain::api::box_office::SeatHolder;
use domain::seats::{SeatIndex, SeatState};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CounterStaff, caller_holds, find};
use crate::BackofficeState;
use http::{Code, Problem};
use seats::seat_locks::read_map_or_claims;
use selling::bookings::{self, Holder};

/// Returns the current holder of this seat.
///
/// # Errors
/// 404 for another theatre's show, 400 for an unknown seat.
pub(super) async fn of_seat(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    seat: SeatIndex,
) -> Result<SeatHolder, Problem> {
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
) -> Result<Option<(String, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT kept.reason, account.name FROM house_seats kept JOIN accounts account ON account.id = kept.kept_by
         WHERE kept.show_id = $1 AND kept.seat_no = $2",
    )
    .bind(show)
    .bind(seat.cast_signed())
    .fetch_optional(connection)
    .await
}

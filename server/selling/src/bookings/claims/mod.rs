//! Claims of a single booking, and the refusal when another booking has them.

pub(super) mod area_claims;
pub(super) mod on_map;
pub(super) mod seat_claims;

use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::places;
use super::sql::BookingRow;
use crate::{SellingState, holds};
use catalogue::{Show, alive_since, claim_is_alive};
use http::Problem;
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::{FencedSelection, with_map};

/// Seats or places that were granted twice, because the lock store lost the first sale.
#[derive(Debug)]
pub struct LostClaims {
    others: Vec<FencedSelection>,
    problem: Problem,
}

impl LostClaims {
    /// Corrects the map, after the caller has rolled back. Returns the refusal for the buyer; the hold keeps its
    /// other seats. An unavailable lock store is corrected by the outbox, or by the next refusal.
    pub async fn correct_map(self, state: &SellingState, show: &Show) -> Problem {
        for sale in &self.others {
            if let Err(problem) = with_map(state, show, || state.locks.book(show.id, sale)).await {
                tracing::debug!(?problem, show = %show.id, "correct the map after a lost claim failed");
                break;
            }
        }
        self.problem
    }
}

/// Claims everything in a pending booking until it expires, in the common lock order: places first, then seats. If
/// claims are lost, the caller rolls back.
pub(super) async fn claim_all(
    tx: &mut PgConnection,
    show: &Show,
    pending: &BookingRow,
    now: Timestamp,
) -> sqlx::Result<Option<LostClaims>> {
    let full = area_claims::claim(tx, pending, now).await?;
    if !full.is_empty() {
        let others = places::latest_sales(tx, show.id, &full).await?;
        return Ok(Some(LostClaims { others, problem: holds::places_problem(show, &full) }));
    }
    let lost = seat_claims::claim(tx, pending, now).await?;
    if lost.is_empty() {
        return Ok(None);
    }
    let others = seat_claims::sales_of_seats(tx, show.id, &lost).await?;
    let taken: Vec<_> = lost.into_iter().map(|seat| (seat, SeatState::Booked)).collect();
    Ok(Some(LostClaims { others, problem: holds::seats_problem(show, &taken) }))
}

/// A booking that has a seat claimed, sold or chosen.
#[derive(Clone, Debug, platform::FromRow)]
pub struct Holder {
    /// The booking.
    pub booking: Uuid,
    /// Its reference.
    pub reference: String,
    /// The buyer's name; may be empty at the counter.
    pub name: String,
    /// True if the seat is claimed for it, or sold; else it is only chosen.
    pub is_claimed: bool,
}

/// Returns the booking that has this seat claimed, or else the latest open booking with it.
///
/// # Errors
/// When the database fails.
pub async fn holder_of_seat(
    tx: &mut PgConnection,
    show: Uuid,
    seat: SeatIndex,
    now: Timestamp,
) -> sqlx::Result<Option<Holder>> {
    let claimed: Option<Holder> = sqlx::query_as(concat!(
        "SELECT booking.id AS booking, booking.reference, booking.buyer_name AS name, true AS is_claimed
         FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
         WHERE claim.show_id = $1 AND claim.seat_no = $2 AND ",
        claim_is_alive!("claim", "$3"),
    ))
    .bind_all((show, seat.cast_signed(), alive_since(now)))
    .fetch_optional(&mut *tx)
    .await?;
    if claimed.is_some() {
        return Ok(claimed);
    }
    let sql = "SELECT booking.id AS booking, booking.reference, booking.buyer_name AS name, false AS is_claimed
               FROM bookings booking JOIN booking_seats seat ON seat.booking_id = booking.id
               WHERE booking.is_open AND booking.show_id = $1 AND seat.seat_no = $2 AND booking.expires_at > $3
               ORDER BY booking.created_at DESC LIMIT 1";
    sqlx::query_as(sql).bind_all((show, seat.cast_signed(), to_utc(now))).fetch_optional(tx).await
}

/// Returns those of these seats that are sold or being paid for.
///
/// # Errors
/// When the database fails.
pub async fn claimed_among(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &[SeatIndex],
    now: Timestamp,
) -> sqlx::Result<Vec<SeatIndex>> {
    let claimed: Vec<i32> = sqlx::query_scalar(concat!(
        "SELECT seat_no FROM seat_claims WHERE show_id = $1 AND seat_no = ANY($2) AND ",
        claim_is_alive!("seat_claims", "$3"),
        " ORDER BY seat_no",
    ))
    .bind_all((show, seats.iter().map(|seat| seat.cast_signed()).collect::<Vec<_>>(), alive_since(now)))
    .fetch_all(tx)
    .await?;
    Ok(claimed.into_iter().map(i32::cast_unsigned).collect())
}

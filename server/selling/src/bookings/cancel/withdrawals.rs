//! Undoes the bookings of defective seats that were withdrawn from sale.
//!
//! A withdrawal writes `shows.blocked` and one row per seat here, in one transaction, and takes free and held seats
//! off the map at once. From then on they stay off sale: a seat that a booking releases is blocked in the step that
//! frees it (`claims::on_map`). Any replica undoes the bookings that have such seats, until the map and the claims
//! have no holder of one: a later check finds a payment that was in progress.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::booking::BookingState;
use domain::seats::SeatIndex;
use domain::time::{SECOND_MS, Timestamp};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Canceller, ReturnedSeats, undo_in_full, undo_seats};
use crate::bookings::moves::Cause;
use crate::bookings::sql;
use crate::{SellingState, outbox};
use catalogue::Show;
use http::{ApiResult, Problem};
use platform::background::PeriodicLoop;
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::with_map;

/// Interval of checks for withdrawn seats.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Minimum time for which a seat is checked, milliseconds: a payment in progress has its claim by then, or has failed.
const MIN_CHECKED_MS: i64 = 60 * SECOND_MS;
/// Pause before a seat without a booking is checked again, milliseconds.
const RECHECK_FREE_MS: i64 = 5 * SECOND_MS;
/// Pause before a seat that is sold or being paid for is checked again, milliseconds.
const RECHECK_OCCUPIED_MS: i64 = SECOND_MS;
/// Lease of a check, milliseconds.
const LEASE_MS: i64 = 30 * SECOND_MS;
/// Seats checked in one round.
const MAX_PER_ROUND: i64 = 1_000;

/// A withdrawn seat whose bookings are to be undone.
#[derive(Clone, Debug, platform::FromRow)]
struct WithdrawnSeat {
    seat_no: i32,
    layout_id: Uuid,
    reason: String,
    requested_at: DateTime<Utc>,
}

/// The withdrawn seats of a show that are off sale.
struct SeatsOffSale {
    all: Vec<SeatIndex>,
    /// Those that are sold or being paid for.
    occupied: Vec<SeatIndex>,
}

impl WithdrawnSeat {
    fn seat(&self) -> SeatIndex {
        self.seat_no.cast_unsigned()
    }
}

/// Schedules the cancellation of bookings with these seats, effective with the caller's commit.
///
/// # Errors
/// When the database fails.
pub async fn withdraw_in(
    tx: &mut PgConnection,
    (show, layout): (Uuid, Uuid),
    seats: &[SeatIndex],
    reason: &str,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO seat_withdrawals (show_id, seat_no, layout_id, reason, requested_at, look_at)
         SELECT $1, seat, $3, $4, $5, $5 FROM unnest($2::integer[]) AS seat
         ON CONFLICT (show_id, seat_no) DO UPDATE
         SET layout_id = EXCLUDED.layout_id, reason = EXCLUDED.reason, requested_at = EXCLUDED.requested_at,
             look_at = EXCLUDED.look_at, finished_at = NULL",
    )
    .bind_all((show, seats.iter().map(|seat| seat.cast_signed()).collect::<Vec<_>>(), layout, reason, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the bookings that have one of these seats, sold or being paid for, in a show.
///
/// # Errors
/// When the database fails.
pub async fn bookings_with(tx: &mut PgConnection, show: Uuid, seats: &[SeatIndex]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(
        "SELECT DISTINCT claim.booking_id FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
         WHERE claim.show_id = $1 AND claim.seat_no = ANY($2) AND claim.state <> 'released'
           AND booking.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED')
         ORDER BY claim.booking_id",
    )
    .bind_all((show, seats.iter().map(|seat| seat.cast_signed()).collect::<Vec<_>>()))
    .fetch_all(tx)
    .await
}

/// Undoes the bookings of withdrawn seats, until the server stops: any replica, no leader.
pub async fn withdraw_forever(state: SellingState) {
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    while rounds.wait_next().await {
        let shows = match take_due(&state.pg, state.clock.now()).await {
            Ok(shows) => shows,
            Err(cause) => {
                tracing::warn!(%cause, "read due seat withdrawals failed");
                continue;
            }
        };
        for show in shows {
            if let Err(problem) = undo_in_show(&state, show).await {
                tracing::warn!(?problem, %show, "undo bookings of withdrawn seats of {show} failed");
            }
            if state.stop.is_cancelled() {
                return;
            }
        }
    }
}

/// Leases the seats that are due. Returns their shows.
async fn take_due(pg: &PgPool, now: Timestamp) -> sqlx::Result<BTreeSet<Uuid>> {
    let shows: Vec<Uuid> = sqlx::query_scalar(
        "UPDATE seat_withdrawals taken SET look_at = $2
         FROM (SELECT show_id, seat_no FROM seat_withdrawals WHERE finished_at IS NULL AND look_at <= $1
               ORDER BY look_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
         WHERE taken.show_id = due.show_id AND taken.seat_no = due.seat_no RETURNING taken.show_id",
    )
    .bind_all((to_utc(now), to_utc(now.plus_ms(LEASE_MS)), MAX_PER_ROUND))
    .fetch_all(pg)
    .await?;
    Ok(shows.into_iter().collect())
}

async fn undo_in_show(state: &SellingState, show: Uuid) -> ApiResult<()> {
    let show = state.catalogue.find_show(show).await?;
    let sql = "SELECT seat_no, layout_id, reason, requested_at FROM seat_withdrawals
               WHERE show_id = $1 AND finished_at IS NULL ORDER BY seat_no";
    let rows: Vec<WithdrawnSeat> = sqlx::query_as(sql).bind(show.id).fetch_all(&state.pg).await?;
    let now = state.clock.now();
    let off_sale = take_off_map(state, &show, &rows, now).await?;
    let mut has_booking_to_recheck = false;
    if !off_sale.all.is_empty() {
        let bookings = bookings_with(&mut *state.pg.acquire().await?, show.id, &off_sale.all).await?;
        for booking in bookings {
            has_booking_to_recheck |= undo_booking(state, booking, &rows, &off_sale.all).await?;
        }
    }
    let is_done = |row: &&WithdrawnSeat| {
        let is_off_sale = off_sale.all.contains(&row.seat());
        let is_settled = to_utc(now.plus_ms(-MIN_CHECKED_MS)) >= row.requested_at
            && !has_booking_to_recheck
            && !off_sale.occupied.contains(&row.seat());
        !is_off_sale || is_settled
    };
    let done: Vec<i32> = rows.iter().filter(is_done).map(|row| row.seat_no).collect();
    // A seat that was withdrawn again meanwhile starts over.
    sqlx::query(
        "UPDATE seat_withdrawals SET finished_at = $3
         WHERE show_id = $1 AND seat_no = ANY($2) AND finished_at IS NULL AND requested_at <= $4",
    )
    .bind_all((show.id, &done, to_utc(now), rows.iter().map(|row| row.requested_at).max()))
    .execute(&state.pg)
    .await?;
    let checked: Vec<i32> = rows.iter().map(|row| row.seat_no).collect();
    let is_occupied = has_booking_to_recheck || !off_sale.occupied.is_empty();
    let recheck_ms = if is_occupied { RECHECK_OCCUPIED_MS } else { RECHECK_FREE_MS };
    sqlx::query(
        "UPDATE seat_withdrawals SET look_at = $2
         WHERE show_id = $1 AND seat_no = ANY($3) AND finished_at IS NULL AND requested_at <= $4",
    )
    .bind_all((show.id, to_utc(now.plus_ms(recheck_ms)), &checked, rows.iter().map(|row| row.requested_at).max()))
    .execute(&state.pg)
    .await?;
    Ok(())
}

/// Takes these seats off the map, and returns them. Seats that were put back on sale are left out, and seats of a show
/// that has begun, was moved or was called off.
async fn take_off_map(
    state: &SellingState,
    show: &Show,
    rows: &[WithdrawnSeat],
    now: Timestamp,
) -> ApiResult<SeatsOffSale> {
    // Loads a missing map: that takes a connection, which the transaction must not wait for.
    with_map(state, show, || state.locks.snapshot(show.id)).await?;
    let mut tx = state.pg.begin().await?;
    // The lock prevents putting them back on sale until the map is updated.
    let sql = "SELECT blocked, layout_id, starts_at > $2 AND NOT called_off FROM shows WHERE id = $1 FOR NO KEY UPDATE";
    let (blocked, layout, is_on): (Vec<i32>, Uuid, bool) =
        sqlx::query_as(sql).bind_all((show.id, to_utc(now))).fetch_one(&mut *tx).await?;
    let is_off_sale = |row: &&WithdrawnSeat| is_on && row.layout_id == layout && blocked.contains(&row.seat_no);
    let seats: Vec<SeatIndex> = rows.iter().filter(is_off_sale).map(WithdrawnSeat::seat).collect();
    if seats.is_empty() {
        return Ok(SeatsOffSale { all: seats, occupied: Vec::new() });
    }
    let withdrawn = state.locks.withdraw(show.id, &seats).await?;
    tx.commit().await?;
    let occupied =
        withdrawn.map_err(|refusal| Problem::internal(&format!("the lock store withdraws no seats: {refusal:?}")))?;
    Ok(SeatsOffSale { all: seats, occupied })
}

/// Undoes the part of a booking that has these seats. Returns true if the booking must be checked again: it was undone
/// just now, or another transaction has it locked.
async fn undo_booking(
    state: &SellingState,
    booking: Uuid,
    rows: &[WithdrawnSeat],
    seats: &[SeatIndex],
) -> ApiResult<bool> {
    let mut tx = state.pg.begin().await?;
    let sql = "SELECT id FROM bookings WHERE id = $1 FOR UPDATE SKIP LOCKED";
    let unlocked: Option<Uuid> = sqlx::query_scalar(sql).bind(booking).fetch_optional(&mut *tx).await?;
    let row = match unlocked {
        Some(_) => sql::lock(&mut tx, booking).await?,
        None => return Ok(true),
    };
    let Some(row) = row else { return Ok(false) };
    // The booking's lock keeps its numbers. In a show that has moved since, they are seats of another room.
    let sql = "SELECT layout_id FROM shows WHERE id = $1";
    let layout: Uuid = sqlx::query_scalar(sql).bind(row.show_id).fetch_one(&mut *tx).await?;
    let own: BTreeSet<SeatIndex> = row.seats.iter().copied().collect();
    let in_layout = |seat: &SeatIndex| rows.iter().any(|row| row.seat() == *seat && row.layout_id == layout);
    let withdrawn: Vec<SeatIndex> =
        seats.iter().copied().filter(|seat| own.contains(seat) && in_layout(seat)).collect();
    // A seat that the booking returned before is claimed until the outbox has released it.
    let Some(first) = rows.iter().find(|row| withdrawn.contains(&row.seat())) else { return Ok(false) };
    let (reason, now) = (first.reason.as_str(), state.clock.now());
    match row.machine.state {
        BookingState::Confirmed if withdrawn.len() < row.seats.len() => {
            let returned = ReturnedSeats::unlabelled(&withdrawn);
            undo_seats(&mut tx, &row, returned, Canceller::Staff, reason, now).await?;
        }
        // All of its seats; a payment in progress is stopped.
        BookingState::Confirmed | BookingState::PaymentPending | BookingState::PaymentSucceeded => {
            undo_in_full(&mut tx, &row, Cause { actor: "staff", reason }, now).await?;
        }
        _ => return Ok(false),
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(true)
}

//! Moves all sold bookings and the show in one transaction, under the locks of the move.
//!
//! Lock order: bookings before the show, as in every writer of both. The lock of the show waits for all transactions
//! that write a new booking of it, and blocks new ones. Therefore all bookings are read after it.

use domain::VariantName;
use domain::booking::BookingEvent;
use domain::relocation::answer_until;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::NewStart;
use super::placement::{self, LayoutPair, MovePlacement, Mover};
use super::sql::{self, CarriedCounts, MoveRow, MovedBooking, ShowNow};
use crate::{BackofficeState, box_office};
use http::{ApiResult, Problem};
use platform::clock::from_utc;
use selling::bookings::{self, Cause, undo_in_full};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveAttempt {
    /// All bookings have moved.
    Done,
    /// A payment or an outbox effect that names seats by number is still pending.
    NotYet,
    /// Another replica works on the move or has finished it.
    Busy,
    /// The show was called off: the move is dropped.
    Dropped,
}

/// Carries a move out if nothing is pending. A crash rolls back the transaction, and a later round retries.
pub(super) async fn carry(state: &BackofficeState, open: &MoveRow) -> ApiResult<MoveAttempt> {
    let rooms = LayoutPair::load(state, open.from_layout, open.to_layout).await?;
    let mut tx = state.pg.begin().await?;
    let attempt = carry_in(&mut tx, open.id, &rooms, None, state.clock.now()).await?;
    tx.commit().await?;
    Ok(attempt)
}

/// The same in the transaction of the caller. With `start` the show has another start as well.
pub(super) async fn carry_in(
    tx: &mut PgConnection,
    id: Uuid,
    rooms: &LayoutPair,
    start: Option<NewStart>,
    now: Timestamp,
) -> ApiResult<MoveAttempt> {
    let Some(row) = sql::lock_move(tx, id, "closing").await? else { return Ok(MoveAttempt::Busy) };
    sql::lock_sold(tx, row.show_id).await?;
    let show = sql::lock_show(tx, row.show_id).await?.ok_or_else(|| Problem::not_found("show"))?;
    if show.called_off {
        sql::drop_move(tx, &row, now).await?;
        return Ok(MoveAttempt::Dropped);
    }
    // Bookings sold while waiting for the lock.
    sql::lock_sold(tx, row.show_id).await?;
    if sql::is_unsettled(tx, row.show_id).await? {
        return Ok(MoveAttempt::NotYet);
    }
    let there = (row.to_screen.as_str(), row.to_layout);
    let placement = placement::compute_placement(tx, row.show_id, &show, rooms, there, &row.prices.0).await?;
    let outcome = write(tx, &row, (&show, start), rooms, &placement, now).await?;
    tracing::info!(show = %row.show_id, ?outcome, "moving show {} to screen {}", row.show_id, row.to_screen);
    Ok(MoveAttempt::Done)
}

async fn write(
    tx: &mut PgConnection,
    row: &MoveRow,
    (show, start): (&ShowNow, Option<NewStart>),
    rooms: &LayoutPair,
    placement: &MovePlacement,
    now: Timestamp,
) -> ApiResult<CarriedCounts> {
    let id = row.show_id;
    let (movers, unplaced) = placement::divide(placement);
    let until = answer_until(now, from_utc(show.starts_at));
    for booking in &unplaced {
        refund_in_full(tx, row, booking.id, now).await?;
    }
    sql::archive_returned(tx, id).await?;
    sql::take_out_claims(tx, id).await?;
    let standing = placement.standing.iter().map(|kept| kept.seat);
    let mut kept: Vec<SeatIndex> = placement.kept.iter().map(|(_, seat)| *seat).chain(standing).collect();
    kept.sort_unstable();
    let kept: Vec<i32> = kept.into_iter().map(SeatIndex::cast_signed).collect();
    sql::open_room(tx, row, &rooms.after, &kept, start, now).await?;
    sql::carry_seats(tx, id, &placement::seats(&movers, &rooms.after), now).await?;
    sql::carry_places(tx, id, &placement::places(&movers, &rooms.after), now).await?;
    record_moves(tx, row, rooms, &movers, until, now).await?;
    let house: Vec<(i32, i32)> =
        placement.kept.iter().map(|(from, to)| (from.cast_signed(), to.cast_signed())).collect();
    sql::keep_house_seats(tx, id, &house).await?;
    box_office::keep_from_start(tx, &[id], &placement.standing, now).await?;
    sql::end_caller_holds(tx, id).await?;
    sql::requeue_offers(tx, id, now).await?;
    let count = |rows: usize| i32::try_from(rows).unwrap_or(i32::MAX);
    let same = movers.iter().filter(|mover| mover.is_same).count();
    let outcome =
        CarriedCounts { same: count(same), offered: count(movers.len() - same), refunded: count(unplaced.len()) };
    sql::carried(tx, row.id, outcome, until, now).await?;
    Ok(outcome)
}

/// Refunds a booking in full for which the other layout has no places.
async fn refund_in_full(tx: &mut PgConnection, row: &MoveRow, booking: Uuid, now: Timestamp) -> ApiResult<()> {
    let Some(sold) = bookings::lock(tx, booking).await? else { return Ok(()) };
    let reason = format!(
        "The show moves from {} to {}, where there are no seats like yours. {}",
        row.from_name, row.to_name, row.reason
    );
    undo_in_full(tx, &sold, Cause::of("staff", &reason), now).await?;
    Ok(())
}

/// Records the move in the history of every moved booking, with its outcome.
async fn record_moves(
    tx: &mut PgConnection,
    row: &MoveRow,
    rooms: &LayoutPair,
    movers: &[Mover<'_>],
    until: Timestamp,
    now: Timestamp,
) -> ApiResult<()> {
    let moved: Vec<MovedBooking> = movers
        .iter()
        .map(|mover| MovedBooking {
            booking: mover.row.id,
            is_same: mover.is_same,
            before: mover.before(),
            after: mover.after(&rooms.after),
        })
        .collect();
    let reasons: Vec<String> = moved
        .iter()
        .map(|moved| {
            let (before, after) = (moved.before.join(", "), moved.after.join(", "));
            format!("{}: {before} → {}: {after}. {}", row.from_name, row.to_name, row.reason)
        })
        .collect();
    let steps: Vec<(Uuid, i32)> = movers.iter().map(|mover| (mover.row.id, mover.row.version)).collect();
    sql::step_all(tx, BookingEvent::Relocated.as_str(), &steps, &reasons, now).await?;
    sql::put_all(tx, row.id, &moved, until, now).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::booking::{Booking, BookingState, MoneyState, step};
    use domain::money::{Currency, Money};
    use strum::VariantArray;

    use super::*;

    /// [`sql::step_all`] writes in a batch the step that the state machine defines for one booking.
    #[test]
    fn only_confirmed_bookings_can_be_relocated_and_no_effects_follow() {
        for &state in BookingState::VARIANTS {
            let total = Money::new(1, Currency::parse("EUR").expect("a code"));
            let booking = Booking { state, money: MoneyState::Paid, total, expires_at: Timestamp(0) };
            match step(booking, BookingEvent::Relocated, Timestamp(0)) {
                Ok((after, effects)) => assert_eq!((state, after, effects), (BookingState::Confirmed, booking, vec![])),
                Err(_) => assert_ne!(state, BookingState::Confirmed),
            }
        }
    }
}

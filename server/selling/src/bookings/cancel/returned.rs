//! Returned seats of a booking that keeps others.

use std::collections::BTreeSet;

use domain::seats::SeatIndex;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::SellingState;
use crate::bookings::claims::{on_map, seat_claims};
use crate::bookings::effects::EffectError;
use crate::bookings::sql::{BookingRow, SeatRow};
use catalogue::Show;
use http::{Code, Problem};

/// Divides the seats of a booking into those to return and those to keep. The only validator of
/// such a request: at least one seat, each once, each of this booking.
pub(super) fn divide(lines: Vec<SeatRow>, seats: &[SeatIndex]) -> Result<(Vec<SeatRow>, Vec<SeatRow>), Problem> {
    let wanted: BTreeSet<SeatIndex> = seats.iter().copied().collect();
    if wanted.is_empty() {
        return Err(Problem::new(Code::Malformed, "Name at least one seat, or leave `seats` out to cancel all."));
    }
    if wanted.len() < seats.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every seat once."));
    }
    let (gone, kept): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| wanted.contains(&line.seat_no.cast_unsigned()));
    if gone.len() < wanted.len() {
        return Err(Problem::new(Code::UnknownSeat, "The booking has no such seat (any more)."));
    }
    Ok((gone, kept))
}

/// Removes seats from a booking, in the transaction of its move.
pub(super) async fn take(tx: &mut PgConnection, booking: Uuid, number: u32, gone: &[SeatRow]) -> sqlx::Result<()> {
    let seats: Vec<i32> = gone.iter().map(|line| line.seat_no).collect();
    sqlx::query(
        "INSERT INTO returned_seats (booking_id, number, seat_no, label, category, price_minor)
         SELECT booking_id, $2, seat_no, label, category, price_minor FROM booking_seats
         WHERE booking_id = $1 AND seat_no = ANY($3)",
    )
    .bind(booking)
    .bind(number.cast_signed())
    .bind(&seats)
    .execute(&mut *tx)
    .await?;
    sqlx::query("DELETE FROM booking_seats WHERE booking_id = $1 AND seat_no = ANY($2)")
        .bind(booking)
        .bind(&seats)
        .execute(tx)
        .await?;
    Ok(())
}

/// Releases the seats of one part: claims first, then the map. An effect, performed at least once.
pub(crate) async fn release_part(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    number: u32,
) -> Result<(), EffectError> {
    let mut tx = state.pg.begin().await?;
    let seats: Vec<i32> =
        sqlx::query_scalar("SELECT seat_no FROM returned_seats WHERE booking_id = $1 AND number = $2 ORDER BY seat_no")
            .bind(row.id)
            .bind(number.cast_signed())
            .fetch_all(&mut *tx)
            .await?;
    let seats = seats.into_iter().map(i32::cast_unsigned).collect();
    let part = BookingRow { seats, places: Vec::new(), ..row.clone() };
    seat_claims::release(&mut tx, &part).await?;
    tx.commit().await?;
    let sale = part.sale();
    on_map::free(state, show, &sale).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<SeatRow> {
        let line = |seat_no| SeatRow { seat_no, label: format!("C{seat_no}"), category: "Gold".into(), price_minor: 1 };
        [4, 5, 6].map(line).to_vec()
    }

    #[test]
    fn only_seats_of_the_booking_are_returned_each_once() {
        let (gone, kept) = divide(lines(), &[6, 4]).expect("two of three");
        assert_eq!(gone.iter().map(|line| line.seat_no).collect::<Vec<_>>(), [4, 6]);
        assert_eq!(kept.iter().map(|line| line.seat_no).collect::<Vec<_>>(), [5]);
        for (seats, code) in [
            (&[][..], Code::Malformed),
            (&[4, 4], Code::SeatTwice),
            (&[4, 7], Code::UnknownSeat),
            (&[u32::MAX], Code::UnknownSeat),
        ] {
            assert_eq!(divide(lines(), seats).expect_err("refused").code(), code, "{seats:?}");
        }
    }
}

//! `seat_claims`: the final guard against double sales. Whatever state Redis has, there is one live claim per (show,
//! seat).
//!
//! The table is partitioned by show (docs/decisions/0051): a statement that does not name the show of each row scans
//! all partitions.

use domain::seats::SeatIndex;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::bookings::sql::BookingRow;
use catalogue::{alive_since, claim_is_alive};
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::{FencedSelection, Selection};

/// Claims the booking's seats until it expires. Returns the seats that could not be claimed. If any are returned,
/// the caller rolls back. One statement, rows in seat order, so that transactions do not deadlock.
///
/// A released claim is replaced whatever its fence: a seat that is added to an older hold may have been sold and returned
/// since. An expired claim is replaced by a higher fence only.
pub(crate) async fn claim(tx: &mut PgConnection, row: &BookingRow, now: Timestamp) -> sqlx::Result<Vec<SeatIndex>> {
    let got: Vec<i32> = sqlx::query_scalar(concat!(
        "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
         SELECT $1, seat_no, $2, $3, 'claimed', $4 FROM unnest($5::integer[]) AS seat_no ORDER BY seat_no
         ON CONFLICT (show_id, seat_no) DO UPDATE
         SET booking_id = EXCLUDED.booking_id, fence = EXCLUDED.fence, state = 'claimed',
             expires_at = EXCLUDED.expires_at
         WHERE (seat_claims.state = 'released' OR seat_claims.fence < EXCLUDED.fence) AND NOT ",
        claim_is_alive!("seat_claims", "$6"),
        " RETURNING seat_no",
    ))
    .bind_all((row.show_id, row.id, row.fence, to_utc(row.machine.expires_at), seat_numbers(row), alive_since(now)))
    .fetch_all(tx)
    .await?;
    Ok(row.seats.iter().copied().filter(|seat| !got.contains(&seat.cast_signed())).collect())
}

/// Turns the booking's claims into a sale; `false`, and nothing changed, unless every claim still belongs to the
/// booking with the same fence.
pub(crate) async fn sell(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<bool> {
    let own: Vec<i32> = sqlx::query_scalar(
        "SELECT seat_no FROM seat_claims
         WHERE show_id = $1 AND seat_no = ANY($2) AND booking_id = $3 AND fence = $4 AND state = 'claimed'
         ORDER BY seat_no FOR UPDATE",
    )
    .bind_all((row.show_id, seat_numbers(row), row.id, row.fence))
    .fetch_all(&mut *tx)
    .await?;
    if own.len() != row.seats.len() {
        return Ok(false);
    }
    let sql = "UPDATE seat_claims SET state = 'sold'
               WHERE show_id = $1 AND seat_no = ANY($2) AND booking_id = $3 AND fence = $4 AND state = 'claimed'";
    let sold = sqlx::query(sql).bind_all((row.show_id, &own, row.id, row.fence)).execute(tx).await?;
    assert_eq!(sold.rows_affected(), own.len() as u64, "the rows were locked one statement ago");
    Ok(true)
}

/// Returns the sales with claims on these seats of a show, limited to these seats.
pub(crate) async fn sales_of_seats(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &[SeatIndex],
) -> sqlx::Result<Vec<FencedSelection>> {
    let rows: Vec<(Uuid, String, i64, Vec<i32>)> = sqlx::query_as(
        "SELECT booking.hold_id, booking.owner, claim.fence, array_agg(claim.seat_no ORDER BY claim.seat_no)
         FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
         WHERE claim.show_id = $1 AND claim.seat_no = ANY($2) AND claim.state IN ('claimed', 'sold')
         GROUP BY booking.hold_id, booking.owner, claim.fence",
    )
    .bind_all((show, seats.iter().map(|seat| seat.cast_signed()).collect::<Vec<_>>()))
    .fetch_all(tx)
    .await?;
    let sale = |(hold, owner, fence, seats): (Uuid, String, i64, Vec<i32>)| FencedSelection {
        hold,
        owner,
        fence,
        selection: Selection::of_seats(seats.into_iter().map(i32::cast_unsigned).collect()),
    };
    Ok(rows.into_iter().map(sale).collect())
}

/// Releases the booking's claims, in seat order like every writer of this table. A repeat finds none.
pub(crate) async fn release(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<()> {
    let sql = "WITH own AS (SELECT seat_no FROM seat_claims
                            WHERE show_id = $1 AND seat_no = ANY($2) AND booking_id = $3 AND fence = $4
                              AND state IN ('claimed', 'sold')
                            ORDER BY seat_no FOR UPDATE)
               UPDATE seat_claims claim SET state = 'released' FROM own
               WHERE claim.show_id = $1 AND claim.seat_no = own.seat_no";
    sqlx::query(sql).bind_all((row.show_id, seat_numbers(row), row.id, row.fence)).execute(tx).await.map(drop)
}

fn seat_numbers(row: &BookingRow) -> Vec<i32> {
    row.seats.iter().map(|seat| seat.cast_signed()).collect()
}

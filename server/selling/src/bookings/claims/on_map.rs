//! Frees the released seats and places of a booking on the map.

use domain::seats::SeatIndex;
use sqlx::PgConnection;

use crate::SellingState;
use crate::bookings::effects::EffectError;
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use http::Problem;
use seats::seat_locks::{FencedSelection, StoreError, with_map};

/// Frees the selection of a booking on the map. Seats that were withdrawn from sale meanwhile, for example defective ones,
/// are blocked in the same step, so that the waiting list is never offered one.
pub(crate) async fn free(state: &SellingState, show: &Show, sale: &FencedSelection) -> Result<(), EffectError> {
    match free_once(state, show, sale).await? {
        Ok(()) => Ok(()),
        // Loading takes a connection, which a transaction must not wait for.
        Err(StoreError::NoMap(_)) => {
            with_map(state, show, || state.locks.snapshot(show.id)).await?;
            free_once(state, show, sale).await?.map_err(|cause| Problem::from(cause).into())
        }
        Err(cause) => Err(Problem::from(cause).into()),
    }
}

/// Checks for a seat of the booking that is withdrawn from sale.
pub(crate) async fn is_kept_by_house(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<bool> {
    let seats: Vec<i32> = row.seats.iter().map(|seat| seat.cast_signed()).collect();
    sqlx::query_scalar("SELECT blocked && $2 FROM shows WHERE id = $1")
        .bind(row.show_id)
        .bind(seats)
        .fetch_one(tx)
        .await
}

async fn free_once(state: &SellingState, show: &Show, sale: &FencedSelection) -> sqlx::Result<Result<(), StoreError>> {
    let mut tx = state.pg.begin().await?;
    // The lock keeps the withdrawn seats of the show unchanged until the map is updated.
    let blocked: Vec<i32> = sqlx::query_scalar("SELECT blocked FROM shows WHERE id = $1 FOR SHARE")
        .bind(show.id)
        .fetch_one(&mut *tx)
        .await?;
    let kept: Vec<SeatIndex> =
        sale.selection.seats.iter().copied().filter(|seat| blocked.contains(&seat.cast_signed())).collect();
    let freed = state.locks.free_and_block(show.id, sale, &kept).await;
    tx.commit().await?;
    Ok(freed)
}

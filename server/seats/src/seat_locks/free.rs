//! Frees returned seats in the lock store, under the lock of the show's row in Postgres.

use domain::seats::SeatIndex;
use platform::database::begin_with_lock_timeout;
use uuid::Uuid;

use super::{FencedSelection, StoreResult};
use crate::SeatsState;

/// Frees the selection of a booking. Seats that were withdrawn from sale meanwhile, for example defective ones, are
/// blocked in the same step, so that the waiting list is never offered one.
///
/// # Errors
/// When the database fails. The answer of the store is returned inside, because a caller must not load a missing map
/// within this transaction.
pub async fn free_or_block(state: &SeatsState, show: Uuid, sale: &FencedSelection) -> sqlx::Result<StoreResult<()>> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    // The lock keeps the withdrawn seats of the show unchanged until the map is updated.
    let sql = "SELECT blocked FROM shows WHERE id = $1 FOR SHARE";
    let blocked: Vec<i32> = sqlx::query_scalar(sql).bind(show).fetch_one(&mut *tx).await?;
    let kept: Vec<SeatIndex> =
        sale.selection.seats.iter().copied().filter(|seat| blocked.contains(&seat.cast_signed())).collect();
    let freed = state.locks.free_and_block(show, sale, &kept).await;
    tx.commit().await?;
    Ok(freed)
}

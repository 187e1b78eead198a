//! Releases the seats and places of a booking: they are free on the map, or stay in the hold that its buyer keeps after
//! a declined payment.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{area_claims, seat_claims};
use crate::SellingState;
use crate::bookings::effects::EffectError;
use crate::bookings::money::declines;
use crate::bookings::sql::{self, BookingRow};
use catalogue::Show;
use http::{ApiResult, Problem};
use platform::database::{BindAll, begin_with_lock_timeout};
use seats::seat_locks::{FencedSelection, Renewal, StoreError, StoredHold, free_or_block, with_map};

/// Frees the selection of a booking on the map, as [`free_or_block`] does.
pub(crate) async fn free(state: &SellingState, show: &Show, sale: &FencedSelection) -> Result<(), EffectError> {
    match free_or_block(state, show.id, sale).await? {
        Ok(()) => Ok(()),
        // Loading takes a connection, which a transaction must not wait for.
        Err(StoreError::NoMap(_)) => {
            with_map(state, show, || state.locks.snapshot(show.id)).await?;
            free_or_block(state, show.id, sale).await?.map_err(|cause| Problem::from(cause).into())
        }
        Err(cause) => Err(Problem::from(cause).into()),
    }
}

/// Returns true if a seat of the booking is withdrawn from sale.
async fn has_withdrawn_seat(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<bool> {
    let seats: Vec<i32> = row.seats.iter().map(|seat| seat.cast_signed()).collect();
    let sql = "SELECT blocked && $2 FROM shows WHERE id = $1";
    sqlx::query_scalar(sql).bind_all((row.show_id, seats)).fetch_one(tx).await
}

/// Releases claims and hold of a booking. Where the payment was declined and the buyer may try another card the hold
/// continues, and is returned in its new state. Idempotent.
///
/// The claims are released first, so that none of them refuses a payment for the hold under its next id.
pub(crate) async fn release(state: &SellingState, show: &Show, row: &BookingRow) -> ApiResult<Option<StoredHold>> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    area_claims::release(&mut tx, row).await?;
    seat_claims::release(&mut tx, row).await?;
    let kept = declines::kept_hold(&mut tx, row.id).await?;
    // A seat that was withdrawn from sale meanwhile, for example a defective one, is not kept.
    let kept = if kept.is_some() && has_withdrawn_seat(&mut tx, row).await? { None } else { kept };
    tx.commit().await?;
    let sale = row.sale();
    if let Some(kept) = kept {
        let renewal = Renewal {
            hold: kept.hold,
            owner: row.owner.clone(),
            until: kept.until,
            ends_payment: true,
            per_person: None,
        };
        if let Ok(held) = with_map(state, show, || state.locks.renew(show.id, &sale, &renewal)).await? {
            return Ok(Some(held));
        }
    }
    free(state, show, &sale).await?;
    Ok(None)
}

/// Renews the hold that a declined payment of this owner left under that id, if the effect of its booking has not
/// done so yet.
pub(crate) async fn renew_kept_hold(
    state: &SellingState,
    show: &Show,
    hold: Uuid,
    owner: &str,
) -> ApiResult<Option<StoredHold>> {
    let mut connection = state.pg.acquire().await?;
    let Some(booking) = declines::booking_of_kept_hold(&mut connection, hold, owner).await? else { return Ok(None) };
    let row = sql::find(&mut connection, booking).await?;
    drop(connection);
    match row.filter(|row| row.show_id == show.id && row.machine.state.is_final()) {
        Some(row) => Ok(release(state, show, &row).await?.filter(|held| held.hold == hold)),
        None => Ok(None),
    }
}

//! Releases the seats of a booking that ended unpaid: they are free, or stay in the hold that its buyer keeps.

use uuid::Uuid;

use super::claims::{area_claims, on_map, seat_claims};
use super::money::declines;
use super::sql::{self, BookingRow};
use crate::SellingState;
use catalogue::Show;
use http::Problem;
use seats::seat_locks::{Renewal, StoredHold, with_map};

/// Releases claims and hold of a booking. Where the payment was declined and the buyer may try another card the hold
/// continues, and is returned in its new state. Idempotent.
///
/// The claims are released first, so that none of them refuses a payment for the hold under its next id.
pub(super) async fn release(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
) -> Result<Option<StoredHold>, Problem> {
    let mut tx = state.pg.begin().await?;
    area_claims::release(&mut tx, row).await?;
    seat_claims::release(&mut tx, row).await?;
    let kept = declines::kept(&mut tx, row.id).await?;
    // A seat that was withdrawn from sale meanwhile, for example a defective one, is not kept.
    let kept = if kept.is_some() && on_map::is_kept_by_house(&mut tx, row).await? { None } else { kept };
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
    on_map::free(state, show, &sale).await?;
    Ok(None)
}

/// Renews the hold that a declined payment of this owner left under that id, if the effect of its booking has not
/// done so yet.
pub(super) async fn renew_kept_hold(
    state: &SellingState,
    show: &Show,
    hold: Uuid,
    owner: &str,
) -> Result<Option<StoredHold>, Problem> {
    let mut connection = state.pg.acquire().await?;
    let Some(booking) = declines::left_by(&mut connection, hold, owner).await? else { return Ok(None) };
    let row = sql::find(&mut connection, booking).await?;
    drop(connection);
    match row.filter(|row| row.show_id == show.id && row.machine.state.is_final()) {
        Some(row) => Ok(release(state, show, &row).await?.filter(|held| held.hold == hold)),
        None => Ok(None),
    }
}

//! Seats of a booking that came to nothing go back: to everybody, or to the hold that its buyer keeps.

use uuid::Uuid;

use super::claims::{area_claims, on_map, seat_claims};
use super::money::declines;
use super::sql::{self, BookingRow};
use crate::AppState;
use crate::catalogue::Show;
use crate::seat_locks::{Held, Renewal, with_map};
use crate::web::Problem;

/// Gives claims and hold of a booking back. The hold goes on where its payment was declined and the buyer may try another
/// card; then it is returned as it is now. Harmless when repeated.
///
/// The claims go first: none of them is in the way of a payment for the hold under its next id.
pub(super) async fn release(state: &AppState, show: &Show, row: &BookingRow) -> Result<Option<Held>, Problem> {
    let mut tx = state.pg.begin().await?;
    area_claims::release(&mut tx, row).await?;
    seat_claims::release(&mut tx, row).await?;
    let kept = declines::kept(&mut tx, row.id).await?;
    // What the house has kept meanwhile, a defective seat for example, is for no card.
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

/// The hold of that id, if a declined payment of this owner's left it and the effect of that booking has not run yet.
pub(super) async fn kept_hold(state: &AppState, show: &Show, hold: Uuid, owner: &str) -> Result<Option<Held>, Problem> {
    let mut connection = state.pg.acquire().await?;
    let Some(booking) = declines::left_by(&mut connection, hold, owner).await? else { return Ok(None) };
    let row = sql::find(&mut connection, booking).await?;
    drop(connection);
    match row.filter(|row| row.show_id == show.id && row.machine.state.is_final()) {
        Some(row) => Ok(release(state, show, &row).await?.filter(|held| held.hold == hold)),
        None => Ok(None),
    }
}

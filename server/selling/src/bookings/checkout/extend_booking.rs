//! Extends a booking when its owner extends the hold after checkout: the booking may be paid as long as the hold lasts.

use domain::booking::{Booking, BookingState};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::create::unmoved;
use crate::SellingState;
use crate::bookings::commits::retried;
use crate::bookings::moves::MoveError;
use crate::bookings::sql::{self, BookingRow};
use http::Problem;

/// Extends the booking of a hold, if it has one, to the hold's new expiry; never shortens it.
///
/// The lock store is updated first, and the hold's extension is confirmed only after this call as well: a
/// failed request is repeated with its key, and calls this again.
///
/// # Errors
/// `hold_expired` when the booking has ended meanwhile; 503 when the database is unavailable.
pub async fn extend_booking(state: &SellingState, hold: Uuid, owner: &str, until: Timestamp) -> Result<(), Problem> {
    // Boxed, as in `checks`.
    Box::pin(retried(|| async {
        let mut tx = state.pg.begin().await?;
        if let Some(row) = sql::lock_of_hold(&mut tx, hold).await?.filter(|row| row.owner == owner) {
            prolong(&mut tx, &row, until, state.clock.now()).await.map_err(unmoved)?;
        }
        tx.commit().await?;
        Ok(())
    }))
    .await
}

async fn prolong(tx: &mut PgConnection, row: &BookingRow, until: Timestamp, now: Timestamp) -> Result<(), MoveError> {
    // Extended already. A repeated request that was granted succeeds, whatever happened to the booking since.
    if until <= row.machine.expires_at {
        return Ok(());
    }
    match row.machine.state {
        BookingState::SeatsLocked => {}
        // It ended before this call: its seats are, or were, released with it.
        BookingState::Cancelled | BookingState::Expired => {
            return Err(MoveError::Refused(domain::booking::StepError::Gone));
        }
        // The terms of a submitted payment do not change.
        _ => return Ok(()),
    }
    let machine = Booking { expires_at: until, ..row.machine };
    let longer = BookingRow { version: row.version + 1, machine, ..row.clone() };
    if !sql::update(tx, row, &longer, now).await? {
        return Err(MoveError::LostRace);
    }
    let from = Some(row.machine.state);
    sql::insert_event(tx, &longer, from, "kept_longer", "buyer", "The hold was kept longer.", now).await?;
    Ok(())
}

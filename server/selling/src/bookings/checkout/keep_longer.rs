//! A hold that its owner keeps longer after checking out: the booking may be paid as long as the hold lasts.

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

/// Tells the booking of a hold, if it has one, that the hold lasts until then; never shortens it.
///
/// The lock store comes first, so whoever is told that their hold lasts longer must have been heard here as well: a
/// request that was not is repeated with its key, and comes by again.
///
/// # Errors
/// `hold_expired` when the booking has ended meanwhile; 503 when the database is unavailable.
pub async fn keep_longer(state: &SellingState, hold: Uuid, owner: &str, until: Timestamp) -> Result<(), Problem> {
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
    // It lasts as long. Or did: a request that was granted is answered like that whatever came of the booking since.
    if until <= row.machine.expires_at {
        return Ok(());
    }
    match row.machine.state {
        BookingState::SeatsLocked => {}
        // Its time was over before it was told: its seats go, or went, with it.
        BookingState::Cancelled | BookingState::Expired => {
            return Err(MoveError::Refused(domain::booking::Refused::Gone));
        }
        // What was agreed when Pay was pressed stands.
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

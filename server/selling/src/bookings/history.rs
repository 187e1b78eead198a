//! Events that move nothing: they are appended to the booking's history with a new
//! version.

use domain::time::Timestamp;
use sqlx::PgConnection;

use super::moves::{Cause, MoveError};
use super::sql::{self, BookingRow};

/// Appends an event to the history of `row`, which the caller has locked, and returns the new row.
pub(super) async fn note(
    tx: &mut PgConnection,
    row: &BookingRow,
    event: &str,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    let noted = BookingRow { version: row.version + 1, ..row.clone() };
    if !sql::update(tx, row, &noted, now).await? {
        return Err(MoveError::LostRace);
    }
    sql::insert_event(tx, &noted, Some(row.machine.state), event, cause.actor, cause.reason, now).await?;
    Ok(noted)
}

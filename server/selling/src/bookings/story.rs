//! What happened to a booking and moved nothing: written into its story all the same, with a number of its
//! own.

use domain::time::Timestamp;
use sqlx::PgConnection;

use super::moves::{Cause, MoveError};
use super::sql::{self, BookingRow};

/// Appends to the story of `row`, which the caller has locked, and returns it as it stands then.
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

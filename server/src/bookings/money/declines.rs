//! Declined payments, remembered for the fraud rule: a buyer who tries one card after another is told to wait.

use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;

use crate::bookings::sql::BookingRow;
use crate::clock::to_utc;
use crate::payments::CANCELLED_BY_PAYER;

/// How long they are kept, for people who look into them, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Old ones deleted with each new one, at most: two, so that the table shrinks.
const FORGET_AT_ONCE: i64 = 2;

/// Notes that the payment of a booking failed, unless its payer just changed their mind.
pub(in crate::bookings) async fn note(
    tx: &mut PgConnection,
    row: &BookingRow,
    why: Option<&str>,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if why == Some(CANCELLED_BY_PAYER) {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO declined_payments (booking_id, owner, email, at) VALUES ($1, $2, lower($3), $4)
         ON CONFLICT DO NOTHING",
    )
    .bind(row.id)
    .bind(&row.owner)
    .bind(&row.buyer.1)
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "DELETE FROM declined_payments WHERE booking_id IN
             (SELECT booking_id FROM declined_payments WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .bind(to_utc(now.plus_ms(-KEPT_MS)))
    .bind(FORGET_AT_ONCE)
    .execute(tx)
    .await?;
    Ok(())
}

//! Declined payments: kept for the fraud rule, and for the hold that is kept for another card.
//!
//! A booking whose payment was declined is over, and its hold continues under another id ([`Kept`]): the buyer pays for a
//! new booking with the next card, and the seats are never free in between. The row of the decline names the hold, in the
//! transaction of the move; the effect that gives the seats back calls the lock store
//! ([`crate::bookings::released`]). A payer who changed their mind keeps no hold, nor does a hold with
//! [`MAX_DECLINES_OF_HOLD`], nor a buyer who must wait before the next try.

use domain::booking::{BookingState, PAYMENT_EXTENSION_MS};
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::bookings::checkout::{DECLINES_WINDOW_MS, MAX_DECLINES_OF_EMAIL, MAX_DECLINES_OF_VISITOR};
use crate::bookings::sql::BookingRow;
use crate::waiting_list;
use payments::CANCELLED_BY_PAYER;
use platform::clock::{from_utc, to_utc};
use platform::ids;
use seats::seat_locks::is_offer;

/// How long they are kept, for people who look into them, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Old ones deleted with each new one, at most: two, so that the table shrinks.
const FORGET_AT_ONCE: i64 = 2;
/// Declined payments after which a hold ends: cards are not tested with it.
const MAX_DECLINES_OF_HOLD: i16 = 5;
/// A hold that is kept lasts at least so long after the decline, milliseconds: time to take out another card.
const MIN_KEPT_MS: i64 = 2 * MINUTE_MS;

/// A hold that outlives a declined payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bookings) struct Kept {
    /// Its id from then on.
    pub(in crate::bookings) hold: Uuid,
    /// Until when it lasts.
    pub(in crate::bookings) until: Timestamp,
}

/// Notes that the payment of a booking failed, unless its payer stopped it, and decides if its hold is kept. `row` is locked,
/// and as it was before the move.
pub(in crate::bookings) async fn note(
    tx: &mut PgConnection,
    row: &BookingRow,
    why: Option<&str>,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if why == Some(CANCELLED_BY_PAYER) {
        return Ok(());
    }
    // Otherwise something else has ended the booking, and its seats are being released.
    let ends_it = row.machine.state == BookingState::PaymentPending;
    let is_offer = is_offer(row.hold_id);
    let next = if is_offer { waiting_list::renewed_offer_id(row.hold_id, row.id) } else { ids::new_id() };
    let until = row.machine.expires_at.plus_ms(-PAYMENT_EXTENSION_MS).max(now.plus_ms(MIN_KEPT_MS));
    let kept: Option<Option<Uuid>> = sqlx::query_scalar(
        "INSERT INTO declined_payments (booking_id, owner, email, at, number, kept_as, kept_until)
         SELECT $1, $2, lower($3), $4, earlier.number + 1,
                CASE WHEN further.is_possible THEN $5::uuid END, CASE WHEN further.is_possible THEN $6::timestamptz END
         FROM (SELECT coalesce((SELECT number FROM declined_payments WHERE kept_as = $7), 0) AS number) AS earlier,
              LATERAL (SELECT $8 AND earlier.number + 1 < $9
                          AND (SELECT count(*) FROM declined_payments WHERE owner = $2 AND at > $10) + 1 < $11
                          AND (SELECT count(*) FROM declined_payments WHERE email = lower($3) AND at > $10) + 1 < $12
                       AS is_possible) AS further
         ON CONFLICT DO NOTHING RETURNING kept_as",
    )
    .bind(row.id)
    .bind(&row.owner)
    .bind(&row.buyer.1)
    .bind(to_utc(now))
    .bind(next)
    .bind(to_utc(until))
    .bind(row.hold_id)
    .bind(ends_it)
    .bind(MAX_DECLINES_OF_HOLD)
    .bind(to_utc(now.plus_ms(-DECLINES_WINDOW_MS)))
    .bind(MAX_DECLINES_OF_VISITOR)
    .bind(MAX_DECLINES_OF_EMAIL)
    .fetch_optional(&mut *tx)
    .await?;
    if is_offer && kept.flatten().is_some() {
        waiting_list::note_renewed_offer(tx, row.hold_id, next, until, now).await?;
    }
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

/// The hold that is kept after the payment of a booking was declined, if one is.
pub(in crate::bookings) async fn kept(
    connection: &mut PgConnection,
    booking: Uuid,
) -> Result<Option<Kept>, sqlx::Error> {
    let found: Option<(Uuid, chrono::DateTime<chrono::Utc>)> = sqlx::query_as(
        "SELECT kept_as, kept_until FROM declined_payments WHERE booking_id = $1 AND kept_as IS NOT NULL",
    )
    .bind(booking)
    .fetch_optional(connection)
    .await?;
    Ok(found.map(|(hold, until)| Kept { hold, until: from_utc(until) }))
}

/// The booking whose declined payment left this hold, if it is this owner's.
pub(in crate::bookings) async fn left_by(
    connection: &mut PgConnection,
    hold: Uuid,
    owner: &str,
) -> Result<Option<Uuid>, sqlx::Error> {
    sqlx::query_scalar("SELECT booking_id FROM declined_payments WHERE kept_as = $1 AND owner = $2")
        .bind(hold)
        .bind(owner)
        .fetch_optional(connection)
        .await
}

//! Declined payments: recorded for the fraud rule, and to keep the hold for another card.
//!
//! A declined payment ends its booking, and the hold continues under another id ([`HoldAfterDecline`]): the buyer pays
//! for a new booking with the next card, and the seats are never free in between. The transaction of the move stores
//! the new hold id in the decline's row; the effect that releases the seats calls the lock store
//! ([`crate::bookings::claims::on_map`]). No hold is kept for a payer who cancelled the payment, for a hold with
//! [`MAX_DECLINES_OF_HOLD`], or for a buyer who must wait before the next payment: after this decline both limits of
//! `checkout::checks` apply. A gateway that refuses the request itself declines no card: the hold is kept likewise, and
//! the refusal does not count towards those limits.

use domain::booking::{BookingState, PAYMENT_EXTENSION_MS};
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::bookings::checkout::{DECLINES_WINDOW_MS, MAX_DECLINES_OF_EMAIL, MAX_DECLINES_OF_VISITOR};
use crate::bookings::sql::BookingRow;
use crate::waiting_list;
use payments::CANCELLED_BY_PAYER;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use platform::ids;
use seats::seat_locks::is_offer;

/// Retention of declines for investigation, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum old rows deleted with each new one: two, so that the table shrinks.
const MAX_DELETED: i64 = 2;
/// Declined payments after which a hold ends: it cannot be used to test cards.
const MAX_DECLINES_OF_HOLD: i16 = 5;
/// Minimum time that a kept hold lasts after the decline, milliseconds: time to take out another card.
const MIN_KEPT_MS: i64 = 2 * MINUTE_MS;

/// A hold that continues after a declined payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldAfterDecline {
    pub(crate) hold: Uuid,
    pub(crate) until: Timestamp,
}

/// Records a declined payment, unless its payer cancelled it, and decides if its hold is kept. `row` is locked,
/// in its state before the move. `by_gateway`: the gateway refused the request, whatever the card.
pub(crate) async fn record(
    tx: &mut PgConnection,
    row: &BookingRow,
    why: Option<&str>,
    by_gateway: bool,
    now: Timestamp,
) -> sqlx::Result<()> {
    if why == Some(CANCELLED_BY_PAYER) {
        return Ok(());
    }
    // Otherwise another cause has ended the booking, and its seats are being released.
    let ends_it = row.machine.state == BookingState::PaymentPending;
    let is_offer = is_offer(row.hold_id);
    let next = if is_offer { waiting_list::renewed_offer_id(row.hold_id, row.id) } else { ids::new_id() };
    let until = row.machine.expires_at.plus_ms(-PAYMENT_EXTENSION_MS).max(now.plus_ms(MIN_KEPT_MS));
    let kept: Option<Option<Uuid>> = sqlx::query_scalar(
        "INSERT INTO declined_payments (booking_id, owner, email, at, number, kept_as, kept_until, by_gateway)
         SELECT $1, $2, lower($3), $4, earlier.number + 1,
                CASE WHEN further.is_possible THEN $5::uuid END, CASE WHEN further.is_possible THEN $6::timestamptz END,
                $13
         FROM (SELECT coalesce((SELECT number FROM declined_payments WHERE kept_as = $7), 0) AS number) AS earlier,
              LATERAL (SELECT $8 AND earlier.number + 1 < $9
                          AND (SELECT count(*) FROM declined_payments
                               WHERE owner = $2 AND at > $10 AND NOT by_gateway) + (NOT $13)::int < $11
                          AND (SELECT count(*) FROM declined_payments
                               WHERE email = lower($3) AND at > $10 AND NOT by_gateway) + (NOT $13)::int < $12
                       AS is_possible) AS further
         ON CONFLICT DO NOTHING RETURNING kept_as",
    )
    .bind_all((row.id, &row.owner, &row.buyer.1))
    .bind_all((to_utc(now), next, to_utc(until)))
    .bind_all((row.hold_id, ends_it, MAX_DECLINES_OF_HOLD))
    .bind_all((to_utc(now.plus_ms(-DECLINES_WINDOW_MS)), MAX_DECLINES_OF_VISITOR, MAX_DECLINES_OF_EMAIL, by_gateway))
    .fetch_optional(&mut *tx)
    .await?;
    if is_offer && kept.flatten().is_some() {
        waiting_list::note_renewed_offer(tx, row.hold_id, next, until, now).await?;
    }
    let sql = "DELETE FROM declined_payments WHERE booking_id IN
             (SELECT booking_id FROM declined_payments WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    sqlx::query(sql).bind_all((to_utc(now.plus_ms(-KEPT_MS)), MAX_DELETED)).execute(tx).await.map(drop)
}

/// Returns the hold that is kept after a booking's declined payment, if any.
pub(crate) async fn kept_hold(connection: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<HoldAfterDecline>> {
    let sql = "SELECT kept_as, kept_until FROM declined_payments WHERE booking_id = $1 AND kept_as IS NOT NULL";
    let found: Option<(Uuid, chrono::DateTime<chrono::Utc>)> =
        sqlx::query_as(sql).bind(booking).fetch_optional(connection).await?;
    Ok(found.map(|(hold, until)| HoldAfterDecline { hold, until: from_utc(until) }))
}

/// Returns the booking whose declined payment left this hold, if it is this owner's.
pub(crate) async fn booking_of_kept_hold(
    connection: &mut PgConnection,
    hold: Uuid,
    owner: &str,
) -> sqlx::Result<Option<Uuid>> {
    let sql = "SELECT booking_id FROM declined_payments WHERE kept_as = $1 AND owner = $2";
    sqlx::query_scalar(sql).bind_all((hold, owner)).fetch_optional(connection).await
}

//! Queries that pick due bookings and payments: several replicas look at once, and none waits for another.

use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::to_utc;

/// Returns the bookings that only wait for time to pass: held and not paid in time, or paid before `left_behind` and
/// neither sold nor refunded since.
pub(super) async fn bookings(
    pg: &PgPool,
    now: Timestamp,
    left_behind: Timestamp,
    limit: usize,
) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(
        "SELECT id FROM bookings
         WHERE is_open AND ((state IN ('CREATED', 'SEATS_LOCKED') AND expires_at <= $1)
                            OR (state = 'PAYMENT_SUCCEEDED' AND updated_at <= $2))
         ORDER BY expires_at LIMIT $3",
    )
    .bind(to_utc(now))
    .bind(to_utc(left_behind))
    .bind(limit as i64)
    .fetch_all(pg)
    .await
}

/// Tries to lock the booking; `false` when another transaction has it locked.
pub(super) async fn try_lock_booking(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<bool> {
    let taken: Option<Uuid> = sqlx::query_scalar("SELECT id FROM bookings WHERE id = $1 FOR UPDATE SKIP LOCKED")
        .bind(id)
        .fetch_optional(tx)
        .await?;
    Ok(taken.is_some())
}

/// A payment whose gateway is to be asked.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct SilentPayment {
    /// The booking of the payment.
    #[sqlx(rename = "booking_id")]
    pub(super) booking: Uuid,
    /// Its gateway.
    pub(super) gateway: String,
}

/// Thresholds: payments without news since these times are picked.
#[derive(Clone, Copy, Debug)]
pub(super) struct SilenceThresholds {
    /// For a booking that has not expired.
    pub(super) pending: Timestamp,
    /// For an expired booking.
    pub(super) overdue: Timestamp,
}

/// A filter of gateways.
#[derive(Clone, Copy, Debug)]
pub(super) enum GatewayFilter<'a> {
    /// All but these.
    AllBut(&'a [String]),
    /// Only this one.
    Only(&'a str),
}

/// Takes pending payments without recent news, and marks them as asked: no other replica
/// takes them until as much time has passed again. The longest silent come first.
pub(super) async fn payments(
    pg: &PgPool,
    now: Timestamp,
    since: SilenceThresholds,
    of: GatewayFilter<'_>,
    limit: usize,
) -> sqlx::Result<Vec<SilentPayment>> {
    let (but, only) = match of {
        GatewayFilter::AllBut(gateways) => (gateways, None),
        GatewayFilter::Only(gateway) => (&[][..], Some(gateway)),
    };
    sqlx::query_as(
        "UPDATE payments payment SET updated_at = $1
         FROM (SELECT unheard.booking_id, unheard.gateway
               FROM payments unheard JOIN bookings booking ON booking.id = unheard.booking_id
               WHERE booking.is_open AND booking.state = 'PAYMENT_PENDING'
                 AND (unheard.updated_at <= $2 OR (booking.expires_at <= $1 AND unheard.updated_at <= $3))
                 AND unheard.gateway <> ALL($4) AND ($5::text IS NULL OR unheard.gateway = $5)
               ORDER BY unheard.updated_at LIMIT $6
               FOR UPDATE OF unheard SKIP LOCKED) taken
         WHERE payment.booking_id = taken.booking_id AND payment.gateway = taken.gateway
         RETURNING payment.booking_id, payment.gateway",
    )
    .bind(to_utc(now))
    .bind(to_utc(since.pending))
    .bind(to_utc(since.overdue))
    .bind(but)
    .bind(only)
    .bind(limit as i64)
    .fetch_all(pg)
    .await
}

/// Marks a pending payment as having no news since `unheard_since`.
pub(super) async fn mark_due(pg: &PgPool, booking: Uuid, unheard_since: Timestamp) -> sqlx::Result<()> {
    sqlx::query("UPDATE payments SET updated_at = $2 WHERE booking_id = $1 AND updated_at > $2")
        .bind(booking)
        .bind(to_utc(unheard_since))
        .execute(pg)
        .await?;
    Ok(())
}

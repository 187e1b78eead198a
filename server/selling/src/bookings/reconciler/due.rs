//! What is due, and who takes it: several replicas look at once, and none waits for another.

use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::to_utc;

/// Bookings that only need time to have passed: held and never paid, or paid before `left_behind` and
/// neither sold nor refunded since.
pub(super) async fn ours(
    pg: &PgPool,
    now: Timestamp,
    left_behind: Timestamp,
    limit: usize,
) -> Result<Vec<Uuid>, sqlx::Error> {
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

/// Takes the booking's lock; `false` when somebody else has it, who is moving it.
pub(super) async fn is_free(tx: &mut PgConnection, id: Uuid) -> Result<bool, sqlx::Error> {
    let taken: Option<Uuid> = sqlx::query_scalar("SELECT id FROM bookings WHERE id = $1 FOR UPDATE SKIP LOCKED")
        .bind(id)
        .fetch_optional(tx)
        .await?;
    Ok(taken.is_some())
}

/// A payment to be asked about.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct Unheard {
    /// Whose payment.
    #[sqlx(rename = "booking_id")]
    pub(super) booking: Uuid,
    /// Where.
    pub(super) gateway: String,
}

/// Heard of last before these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// Of one that has time.
    pub(super) pending: Timestamp,
    /// Of one whose time is over.
    pub(super) overdue: Timestamp,
}

/// Payments at which gateways.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of<'a> {
    /// At none of these.
    AllBut(&'a [String]),
    /// At this one.
    Only(&'a str),
}

/// Takes pending payments that were not heard of, and notes that they are being asked about: nobody
/// else takes them until as much time has passed again. The longest unheard come first.
pub(super) async fn payments(
    pg: &PgPool,
    now: Timestamp,
    since: Since,
    of: Of<'_>,
    limit: usize,
) -> Result<Vec<Unheard>, sqlx::Error> {
    let (but, only) = match of {
        Of::AllBut(gateways) => (gateways, None),
        Of::Only(gateway) => (&[][..], Some(gateway)),
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

/// Makes a pending payment one that was not heard of since `unheard_since`.
pub(super) async fn hurry(pg: &PgPool, booking: Uuid, unheard_since: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE payments SET updated_at = $2 WHERE booking_id = $1 AND updated_at > $2")
        .bind(booking)
        .bind(to_utc(unheard_since))
        .execute(pg)
        .await?;
    Ok(())
}

//! Queries about the gateway of a booking and the use of its money: `payments.gateway`, `asks` and `moved_to`,
//! `payment_switches`, and `webhook_events`.

use domain::VariantName;
use domain::booking::Effect;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::bookings::checkout::instruments;
use crate::outbox;
use payments::{PaymentEventOutcome, PaymentIds};
use platform::clock::to_utc;
use platform::database::BindAll;

/// The gateway that charges a booking.
#[derive(Clone, Debug, platform::FromRow)]
pub(crate) struct Route {
    pub(crate) gateway: String,
    /// The gateway's id of the payment, once it is known.
    pub(crate) gateway_ref: Option<String>,
    /// The buyer's token, of whichever gateway.
    pub(crate) payment_token: Option<String>,
}

impl Route {
    pub(crate) fn known(&self, booking: Uuid) -> PaymentIds {
        PaymentIds { booking, gateway_ref: self.gateway_ref.clone() }
    }
}

/// Counts a repeated charge request before it is sent, and returns the booking's route; `None` when no payment was
/// submitted. The insert of the payment has counted the first request.
pub(crate) async fn count_charge_request(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<Route>> {
    let sql = "UPDATE payments SET asks = least(asks + 1, 30000) WHERE booking_id = $1
               RETURNING gateway, gateway_ref, payment_token";
    sqlx::query_as(sql).bind(booking).fetch_optional(tx).await
}

/// Returns the booking's route; `None` when no payment was submitted, or when it costs nothing: no gateway knows it.
pub(crate) async fn route(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<Route>> {
    let sql = "SELECT gateway, gateway_ref, payment_token FROM payments WHERE booking_id = $1 AND amount_minor > 0";
    sqlx::query_as(sql).bind(booking).fetch_optional(tx).await
}

/// Takes back the count of a charge request that was never sent.
pub(crate) async fn uncount_charge_request(tx: &mut PgConnection, booking: Uuid, gateway: &str) -> sqlx::Result<()> {
    let sql = "UPDATE payments SET asks = asks - 1 WHERE booking_id = $1 AND gateway = $2 AND asks > 0";
    sqlx::query(sql).bind_all((booking, gateway)).execute(tx).await.map(drop)
}

/// Returns the gateways that the booking left.
pub(crate) async fn gateways_left(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Vec<String>> {
    let sql = "SELECT from_gateway FROM payment_switches WHERE booking_id = $1";
    sqlx::query_scalar(sql).bind(booking).fetch_all(tx).await
}

/// Switches a booking, whose row is locked, from one gateway to another. `None`, and nothing is changed, unless
/// the caller's request is the only one that may have reached the first.
pub(crate) async fn switch(
    tx: &mut PgConnection,
    booking: Uuid,
    (from, to): (&str, &str),
    why: &str,
    now: Timestamp,
) -> sqlx::Result<Option<Route>> {
    let sql = "UPDATE payments SET gateway = $3, asks = 1, gateway_ref = NULL, pay_url = NULL, updated_at = $4
               WHERE booking_id = $1 AND gateway = $2 AND asks = 1 AND state = 'requested'
               RETURNING gateway, gateway_ref, payment_token";
    let moved: Option<Route> =
        sqlx::query_as(sql).bind_all((booking, from, to, to_utc(now))).fetch_optional(&mut *tx).await?;
    if moved.is_some() {
        sqlx::query(
            "INSERT INTO payment_switches (booking_id, from_gateway, to_gateway, why, at) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind_all((booking, from, to, why, to_utc(now)))
        .execute(&mut *tx)
        .await?;
        instruments::delete(tx, booking).await?;
        outbox::enqueue(tx, booking, &[Effect::VoidLeft], now).await?;
    }
    Ok(moved)
}

/// Moves the money of one booking to another: it is counted once, for the new booking, with the given amount or
/// else the old one. The gateway still knows it under the first booking. `false`, and the caller rolls back,
/// when the first booking has no money or its money has moved already.
pub(crate) async fn move_money(
    tx: &mut PgConnection,
    (from, to): (Uuid, Uuid),
    amount_minor: Option<i64>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "INSERT INTO payments (booking_id, gateway, gateway_ref, state, amount_minor, currency, updated_at)
               SELECT $2, gateway, gateway_ref, 'succeeded', coalesce($3, amount_minor), currency, $4
               FROM payments WHERE booking_id = $1";
    sqlx::query(sql).bind_all((from, to, amount_minor, to_utc(now))).execute(&mut *tx).await?;
    let sql = "UPDATE payments SET moved_to = $2 WHERE booking_id = $1 AND moved_to IS NULL";
    let moved = sqlx::query(sql).bind_all((from, to)).execute(&mut *tx).await?;
    if moved.rows_affected() != 1 {
        return Ok(false);
    }
    instruments::copy_to_booking(tx, from, to).await?;
    Ok(true)
}

/// Returns the booking that this booking's money pays for.
pub(crate) async fn moved_to(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Option<Uuid>> {
    let sql = "SELECT moved_to FROM payments WHERE booking_id = $1";
    let found: Option<Option<Uuid>> = sqlx::query_scalar(sql).bind(booking).fetch_optional(tx).await?;
    Ok(found.flatten())
}

/// Returns the gateways that the booking left and that may still have its money.
pub(crate) async fn unsettled_gateways(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(
        "SELECT from_gateway FROM payment_switches WHERE booking_id = $1 AND settled_as IS NULL ORDER BY from_gateway",
    )
    .bind(booking)
    .fetch_all(tx)
    .await
}

pub(crate) async fn settle_left(
    tx: &mut PgConnection,
    booking: Uuid,
    gateway: &str,
    settled_as: &str,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE payment_switches SET settled_as = $3, settled_at = $4
               WHERE booking_id = $1 AND from_gateway = $2 AND settled_as IS NULL";
    sqlx::query(sql).bind_all((booking, gateway, settled_as, to_utc(now))).execute(tx).await.map(drop)
}

/// Reopens a settlement: a gateway that the booking left has its money after all, which needs work.
pub(crate) async fn reopen_settlement(tx: &mut PgConnection, booking: Uuid, gateway: &str) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE payment_switches SET settled_as = NULL, settled_at = NULL WHERE booking_id = $1 AND from_gateway = $2",
    )
    .bind_all((booking, gateway))
    .execute(tx)
    .await?;
    Ok(())
}

/// Schedules a refund at a gateway that the booking left: it reports that it has money after all.
pub(crate) async fn reopen_left(
    tx: &mut PgConnection,
    booking: Uuid,
    gateway: &str,
    now: Timestamp,
) -> sqlx::Result<()> {
    reopen_settlement(tx, booking, gateway).await?;
    outbox::enqueue(tx, booking, &[Effect::VoidLeft], now).await
}

/// The relation of a gateway to a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatewayRole {
    /// The booking is charged there.
    Current,
    /// The booking left it.
    Left,
    /// The booking never was there.
    Unrelated,
}

pub(crate) async fn gateway_role(tx: &mut PgConnection, booking: Uuid, gateway: &str) -> sqlx::Result<GatewayRole> {
    let sql = "SELECT EXISTS (SELECT 1 FROM payments WHERE booking_id = $1 AND gateway = $2),
                      EXISTS (SELECT 1 FROM payment_switches WHERE booking_id = $1 AND from_gateway = $2)";
    let (current, was_left): (bool, bool) = sqlx::query_as(sql).bind_all((booking, gateway)).fetch_one(tx).await?;
    Ok(match (current, was_left) {
        (true, _) => GatewayRole::Current,
        (false, true) => GatewayRole::Left,
        (false, false) => GatewayRole::Unrelated,
    })
}

/// Returns true if that event of a known payment was noted before.
pub(crate) async fn is_noted(tx: &mut PgConnection, gateway: &str, event_id: &str) -> sqlx::Result<bool> {
    let sql = "SELECT outcome FROM webhook_events WHERE gateway = $1 AND event_id = $2";
    let outcome: Option<String> = sqlx::query_scalar(sql).bind_all((gateway, event_id)).fetch_optional(tx).await?;
    Ok(outcome.is_some_and(|outcome| outcome != PaymentEventOutcome::Unknown.as_str()))
}

/// Notes a gateway's event and its outcome; `false` when it was noted before. An event of an unknown
/// payment may be repeated and apply then.
pub(crate) async fn note_event(
    tx: &mut PgConnection,
    gateway: &str,
    event_id: &str,
    outcome: PaymentEventOutcome,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let noted = sqlx::query(
        "INSERT INTO webhook_events AS known (gateway, event_id, received_at, outcome) VALUES ($1, $2, $3, $4)
         ON CONFLICT (gateway, event_id) DO UPDATE SET outcome = EXCLUDED.outcome, received_at = EXCLUDED.received_at
         WHERE known.outcome = $5",
    )
    .bind_all((gateway, event_id, to_utc(now), outcome.as_str(), PaymentEventOutcome::Unknown.as_str()))
    .execute(tx)
    .await?;
    Ok(noted.rows_affected() == 1)
}

/// Deletes at most `limit` events that were received before this time; returns the number.
pub(crate) async fn delete_events(pg: &PgPool, before: Timestamp, limit: i64) -> sqlx::Result<u64> {
    let sql = "DELETE FROM webhook_events
               WHERE (gateway, event_id) IN (SELECT gateway, event_id FROM webhook_events WHERE received_at < $1
                                             LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let deleted = sqlx::query(sql).bind_all((to_utc(before), limit)).execute(pg).await?;
    Ok(deleted.rows_affected())
}

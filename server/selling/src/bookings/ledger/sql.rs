//! Queries of `ledger_comparisons`, and of our side of a comparison.

use std::collections::HashMap;

use chrono::NaiveDate;
use domain::money::{Currency, Money};
use domain::time::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use super::compare::{Book, GatewayMoneyState};
use platform::clock::to_utc;
use platform::database::BindAll;

/// Bounds the recursive query for bookings that the money moved to.
const MAX_MOVES: i32 = 1_000;

/// The lease of a comparison: gateway, day, fencing token.
pub(super) type Lease<'a> = (&'a str, NaiveDate, i32);

pub(super) async fn last_planned(pg: &PgPool, gateway: &str) -> sqlx::Result<Option<NaiveDate>> {
    sqlx::query_scalar("SELECT max(day) FROM ledger_comparisons WHERE gateway = $1").bind(gateway).fetch_one(pg).await
}

/// Plans a day; a repeat changes nothing.
pub(super) async fn plan(pg: &PgPool, gateway: &str, day: NaiveDate, now: Timestamp) -> sqlx::Result<()> {
    let sql = "INSERT INTO ledger_comparisons (gateway, day, planned_at, leased_until) VALUES ($1, $2, $3, $3)
               ON CONFLICT (gateway, day) DO NOTHING";
    sqlx::query(sql).bind_all((gateway, day, to_utc(now))).execute(pg).await.map(drop)
}

/// Leases the earliest day of a gateway that is neither compared nor leased; returns it with the fencing token.
pub(super) async fn take(
    pg: &PgPool,
    gateway: &str,
    now: Timestamp,
    leased_until: Timestamp,
) -> sqlx::Result<Option<(NaiveDate, i32)>> {
    let sql = "UPDATE ledger_comparisons comparison SET leased_until = $3, taken = comparison.taken + 1
               FROM (SELECT gateway, day FROM ledger_comparisons
                     WHERE gateway = $1 AND finished_at IS NULL AND leased_until <= $2
                     ORDER BY day LIMIT 1 FOR UPDATE SKIP LOCKED) due
               WHERE comparison.gateway = due.gateway AND comparison.day = due.day
               RETURNING comparison.day, comparison.taken";
    sqlx::query_as(sql).bind_all((gateway, to_utc(now), to_utc(leased_until))).fetch_optional(pg).await
}

/// Renews a lease, or ends it with a past time; `false` when another replica has leased the day since.
pub(super) async fn renew(
    pg: &PgPool,
    (gateway, day, fence): Lease<'_>,
    leased_until: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE ledger_comparisons SET leased_until = $4
               WHERE gateway = $1 AND day = $2 AND taken = $3 AND finished_at IS NULL";
    let renewed = sqlx::query(sql).bind_all((gateway, day, fence, to_utc(leased_until))).execute(pg).await?;
    Ok(renewed.rows_affected() == 1)
}

pub(super) async fn finish(
    pg: &PgPool,
    (gateway, day, fence): Lease<'_>,
    payments: i64,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE ledger_comparisons SET finished_at = $5, payments = $4
               WHERE gateway = $1 AND day = $2 AND taken = $3 AND finished_at IS NULL";
    sqlx::query(sql).bind_all((gateway, day, fence, payments, to_utc(now))).execute(pg).await.map(drop)
}

#[derive(platform::FromRow)]
struct BookRow {
    id: Uuid,
    is_open: bool,
    payment: Option<String>,
    charged_minor: Option<i64>,
    currency: String,
    has_left: bool,
    is_leaving: bool,
    is_checked: bool,
    by_person: bool,
    requested_minor: i64,
    settled_minor: i64,
}

impl BookRow {
    fn book(self) -> sqlx::Result<(Uuid, Book)> {
        let unreadable = || sqlx::Error::Decode(format!("bookings.currency is {:?}", self.currency).into());
        let currency = Currency::parse(&self.currency).ok_or_else(unreadable)?;
        let standing = match self.payment.as_deref() {
            Some("succeeded") => GatewayMoneyState::Paid,
            Some(_) => GatewayMoneyState::Unpaid,
            None if self.is_leaving => GatewayMoneyState::Leaving,
            None if self.has_left => GatewayMoneyState::Left,
            None => GatewayMoneyState::NeverUsed,
        };
        let book = Book {
            standing,
            is_open: self.is_open,
            is_checked: self.is_checked,
            by_person: self.by_person,
            charged: Money::new(self.charged_minor.unwrap_or(0), currency),
            requested_minor: self.requested_minor,
            settled_minor: self.settled_minor,
        };
        Ok((self.id, book))
    }
}

/// Returns our books of these bookings, as seen from one gateway. Refunds of bookings that the money moved to count for
/// the first booking: the gateway knows the money under that one.
pub(super) async fn books(pg: &PgPool, gateway: &str, bookings: &[Uuid]) -> sqlx::Result<HashMap<Uuid, Book>> {
    let sql = "WITH RECURSIVE owed (first, booking_id, steps) AS (
             SELECT DISTINCT id, id, 0 FROM unnest($2::uuid[]) AS asked (id)
             UNION ALL
             SELECT owed.first, payment.moved_to, owed.steps + 1
             FROM owed JOIN payments payment ON payment.booking_id = owed.booking_id
             WHERE payment.moved_to IS NOT NULL AND owed.steps < $3),
         back (first, requested_minor, settled_minor, by_person) AS (
             SELECT owed.first, coalesce(sum(refund.amount_minor), 0)::bigint,
                    coalesce(sum(refund.amount_minor) FILTER (WHERE refund.state = 'settled'), 0)::bigint,
                    coalesce(bool_or(
                        EXISTS (SELECT FROM refund_failures failure WHERE failure.booking_id = owed.booking_id)
                        OR EXISTS (SELECT FROM booking_events event
                                   WHERE event.booking_id = owed.booking_id AND event.event = 'effect_settled')), false)
             FROM owed LEFT JOIN refunds refund ON refund.booking_id = owed.booking_id GROUP BY owed.first)
         SELECT booking.id, booking.is_open, payment.state AS payment,
                coalesce(payment.charged_minor, payment.amount_minor) AS charged_minor,
                coalesce(payment.currency, booking.currency)::text AS currency,
                switch.booking_id IS NOT NULL AS has_left,
                switch.booking_id IS NOT NULL AND switch.settled_as IS NULL AS is_leaving,
                waiting.booking_id IS NOT NULL AS is_checked,
                back.by_person, back.requested_minor, back.settled_minor
         FROM bookings booking
         JOIN back ON back.first = booking.id
         LEFT JOIN payments payment ON payment.booking_id = booking.id AND payment.gateway = $1
         LEFT JOIN payment_switches switch ON switch.booking_id = booking.id AND switch.from_gateway = $1
         LEFT JOIN unknown_voids waiting ON waiting.booking_id = booking.id AND waiting.gateway = $1";
    let rows: Vec<BookRow> = sqlx::query_as(sql).bind_all((gateway, bookings, MAX_MOVES)).fetch_all(pg).await?;
    rows.into_iter().map(BookRow::book).collect()
}

/// Returns payments that succeeded at this gateway and that it knows under the same booking, with its own ids: of
/// bookings between these ids, in their order. A booking that cost nothing is unknown to the gateway.
pub(super) async fn paid(
    pg: &PgPool,
    gateway: &str,
    (after, before): (Uuid, Uuid),
    limit: i64,
) -> sqlx::Result<Vec<(Uuid, Option<String>)>> {
    let sql = "SELECT payment.booking_id, payment.gateway_ref FROM payments payment
               WHERE payment.booking_id > $2 AND payment.booking_id < $3
                 AND payment.gateway = $1 AND payment.state = 'succeeded' AND payment.amount_minor > 0
                 AND NOT EXISTS (SELECT FROM payments earlier WHERE earlier.moved_to = payment.booking_id)
               ORDER BY payment.booking_id LIMIT $4";
    sqlx::query_as(sql).bind_all((gateway, after, before, limit)).fetch_all(pg).await
}

//! Differences between a ledger and our payments: a person has each compared again, or settles it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::money::{Currency, Money};
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::compare::{Difference, DifferenceKind};
use super::{CompareError, amount_difference};
use crate::bookings::effects;
use crate::bookings::money::payment_rows::{self, GatewayRole};
use crate::bookings::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use payments::{PaymentIds, PaymentStatus};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Lease of a repeated comparison, milliseconds.
const LEASE_MS: i64 = MINUTE_MS;
/// Differences compared again in one round.
const MAX_PER_ROUND: i64 = 20;

/// A difference that waits for a person.
#[derive(Clone, Debug)]
pub struct OpenDifference {
    /// Its number, from the sequence of parked effects.
    pub id: i64,
    /// The gateway it is with.
    pub gateway: String,
    /// The booking, as in the gateway's ledger.
    pub booking: Uuid,
    /// The booking's reference; `None` where it is unknown here.
    pub reference: Option<String>,
    /// The amount of the difference.
    pub amount: Money,
    /// The difference as an English sentence.
    pub why: String,
    /// The time when it was found.
    pub since: Timestamp,
}

#[derive(platform::FromRow)]
struct DifferenceRow {
    id: i64,
    gateway: String,
    payment_ref: String,
    booking_id: Uuid,
    reference: Option<String>,
    kind: String,
    here_minor: i64,
    there_minor: i64,
    currency: String,
    found_at: DateTime<Utc>,
}

impl DifferenceRow {
    fn open(self) -> sqlx::Result<OpenDifference> {
        let unreadable = || sqlx::Error::Decode(format!("ledger_differences({}) cannot be", self.id).into());
        let currency = Currency::parse(&self.currency).ok_or_else(unreadable)?;
        let kind = self.kind.parse::<DifferenceKind>().map_err(|_| unreadable())?;
        let (here, there) = (Money::new(self.here_minor, currency), Money::new(self.there_minor, currency));
        let Self { gateway, payment_ref, .. } = &self;
        let why = match kind {
            DifferenceKind::UnknownBooking => format!("{gateway} has {there} for a booking that is not here."),
            DifferenceKind::ChargedUnpaid => format!("{gateway} has {there} for this booking, which is not paid here."),
            DifferenceKind::ChargedDiffers => format!("{gateway} took {there}; here it is {here}."),
            DifferenceKind::RefundedThere => format!("{gateway} sent {there} back; here it is {here}."),
            DifferenceKind::RefundedHere => format!("Here {here} counts as sent back; {gateway} sent {there}."),
            DifferenceKind::MissingThere => format!("{here} is paid here, and {gateway} knows of no such payment."),
        };
        Ok(OpenDifference {
            why: format!("{why} Payment {payment_ref}."),
            id: self.id,
            booking: self.booking_id,
            reference: self.reference,
            amount: amount_difference(self.here_minor, self.there_minor, currency),
            since: from_utc(self.found_at),
            gateway: self.gateway,
        })
    }
}

/// Records a difference; `false` when it was recorded before.
pub(super) async fn record(
    pg: &PgPool,
    gateway: &str,
    (payment, booking): (&str, Uuid),
    found: &Difference,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let recorded = sqlx::query(
        "INSERT INTO ledger_differences (gateway, payment_ref, booking_id, kind, here_minor, there_minor, currency, found_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (gateway, payment_ref, kind, here_minor, there_minor) DO NOTHING",
    )
    .bind_all((gateway, payment, booking, found.kind.as_str()))
    .bind_all((found.here.minor, found.there.minor, found.there.currency.code(), to_utc(now)))
    .execute(pg)
    .await?;
    Ok(recorded.rows_affected() == 1)
}

/// Returns open differences, oldest first, up to [`outbox::MAX_LISTED`]; only of bookings of this theatre if one is
/// given.
///
/// # Errors
/// When the database fails, or has a corrupt row.
pub async fn list_open_differences(pg: &PgPool, theatre: Option<&str>) -> sqlx::Result<Vec<OpenDifference>> {
    let sql = "SELECT found.*, booking.reference FROM ledger_differences found
         LEFT JOIN bookings booking ON booking.id = found.booking_id
         LEFT JOIN shows show ON show.id = booking.show_id
         LEFT JOIN screens screen ON screen.id = show.screen_id
         WHERE found.settled_at IS NULL AND found.check_at IS NULL AND ($1::text IS NULL OR screen.theatre_id = $1)
         ORDER BY found.id LIMIT $2";
    let rows: Vec<DifferenceRow> = sqlx::query_as(sql).bind_all((theatre, outbox::MAX_LISTED)).fetch_all(pg).await?;
    rows.into_iter().map(DifferenceRow::open).collect()
}

/// Returns the number of all open differences.
///
/// # Errors
/// When the database fails.
pub async fn count_open_differences(pg: &PgPool) -> sqlx::Result<i64> {
    let sql = "SELECT count(*) FROM ledger_differences WHERE settled_at IS NULL AND check_at IS NULL";
    sqlx::query_scalar(sql).fetch_one(pg).await
}

/// Returns the number of open differences per theatre; theatres without any are left out.
///
/// # Errors
/// When the database fails.
pub async fn open_counts(pg: &PgPool, theatres: &[String]) -> sqlx::Result<HashMap<String, i64>> {
    let sql = "SELECT screen.theatre_id, count(*) FROM ledger_differences found
               JOIN bookings booking ON booking.id = found.booking_id
               JOIN shows show ON show.id = booking.show_id
               JOIN screens screen ON screen.id = show.screen_id
               WHERE found.settled_at IS NULL AND found.check_at IS NULL AND screen.theatre_id = ANY($1)
               GROUP BY screen.theatre_id";
    let counts: Vec<(String, i64)> = sqlx::query_as(sql).bind(theatres).fetch_all(pg).await?;
    Ok(counts.into_iter().collect())
}

/// An open difference with its locked booking.
pub(crate) struct LockedDifference {
    /// The booking, locked; `None` where it is unknown here.
    pub(crate) booking: Option<BookingRow>,
}

/// Finds the difference of this number, limited to shows of this theatre if one is given, and locks its booking.
pub(crate) async fn find(
    tx: &mut PgConnection,
    id: i64,
    theatre: Option<&str>,
) -> sqlx::Result<Option<LockedDifference>> {
    let sql = "SELECT found.booking_id FROM ledger_differences found
               WHERE found.id = $1 AND found.settled_at IS NULL AND found.check_at IS NULL
                 AND ($2::text IS NULL OR EXISTS (SELECT FROM bookings booking
                      JOIN shows show ON show.id = booking.show_id
                      JOIN screens screen ON screen.id = show.screen_id
                      WHERE booking.id = found.booking_id AND screen.theatre_id = $2))";
    let booking: Option<Uuid> = sqlx::query_scalar(sql).bind_all((id, theatre)).fetch_optional(&mut *tx).await?;
    let Some(booking) = booking else { return Ok(None) };
    Ok(Some(LockedDifference { booking: sql::lock(tx, booking).await? }))
}

/// Schedules a repeated comparison; `false` when another person was faster.
pub(crate) async fn compare_again(tx: &mut PgConnection, id: i64, now: Timestamp) -> sqlx::Result<bool> {
    let sql = "UPDATE ledger_differences SET check_at = $2 WHERE id = $1 AND settled_at IS NULL AND check_at IS NULL";
    let put_back = sqlx::query(sql).bind_all((id, to_utc(now))).execute(tx).await?;
    Ok(put_back.rows_affected() == 1)
}

/// Closes a difference that a person has settled; `false` when another person was faster.
pub(crate) async fn settle(tx: &mut PgConnection, id: i64, now: Timestamp) -> sqlx::Result<bool> {
    let sql = "UPDATE ledger_differences SET settled_at = $2 WHERE id = $1 AND settled_at IS NULL AND check_at IS NULL";
    let settled = sqlx::query(sql).bind_all((id, to_utc(now))).execute(tx).await?;
    Ok(settled.rows_affected() == 1)
}

#[derive(platform::FromRow)]
struct Due {
    id: i64,
    gateway: String,
    payment_ref: String,
    booking_id: Uuid,
}

/// Compares the differences whose repeated comparison is due.
pub(super) async fn compare_due(state: &SellingState) -> sqlx::Result<()> {
    let now = state.clock.now();
    let due: Vec<Due> = sqlx::query_as(
        "UPDATE ledger_differences found SET check_at = $2
         FROM (SELECT id FROM ledger_differences WHERE settled_at IS NULL AND check_at <= $1
               ORDER BY check_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
         WHERE found.id = due.id RETURNING found.id, found.gateway, found.payment_ref, found.booking_id",
    )
    .bind_all((to_utc(now), to_utc(now.plus_ms(LEASE_MS)), MAX_PER_ROUND))
    .fetch_all(&state.pg)
    .await?;
    for due in due {
        if let Err(cause) = compare(state, &due).await {
            let booking = due.booking_id;
            tracing::warn!(%booking, gateway = due.gateway, %cause, "compare a difference of {booking} failed, retrying");
        }
    }
    Ok(())
}

/// Compares a difference again. Money that was charged is treated as late money; a remaining difference is open again.
async fn compare(state: &SellingState, due: &Due) -> Result<(), CompareError> {
    let booking = due.booking_id;
    let Some(gateway) = state.gateways.find(&due.gateway) else {
        tracing::warn!(%booking, gateway = due.gateway, "PAYMENT_GATEWAYS does not name {} any more: a difference of {booking} stays open", due.gateway);
        return Ok(end_check(state, due.id, None).await?);
    };
    let gateway_ref = Some(due.payment_ref.clone()).filter(|id| *id != booking.to_string());
    let known = PaymentIds { booking, gateway_ref };
    let found = super::find_current_difference(state, gateway, &known).await?;
    if found.is_some_and(|found| found.kind == DifferenceKind::ChargedUnpaid) {
        record_unpaid_charge(state, &due.gateway, &known).await?;
    }
    let found = super::find_current_difference(state, gateway, &known).await?;
    let settled_at = found.is_none().then(|| state.clock.now());
    Ok(end_check(state, due.id, settled_at).await?)
}

/// Ends a repeated comparison: the difference is settled, or else open again.
async fn end_check(state: &SellingState, id: i64, settled_at: Option<Timestamp>) -> sqlx::Result<()> {
    let sql = "UPDATE ledger_differences SET check_at = NULL, settled_at = $2 WHERE id = $1 AND settled_at IS NULL";
    sqlx::query(sql).bind_all((id, settled_at.map(to_utc))).execute(&state.pg).await.map(drop)
}

/// Records money that a gateway has of a booking that is not paid here: it pays for a new booking, or is refunded.
async fn record_unpaid_charge(state: &SellingState, gateway: &str, known: &PaymentIds) -> Result<(), CompareError> {
    let booking = known.booking;
    let mut connection = state.pg.acquire().await?;
    let role = payment_rows::gateway_role(&mut connection, booking, gateway).await?;
    drop(connection);
    match role {
        GatewayRole::Current => {
            let Some(guarded) = state.gateways.find(gateway) else { return Ok(()) };
            if let Some(payment) = guarded.status(known).await?
                && matches!(payment.status, PaymentStatus::Succeeded { .. })
            {
                effects::record_status(state, booking, &payment.status, None, "staff").await?;
            }
        }
        GatewayRole::Left => {
            let mut tx = state.pg.begin().await?;
            sql::lock(&mut tx, booking).await?;
            payment_rows::reopen_left(&mut tx, booking, gateway, state.clock.now()).await?;
            tx.commit().await?;
            outbox::wake(state);
        }
        GatewayRole::Unrelated => {}
    }
    Ok(())
}

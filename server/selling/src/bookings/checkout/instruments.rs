//! The limit of seats per payment instrument, in shows that have one.
//!
//! The gateway identifies the instrument concurrently with the other checks before a charge, and only where the show
//! has a limit; other sales neither ask nor write anything. The table stores a digest of the gateway's name of the
//! card, made with a key that is not in the database.
//!
//! **Concurrency.** A submission with an instrument is committed alone, outside batches ([`record_or_refuse`]): it
//! takes an advisory lock on its show and card until its transaction ends, then counts, then writes its own row. So of
//! two bookings with one card the second counts the first, on any replicas. Different cards, or shows, do not wait for
//! each other, and every wait is bounded ([`SET_LOCK_TIMEOUT`]). The lock is taken after the booking's row lock and
//! before any claim. So it causes no deadlock: a transaction that waits for it has locked only its own booking, and
//! the holder of the lock never waits for that row.
//!
//! **Payment on the gateway's page.** Every browser can pay there, and the card is known only with the outcome. So a
//! payment that succeeded in a show with a limit is looked up at its gateway ([`InstrumentDigest::of_payment`]) before
//! its booking is settled, and counted under the same lock ([`try_record`]): a payment above the limit is not sold but
//! refunded at once, and the notice gives the reason. A gateway that does not answer is called again, when it repeats
//! its webhook or by the reconciler; the booking stays pending meanwhile.
//!
//! **Unknown cards.** If the gateway does not answer, nothing is charged: `gateway_unavailable`. The booking passes
//! where the gateway answers that it has no name for the card of a payment or token. The other limits still apply,
//! and a show that needs more requires codes as well (`email_codes`).

use sqlx::PgConnection;
use uuid::Uuid;

use crate::SellingState;
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use payments::{GatewayError, PaymentIds};
use platform::database::BindAll;

/// Namespace of the advisory locks of instruments: "card" in ASCII.
const LOCK_SPACE: i64 = 0x6361_7264;
/// Bounds the wait of a submission for others with its card, and for any lock after that one. After it the submission
/// is refused as if the database were unavailable, and nothing is charged.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

/// A card, or another payment instrument, as stored: a keyed digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstrumentDigest(String);

impl InstrumentDigest {
    /// Returns the instrument of a token, where the show has a limit and the gateway can identify it.
    ///
    /// # Errors
    /// 503 when the gateway gives no answer.
    pub(crate) async fn of_token(
        state: &SellingState,
        show: &Show,
        (gateway, token): (&str, Option<&str>),
    ) -> ApiResult<Option<Self>> {
        if show.per_instrument.is_none() {
            return Ok(None);
        }
        let token = state.gateways.token_for(gateway, token.map(str::to_owned));
        let (Some(token), Some(asked)) = (token, state.gateways.find(gateway)) else { return Ok(None) };
        match asked.fingerprint(&token).await {
            Ok(Some(name)) => Ok(Some(Self::of_name(state, gateway, &name))),
            Ok(None) => {
                tracing::info!(gateway, show = %show.id, "the gateway cannot identify the instrument; the limit is not applied");
                Ok(None)
            }
            Err(cause @ GatewayError::Refused { .. }) => {
                tracing::warn!(gateway, show = %show.id, %cause, "the gateway refused to identify the instrument; the limit is not applied");
                Ok(None)
            }
            Err(cause) => {
                tracing::warn!(gateway, %cause, "identify the instrument failed");
                let words = "Payments cannot be taken at this moment. Your seats stay yours until the hold ends; nothing \
                             was charged.";
                Err(Problem::new(Code::GatewayUnavailable, words))
            }
        }
    }

    /// Asks the gateway for the instrument of a payment, where the show has a limit and it was not known before the
    /// charge. Must be called outside any transaction, because it calls the gateway.
    ///
    /// # Errors
    /// 503 when the gateway or the database gives no answer.
    pub(crate) async fn of_payment(state: &SellingState, show: &Show, booking: Uuid) -> ApiResult<Option<Self>> {
        if show.per_instrument.is_none() {
            return Ok(None);
        }
        let sql = "SELECT gateway, gateway_ref, EXISTS (SELECT 1 FROM payment_instruments WHERE booking_id = $1)
                   FROM payments WHERE booking_id = $1 AND amount_minor > 0";
        let paid: Option<(String, Option<String>, bool)> =
            sqlx::query_as(sql).bind(booking).fetch_optional(&state.pg).await?;
        let Some((gateway, gateway_ref, false)) = paid else { return Ok(None) };
        let Some(asked) = state.gateways.find(&gateway) else { return Ok(None) };
        match asked.status(&PaymentIds { booking, gateway_ref }).await {
            Ok(known) => {
                let name = known.and_then(|payment| payment.instrument);
                if name.is_none() {
                    tracing::info!(gateway, %booking, "the gateway cannot identify the instrument; the limit does not count it");
                }
                Ok(name.map(|name| Self::of_name(state, &gateway, &name)))
            }
            Err(cause @ GatewayError::Refused { .. }) => {
                tracing::warn!(gateway, %booking, %cause, "the gateway refused to identify the instrument; the limit is not applied");
                Ok(None)
            }
            Err(cause) => {
                tracing::warn!(gateway, %booking, %cause, "identify the instrument failed; it is retried");
                Err(Problem::new(Code::GatewayUnavailable, "Which card paid is not known yet."))
            }
        }
    }

    /// Digests a gateway's name of a card. Names of different gateways are unrelated.
    fn of_name(state: &SellingState, gateway: &str, name: &str) -> Self {
        Self(state.accounts.derived_secret(&format!("payment instrument\0{gateway}\0{name}")))
    }
}

/// Records the instrument of a booking that is being settled; `false`, with nothing written, when it has paid for too
/// many seats of the show. Runs in the transaction of the sale, after the booking was locked.
///
/// # Errors
/// When the database fails, or other transactions with this card take too long.
pub(crate) async fn try_record(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    instrument: &InstrumentDigest,
) -> sqlx::Result<bool> {
    Ok(record_within_limit(tx, show, row, instrument).await?.is_ok())
}

async fn insert(tx: &mut PgConnection, row: &BookingRow, instrument: &InstrumentDigest) -> sqlx::Result<()> {
    let sql = "INSERT INTO payment_instruments (booking_id, show_id, instrument) VALUES ($1, $2, $3)";
    sqlx::query(sql).bind_all((row.id, row.show_id, &instrument.0)).execute(tx).await.map(drop)
}

/// Records the instrument of a booking that is being submitted, unless it has paid for too many seats of its show.
/// Runs in the submission's transaction, after the booking was locked.
///
/// # Errors
/// 429 `instrument_limit`, with nothing written; 503 when other transactions with this card take too long.
pub(crate) async fn record_or_refuse(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    instrument: &InstrumentDigest,
) -> ApiResult<()> {
    record_within_limit(tx, show, row, instrument).await?.map_err(|(most, elsewhere)| {
        let words = format!(
            "One card may pay for {most} seats and places in this show, and this one has paid for {elsewhere}. Nothing \
             was charged and your seats are still held: take fewer of them, or pay with another card."
        );
        Problem::new(Code::InstrumentLimit, words)
    })
}

/// Records the instrument of a booking under the lock of its card, or returns the limit and the number of seats
/// elsewhere, with nothing written.
async fn record_within_limit(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    instrument: &InstrumentDigest,
) -> sqlx::Result<Result<(), (usize, usize)>> {
    // The limit was removed since the gateway was asked.
    let Some(most) = show.per_instrument else { return Ok(Ok(())) };
    let counted = count(tx, most, row, instrument).await?;
    if counted.is_ok() {
        insert(tx, row, instrument).await?;
    }
    Ok(counted)
}

/// Counts a booking that late money pays for, whose instrument was known before the charge and is recorded with it;
/// `false` when it has paid for too many seats of the show.
///
/// # Errors
/// When the database fails, or other transactions with this card take too long.
pub(in crate::bookings) async fn allows_late_money(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
) -> sqlx::Result<bool> {
    let Some(most) = show.per_instrument else { return Ok(true) };
    let sql = "SELECT instrument FROM payment_instruments WHERE booking_id = $1";
    match sqlx::query_scalar(sql).bind(row.id).fetch_optional(&mut *tx).await? {
        Some(instrument) => Ok(count(tx, most, row, &InstrumentDigest(instrument)).await?.is_ok()),
        None => Ok(true),
    }
}

/// Takes the lock of a card and counts its seats; the error has the limit and the number of seats elsewhere.
async fn count(
    tx: &mut PgConnection,
    most: usize,
    row: &BookingRow,
    instrument: &InstrumentDigest,
) -> sqlx::Result<Result<(), (usize, usize)>> {
    lock(tx, LOCK_SPACE, format!("{}{}", row.show_id, instrument.0)).await?;
    // A statement after the lock, so that its snapshot includes earlier holders of the lock.
    let elsewhere = usize::try_from(count_seats_elsewhere(tx, row, instrument).await?).unwrap_or(usize::MAX);
    let is_within = elsewhere.saturating_add(row.seats_and_places()) <= most;
    Ok(if is_within { Ok(()) } else { Err((most, elsewhere)) })
}

/// Takes the advisory lock of this name and namespace until the transaction ends. Shared with the limit per
/// person (`person_limit`).
pub(crate) async fn lock(tx: &mut PgConnection, space: i64, name: String) -> sqlx::Result<()> {
    sqlx::query(SET_LOCK_TIMEOUT).execute(&mut *tx).await?;
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))").bind(name).bind(space).execute(tx).await?;
    Ok(())
}

/// Returns the seats and places of the show in other bookings that this instrument has paid for, or is paying for.
/// Expired payments count until the reconciler has ended them, since the money may still arrive.
async fn count_seats_elsewhere(
    tx: &mut PgConnection,
    row: &BookingRow,
    instrument: &InstrumentDigest,
) -> sqlx::Result<i64> {
    let sql = "SELECT coalesce(sum((SELECT count(*) FROM booking_seats WHERE booking_id = other.id)
                                   + (SELECT coalesce(sum(quantity), 0) FROM booking_places
                                      WHERE booking_id = other.id)), 0)::bigint
               FROM payment_instruments paid JOIN bookings other ON other.id = paid.booking_id
               WHERE paid.show_id = $1 AND paid.instrument = $2 AND other.id <> $3
                 AND other.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED')";
    sqlx::query_scalar(sql).bind_all((row.show_id, &instrument.0, row.id)).fetch_one(tx).await
}

/// Copies the instrument to the booking that the money moves to, where it is of the same show.
pub(crate) async fn copy_to_booking(tx: &mut PgConnection, from: Uuid, to: Uuid) -> sqlx::Result<()> {
    let sql = "INSERT INTO payment_instruments (booking_id, show_id, instrument)
               SELECT fresh.id, fresh.show_id, paid.instrument
               FROM payment_instruments paid JOIN bookings fresh ON fresh.id = $2 AND fresh.show_id = paid.show_id
               WHERE paid.booking_id = $1";
    sqlx::query(sql).bind_all((from, to)).execute(tx).await.map(drop)
}

/// Deletes the instrument of a booking that switches gateways: its token is invalid there, and the new instrument is
/// unknown.
pub(crate) async fn delete(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM payment_instruments WHERE booking_id = $1").bind(booking).execute(tx).await.map(drop)
}

//! Which card pays for what, in shows where one card may pay for so many seats only.
//!
//! Asked of the gateway beside the other checks before a charge, and only where the show has such a cap; every other
//! sale neither asks nor writes anything. Kept is a digest of the gateway's own name of the card, made with a key that
//! is not in the database.
//!
//! **Two at once.** A submission with an instrument goes by itself, past the batches ([`claim`]): it takes a lock of its
//! show and card that lasts until its transaction ends, then counts, then writes itself down. So of two bookings with
//! one card the second counts the first, on whichever replicas they are. Two cards, or two shows, do not wait for each
//! other, and no wait is long ([`BOUND_OF_LOCKS`]). The lock is taken after the booking's row and before any claim. So
//! it causes no deadlock: a transaction that waits for it has locked nothing but its own booking, and the holder of
//! the lock never waits for that.
//!
//! **On the gateway's page.** Every browser pays there, and which card it was is known with the outcome. So a payment that
//! succeeded in a show with a cap is looked up at its gateway ([`PaidWith::of_payment`]) before its booking is settled, and
//! counted under the same lock ([`settle`]): one above the cap is not sold, its money goes back at once, and the notice
//! says why. A gateway that does not answer is asked again, by its webhook's repeat or the reconciler; the booking stays
//! pending meanwhile.
//!
//! **When the card is unknown.** A gateway that does not answer is not asked for money either: `gateway_unavailable`,
//! and nothing is charged. The booking passes where the gateway answers that it has no name for what paid or is behind a
//! token. The other caps still hold, and a show that wants more asks for codes as well (`email_codes`).

use sqlx::PgConnection;
use uuid::Uuid;

use crate::SellingState;
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use http::{Code, Problem};
use payments::{GatewayError, Known};

/// Keeps the advisory locks of instruments apart from others: "card" in ASCII.
const LOCK_SPACE: i64 = 0x6361_7264;
/// A submission waits at most this long for others with its card, and for any other lock after that one; then it is
/// refused as if the database were unavailable, and nothing is charged.
const BOUND_OF_LOCKS: &str = "SET LOCAL lock_timeout = '2s'";

/// A card, or whatever else pays, as it is kept: a keyed digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bookings) struct PaidWith(String);

impl PaidWith {
    /// What is behind a token, where the show has a cap and its gateway can tell.
    ///
    /// # Errors
    /// 503 when the gateway gives no answer.
    pub(in crate::bookings) async fn of_token(
        state: &SellingState,
        show: &Show,
        (gateway, token): (&str, Option<&str>),
    ) -> Result<Option<Self>, Problem> {
        if show.per_instrument.is_none() {
            return Ok(None);
        }
        let token = state.gateways.token_for(gateway, token.map(str::to_owned));
        let (Some(token), Some(asked)) = (token, state.gateways.named(gateway)) else { return Ok(None) };
        match asked.fingerprint(&token).await {
            Ok(Some(name)) => Ok(Some(Self::of_name(state, gateway, &name))),
            Ok(None) => {
                tracing::info!(gateway, show = %show.id, "the gateway cannot tell whose instrument pays; it passes");
                Ok(None)
            }
            Err(cause @ GatewayError::Refused { .. }) => {
                tracing::warn!(gateway, show = %show.id, %cause, "the gateway refuses to tell whose instrument pays: no cap holds");
                Ok(None)
            }
            Err(cause) => {
                tracing::warn!(gateway, %cause, "the gateway did not say whose instrument pays");
                let words = "Payments cannot be taken at this moment. Your seats stay yours until the hold ends; nothing \
                             was charged.";
                Err(Problem::new(Code::GatewayUnavailable, words))
            }
        }
    }

    /// Asks the gateway what has paid for a booking, where the show has a cap and that was not known before the charge. Outside any transaction: the gateway is asked.
    ///
    /// # Errors
    /// 503 when the gateway or the database gives no answer.
    pub(in crate::bookings) async fn of_payment(
        state: &SellingState,
        show: &Show,
        booking: Uuid,
    ) -> Result<Option<Self>, Problem> {
        if show.per_instrument.is_none() {
            return Ok(None);
        }
        let paid: Option<(String, Option<String>, bool)> = sqlx::query_as(
            "SELECT gateway, gateway_ref, EXISTS (SELECT 1 FROM payment_instruments WHERE booking_id = $1)
             FROM payments WHERE booking_id = $1",
        )
        .bind(booking)
        .fetch_optional(&state.pg)
        .await?;
        let Some((gateway, gateway_ref, false)) = paid else { return Ok(None) };
        let Some(asked) = state.gateways.named(&gateway) else { return Ok(None) };
        match asked.status(&Known { booking, gateway_ref }).await {
            Ok(known) => {
                let name = known.and_then(|payment| payment.instrument);
                if name.is_none() {
                    tracing::info!(gateway, %booking, "the gateway has no name for what paid; the cap does not count it");
                }
                Ok(name.map(|name| Self::of_name(state, &gateway, &name)))
            }
            Err(cause @ GatewayError::Refused { .. }) => {
                tracing::warn!(gateway, %booking, %cause, "the gateway refuses to say what paid: no cap holds");
                Ok(None)
            }
            Err(cause) => {
                tracing::warn!(gateway, %booking, %cause, "the gateway did not say what paid; it is asked again");
                Err(Problem::new(Code::GatewayUnavailable, "Which card paid is not known yet."))
            }
        }
    }

    /// The gateways' names of cards have nothing to do with each other.
    fn of_name(state: &SellingState, gateway: &str, name: &str) -> Self {
        Self(state.accounts.derived_secret(&format!("payment instrument\0{gateway}\0{name}")))
    }
}

/// Notes what has paid for a booking that is being settled; `false`, with nothing written, when it has paid for too many
/// seats of the show. In the transaction of the sale, after the booking was locked.
///
/// # Errors
/// When the database fails, or others with this card take too long.
pub(in crate::bookings) async fn settle(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    instrument: &PaidWith,
) -> Result<bool, sqlx::Error> {
    let Some(most) = show.per_instrument else { return Ok(true) };
    lock(tx, LOCK_SPACE, format!("{}{}", show.id, instrument.0)).await?;
    // In a statement after the lock.
    let elsewhere = usize::try_from(paid_for(tx, row, instrument).await?).unwrap_or(usize::MAX);
    if elsewhere.saturating_add(wanted(row)) > most {
        return Ok(false);
    }
    note(tx, row, instrument).await?;
    Ok(true)
}

/// Seats and places of a booking.
fn wanted(row: &BookingRow) -> usize {
    let places: u32 = row.places.iter().map(|places| places.count).sum();
    row.seats.len() + places as usize
}

async fn note(tx: &mut PgConnection, row: &BookingRow, instrument: &PaidWith) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO payment_instruments (booking_id, show_id, instrument) VALUES ($1, $2, $3)")
        .bind(row.id)
        .bind(row.show_id)
        .bind(&instrument.0)
        .execute(tx)
        .await?;
    Ok(())
}

/// Writes down what pays for a booking that is being submitted, unless it has paid for too many seats of its show. In
/// the submission's transaction, after the booking was locked.
///
/// # Errors
/// 429 `instrument_limit`, with nothing written; 503 when others with this card take too long.
pub(in crate::bookings) async fn claim(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    instrument: &PaidWith,
) -> Result<(), Problem> {
    // The cap was lifted since the gateway was asked.
    let Some(most) = show.per_instrument else { return Ok(()) };
    lock(tx, LOCK_SPACE, format!("{}{}", show.id, instrument.0)).await?;
    let elsewhere = usize::try_from(paid_for(tx, row, instrument).await?).unwrap_or(usize::MAX);
    if elsewhere.saturating_add(wanted(row)) > most {
        let words = format!(
            "One card may pay for {most} seats and places in this show, and this one has paid for {elsewhere}. Nothing \
             was charged and your seats are still held: take fewer of them, or pay with another card."
        );
        return Err(Problem::new(Code::InstrumentLimit, words));
    }
    note(tx, row, instrument).await?;
    Ok(())
}

/// Keeps others with this name in this space of advisory locks waiting until the transaction ends. Also for the other
/// limit that is counted like this (`person_limit`).
pub(in crate::bookings) async fn lock(tx: &mut PgConnection, space: i64, name: String) -> Result<(), sqlx::Error> {
    sqlx::query(BOUND_OF_LOCKS).execute(&mut *tx).await?;
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))").bind(name).bind(space).execute(tx).await?;
    Ok(())
}

/// Seats and places of the show in other bookings that this instrument has paid for, or is paying for: also after its
/// time, until the reconciler has ended that, since the money may come.
async fn paid_for(tx: &mut PgConnection, row: &BookingRow, instrument: &PaidWith) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT coalesce(sum((SELECT count(*) FROM booking_seats WHERE booking_id = other.id)
                             + (SELECT coalesce(sum(quantity), 0) FROM booking_places
                                WHERE booking_id = other.id)), 0)::bigint
         FROM payment_instruments paid JOIN bookings other ON other.id = paid.booking_id
         WHERE paid.show_id = $1 AND paid.instrument = $2 AND other.id <> $3
           AND other.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED')",
    )
    .bind(row.show_id)
    .bind(&instrument.0)
    .bind(row.id)
    .fetch_one(tx)
    .await
}

/// Money that moves pays for another booking: so does its card, where that is of the same show.
pub(in crate::bookings) async fn carry(tx: &mut PgConnection, from: Uuid, to: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO payment_instruments (booking_id, show_id, instrument)
         SELECT fresh.id, fresh.show_id, paid.instrument
         FROM payment_instruments paid JOIN bookings fresh ON fresh.id = $2 AND fresh.show_id = paid.show_id
         WHERE paid.booking_id = $1",
    )
    .bind(from)
    .bind(to)
    .execute(tx)
    .await?;
    Ok(())
}

/// The booking is charged at another gateway, where its token is of no use: what pays there is not known.
pub(in crate::bookings) async fn forget(tx: &mut PgConnection, booking: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM payment_instruments WHERE booking_id = $1").bind(booking).execute(tx).await?;
    Ok(())
}

//! The only way a booking moves: step, then state, event, claims, tickets and effects in the caller's
//! transaction. `commits` does the same for the moves of a sale, many bookings in one transaction.

use domain::booking::{BookingState, Event, Refused, step};
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::claims::area_claims;
use super::sql::{self, BookingRow};
use crate::outbox;

/// Who caused a move and why, for the booking's story.
#[derive(Clone, Copy, Debug)]
pub struct Cause<'a> {
    /// `buyer`, `gateway`, `reconciler`, `staff` or `system`.
    pub actor: &'a str,
    /// In a sentence.
    pub reason: &'a str,
}

impl<'a> Cause<'a> {
    /// This actor, for this reason.
    #[must_use]
    pub const fn of(actor: &'a str, reason: &'a str) -> Self {
        Self { actor, reason }
    }
}

/// The causes of a sale, said in the same words whether it is committed by itself or with others.
pub(super) mod causes {
    use super::Cause;

    pub(in crate::bookings) const CHECKED_OUT: Cause<'_> = Cause::of("buyer", "Checked out.");
    pub(in crate::bookings) const HOLD_CONFIRMED: Cause<'_> = Cause::of("system", "The lock store confirmed the hold.");
    pub(in crate::bookings) const PRESSED_PAY: Cause<'_> = Cause::of("buyer", "Pressed Pay while the hold was alive.");
    pub(in crate::bookings) const GATEWAY_SAID: Cause<'_> = Cause::of("gateway", "The gateway said so.");
    pub(in crate::bookings) const WEBHOOK: Cause<'_> = Cause::of("gateway", "The gateway sent a signed webhook.");
    pub(in crate::bookings) const SHOW_STARTED: Cause<'_> =
        Cause::of("system", "The show had started when the payment came.");
    pub(in crate::bookings) const SHOW_CALLED_OFF: Cause<'_> =
        Cause::of("system", "The show had been called off when the payment came.");
    pub(in crate::bookings) const ALL_CLAIMED: Cause<'_> =
        Cause::of("system", "Every seat was still claimed for this booking.");
    pub(in crate::bookings) const CLAIM_GONE: Cause<'_> =
        Cause::of("system", "A seat was no longer claimed for this booking.");

    pub(in crate::bookings) const CARD_LIMIT: Cause<'_> = Cause::of(
        "system",
        "This card had already paid for as many seats of this show as one card may. The payment goes back to it.",
    );

    /// Around a gateway's own word for its no.
    const SAID_NO: (&str, &str) = ("The gateway said no: ", ".");

    /// A gateway's no, with its word for the reason.
    pub(in crate::bookings) fn said_no(why: &str) -> String {
        format!("{}{why}{}", SAID_NO.0, SAID_NO.1)
    }

    /// That word, of a reason that was written so.
    pub(in crate::bookings) fn why_no(reason: &str) -> Option<&str> {
        reason.strip_prefix(SAID_NO.0)?.strip_suffix(SAID_NO.1)
    }
}

/// Why a booking did not move.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveError {
    /// The machine says no.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Somebody else moved it between reading and writing.
    #[error("the booking was changed by another writer")]
    LostRace,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Moves `row`, which the caller has locked, and returns it as it stands then.
pub(super) async fn apply(
    tx: &mut PgConnection,
    row: &BookingRow,
    event: Event,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    let (machine, effects) = step(row.machine, event, now)?;
    let moved = BookingRow { machine, version: row.version + 1, ..row.clone() };
    if !sql::update(tx, row, &moved, now).await? {
        return Err(MoveError::LostRace);
    }
    sql::insert_event(tx, &moved, Some(row.machine.state), event.name(), cause.actor, cause.reason, now).await?;
    outbox::enqueue(tx, row.id, &effects, now).await?;
    tracing::info!(booking = %row.id, from = ?row.machine.state, to = ?moved.machine.state, event = event.name(),
        actor = cause.actor, "booking {} took {}", row.id, event.name());
    Ok(moved)
}

/// A paid booking becomes a sale in the same transaction, or its money goes back: claims to sold and
/// tickets written, or seats lost. Nothing is sold in a show that was called off: the row decides, not the catalogue's cache.
pub(super) async fn settle(
    tx: &mut PgConnection,
    paid: &BookingRow,
    show_started: bool,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    assert_eq!(paid.machine.state, BookingState::PaymentSucceeded, "only a paid booking is settled");
    if show_started {
        return apply(tx, paid, Event::SeatsLost, causes::SHOW_STARTED, now).await;
    }
    if sql::is_called_off(tx, paid.show_id).await? {
        return apply(tx, paid, Event::SeatsLost, causes::SHOW_CALLED_OFF, now).await;
    }
    if area_claims::sell(tx, paid).await? {
        let sold = apply(tx, paid, Event::SeatsSold, causes::ALL_CLAIMED, now).await?;
        tickets::issue(tx, sold.id, now).await?;
        tickets::issue_places(tx, sold.id, &sold.places, now).await?;
        return Ok(sold);
    }
    apply(tx, paid, Event::SeatsLost, causes::CLAIM_GONE, now).await
}

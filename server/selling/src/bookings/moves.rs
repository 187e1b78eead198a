//! The only path by which a booking moves: step, then state, event, claims, tickets and effects in the caller's
//! transaction. `commits` does the same for the moves of a sale, many bookings in one transaction.

use domain::VariantName;
use domain::booking::{BookingEvent, BookingState, StepError, step};
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::claims::area_claims;
use super::sql::{self, BookingRow};
use crate::outbox;

/// The actor and reason of a move, for the booking's history.
#[derive(Clone, Copy, Debug)]
pub struct Cause<'a> {
    /// `buyer`, `gateway`, `reconciler`, `staff` or `system`.
    pub actor: &'a str,
    /// A sentence.
    pub reason: &'a str,
}

impl<'a> Cause<'a> {
    /// Creates a cause.
    #[must_use]
    pub const fn of(actor: &'a str, reason: &'a str) -> Self {
        Self { actor, reason }
    }
}

/// The causes of a sale, with the same texts for single and batched commits.
pub(super) mod causes {
    use super::Cause;

    pub(crate) const CHECKED_OUT: Cause<'_> = Cause::of("buyer", "Checked out.");
    pub(crate) const HOLD_CONFIRMED: Cause<'_> = Cause::of("system", "The lock store confirmed the hold.");
    pub(crate) const PRESSED_PAY: Cause<'_> = Cause::of("buyer", "Pressed Pay while the hold was alive.");
    pub(crate) const GATEWAY_ANSWERED: Cause<'_> = Cause::of("gateway", "The gateway said so.");
    pub(crate) const WEBHOOK: Cause<'_> = Cause::of("gateway", "The gateway sent a signed webhook.");
    pub(crate) const SHOW_STARTED: Cause<'_> = Cause::of("system", "The show had started when the payment came.");
    pub(crate) const SHOW_CALLED_OFF: Cause<'_> =
        Cause::of("system", "The show had been cancelled when the payment came.");
    pub(crate) const ALL_CLAIMED: Cause<'_> = Cause::of("system", "Every seat was still claimed for this booking.");
    pub(crate) const CLAIM_GONE: Cause<'_> = Cause::of("system", "A seat was no longer claimed for this booking.");

    pub(crate) const CARD_LIMIT: Cause<'_> = Cause::of(
        "system",
        "This card had already paid for as many seats of this show as one card may. The payment goes back to it.",
    );

    /// Prefix and suffix around a gateway's reason code.
    const REFUSAL_AFFIXES: (&str, &str) = ("The gateway said no: ", ".");

    pub(crate) fn format_gateway_refusal(why: &str) -> String {
        format!("{}{why}{}", REFUSAL_AFFIXES.0, REFUSAL_AFFIXES.1)
    }

    /// Parses the reason code from a text of [`format_gateway_refusal`].
    pub(crate) fn parse_gateway_refusal(reason: &str) -> Option<&str> {
        reason.strip_prefix(REFUSAL_AFFIXES.0)?.strip_suffix(REFUSAL_AFFIXES.1)
    }
}

/// Reasons why a booking did not move.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveError {
    /// The state machine refuses.
    #[error(transparent)]
    Refused(#[from] StepError),
    /// Another transaction moved it between read and write.
    #[error("the booking was changed by another writer")]
    LostRace,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Moves `row`, which the caller has locked, and returns its new state.
pub(super) async fn apply(
    tx: &mut PgConnection,
    row: &BookingRow,
    event: BookingEvent,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    let (machine, effects) = step(row.machine, event, now)?;
    let moved = BookingRow { machine, version: row.version + 1, ..row.clone() };
    write(tx, row, &moved, event.as_str(), cause, now).await?;
    outbox::enqueue(tx, row.id, &effects, now).await?;
    tracing::info!(booking = %row.id, from = ?row.machine.state, to = ?moved.machine.state, event = event.as_str(),
        actor = cause.actor, "booking {} took {}", row.id, event.as_str());
    Ok(moved)
}

/// Turns a paid booking into a sale, or refunds it, in the same transaction: claims become sold and tickets are
/// written, or the seats are lost. A called-off show sells nothing: its row decides, not the catalogue's cache.
pub(super) async fn settle(
    tx: &mut PgConnection,
    paid: &BookingRow,
    show_started: bool,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    assert_eq!(paid.machine.state, BookingState::PaymentSucceeded, "only a paid booking is settled");
    if show_started {
        return apply(tx, paid, BookingEvent::SeatsLost, causes::SHOW_STARTED, now).await;
    }
    if sql::is_called_off(tx, paid.show_id).await? {
        return apply(tx, paid, BookingEvent::SeatsLost, causes::SHOW_CALLED_OFF, now).await;
    }
    if area_claims::sell(tx, paid).await? {
        let sold = apply(tx, paid, BookingEvent::SeatsSold, causes::ALL_CLAIMED, now).await?;
        tickets::issue(tx, sold.id, now).await?;
        tickets::issue_places(tx, sold.id, &sold.places, now).await?;
        return Ok(sold);
    }
    apply(tx, paid, BookingEvent::SeatsLost, causes::CLAIM_GONE, now).await
}

/// Appends an event to the history of `row`, which the caller has locked, and returns the new row.
pub(super) async fn note(
    tx: &mut PgConnection,
    row: &BookingRow,
    event: &str,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    let noted = BookingRow { version: row.version + 1, ..row.clone() };
    write(tx, row, &noted, event, cause, now).await?;
    Ok(noted)
}

/// Writes `to` over `from`, which the caller has locked, and the event that explains it.
pub(super) async fn write(
    tx: &mut PgConnection,
    from: &BookingRow,
    to: &BookingRow,
    event: &str,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), MoveError> {
    if !sql::update(tx, from, to, now).await? {
        return Err(MoveError::LostRace);
    }
    Ok(sql::insert_event(tx, to, Some(from.machine.state), event, cause, now).await?)
}

/// Writes the first two events of a new booking, whose row is written: created, and its hold confirmed.
pub(super) async fn begin(
    tx: &mut PgConnection,
    row: &BookingRow,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    sql::insert_event(tx, row, None, "created", cause, now).await?;
    apply(tx, row, BookingEvent::HoldTaken, causes::HOLD_CONFIRMED, now).await
}

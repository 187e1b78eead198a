//! The only way a booking moves: step, then state, event, claims, tickets and effects in the caller's
//! transaction.

use domain::booking::{BookingState, Event, Refused, step};
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::area_claims;
use super::sql::{self, BookingRow};
use crate::{outbox, tickets};

/// Who caused a move and why, for the booking's story.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause<'a> {
    /// `buyer`, `gateway`, `reconciler`, `staff` or `system`.
    pub(super) actor: &'a str,
    /// In a sentence.
    pub(super) reason: &'a str,
}

/// Why a booking did not move.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveError {
    /// The machine says no.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Somebody else moved it between reading and writing.
    #[error("lost the race")]
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
/// tickets written, or seats lost.
pub(super) async fn settle(
    tx: &mut PgConnection,
    paid: &BookingRow,
    show_started: bool,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    assert_eq!(paid.machine.state, BookingState::PaymentSucceeded, "only a paid booking is settled");
    if show_started {
        let cause = Cause { actor: "system", reason: "The show had started when the payment came." };
        return apply(tx, paid, Event::SeatsLost, cause, now).await;
    }
    if area_claims::sell(tx, paid).await? {
        let cause = Cause { actor: "system", reason: "Every seat was still claimed for this booking." };
        let sold = apply(tx, paid, Event::SeatsSold, cause, now).await?;
        tickets::issue(tx, sold.id, now).await?;
        tickets::issue_places(tx, sold.id, &sold.places, now).await?;
        return Ok(sold);
    }
    let cause = Cause { actor: "system", reason: "A seat was no longer claimed for this booking." };
    apply(tx, paid, Event::SeatsLost, cause, now).await
}

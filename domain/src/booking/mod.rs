//! State machine of a booking. This module has the only table of transitions.
//!
//! ```text
//! CREATED ──────────► SEATS_LOCKED ───► PAYMENT_PENDING ───► PAYMENT_SUCCEEDED ───► CONFIRMED
//!    │                   │                  │                    │                    │
//!    └──► EXPIRED ◄──────┴──────────────────┤                    │                    │
//!                        └──► CANCELLED ◄───┴────────────────────┴────────────────────┘
//! ```
//!
//! [`step()`] alone decides about transitions: webhook, browser, reconciler and staff all call it. It is pure. The server
//! loads a [`Booking`], steps it, and writes the result with the previous state and version in the `WHERE` clause. The
//! database guards the same table in SQL, and a test of the server compares `migrations/` with [`may_move`].

use strum::IntoStaticStr;

mod step;
#[cfg(test)]
mod tests;

pub use crate::api::{BookingState, MoneyState};
pub use step::step;

use crate::money::Money;
use crate::time::{MINUTE_MS, Timestamp};

/// Extension of a hold when a payment is submitted.
pub const PAYMENT_EXTENSION_MS: i64 = 2 * MINUTE_MS;
/// Time before the show at which a buyer's right to cancel ends.
pub const BUYER_CANCELS_UNTIL_MS: i64 = 120 * MINUTE_MS;
/// Fee for a cancellation by the buyer, percent of the total.
pub const CANCELLATION_FEE_PERCENT: i64 = 10;
/// Time before the start of a show at which sales close.
pub const SALES_CLOSE_BEFORE_START_MS: i64 = 5 * MINUTE_MS;

/// The parts of a booking that transitions depend on. The server keeps the buyer and the seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    /// State of the booking.
    pub state: BookingState,
    /// State of its money.
    pub money: MoneyState,
    /// Price of the seats that it still has.
    pub total: Money,
    /// Payment deadline.
    pub expires_at: Timestamp,
}

/// An event in the life of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum BookingEvent {
    /// The lock store confirmed the hold.
    HoldTaken,
    /// The buyer paid while the hold was active. The hold now lasts until `until`.
    PaymentSubmitted {
        /// New end of the hold.
        until: Timestamp,
    },
    /// The gateway has charged the buyer.
    PaymentSucceeded {
        /// The charged amount.
        amount: Money,
    },
    /// The gateway declined the payment, or the buyer abandoned its page.
    PaymentFailed,
    /// The gateway acknowledged that it will never charge.
    PaymentVoided,
    /// Postgres turned every claim into a sale.
    SeatsSold,
    /// A claim was gone at commit, or the show had started, so that nothing can be sold.
    SeatsLost,
    /// The buyer cancelled.
    CancelledByBuyer {
        /// Start of the show; decides whether the buyer may still cancel.
        show_starts_at: Timestamp,
    },
    /// Staff cancelled, for a defective seat or a cancelled show.
    CancelledByStaff,
    /// The buyer returned some of the seats and keeps the others.
    PartCancelledByBuyer {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// Price of those seats.
        price: Money,
        /// Start of the show; decides whether the buyer may still cancel.
        show_starts_at: Timestamp,
    },
    /// Staff took some of the seats back, for example a defective one.
    PartCancelledByStaff {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// Price of those seats.
        price: Money,
    },
    /// The payment deadline passed.
    TimedOut,
    /// The gateway acknowledged the refund.
    RefundSettled,
    /// A late payment for another booking pays for this one. The gateway has already charged it.
    PaymentMovedIn {
        /// Deadline for committing the sale.
        until: Timestamp,
    },
    /// The counter took the payment. No gateway is involved.
    TakenAtCounter {
        /// Deadline for committing the sale.
        until: Timestamp,
    },
    /// Staff exchanged the seats: another booking has the new seats and this booking's money.
    Exchanged,
    /// The new seats of an exchange cost less than the money that moved in; the difference is refunded.
    DifferenceReturned {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// Amount to refund.
        amount: Money,
    },
    /// The show moved to another screen, and the booking has places there.
    Relocated,
    /// The late payment for this booking pays for another booking of the same buyer.
    LateMoneyMoved,
    /// The late payment for this booking is refunded, because no seats were found for it.
    LateMoneyReturned {
        /// Amount to refund.
        amount: Money,
    },
}

/// Work that follows from a step. It is stored in the transaction of the step and executed afterwards, at least once,
/// so every effect is idempotent. The effects of one booking are executed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Effect {
    /// Charges the buyer with the idempotency key `pay:{booking}`.
    Charge,
    /// Voids the payment at the gateway.
    VoidPayment,
    /// Voids the payment at a gateway that the booking has left for another one. The change of gateway creates it, not
    /// a step. It is not ordered with other effects.
    VoidLeft,
    /// Refunds what is left of the money, with the idempotency key `refund:{booking}`.
    Refund {
        /// Amount to refund.
        amount: Money,
    },
    /// Refunds some seats, or the difference after an exchange, with the idempotency key `refund:{booking}:{number}`.
    RefundPart {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// Amount to refund.
        amount: Money,
    },
    /// Marks the seats as sold in the lock store.
    MarkBooked,
    /// Releases claims and hold, so that the seats are free.
    ReleaseSeats,
    /// Releases the seats of a partial refund.
    ReleasePart {
        /// Number of that refund.
        number: u32,
    },
    /// Sends the tickets. No other effect waits for it.
    SendTicket,
    /// Notifies the buyer of the outcome for the booking and the money. It is not ordered with other effects.
    SendNotice {
        /// Number of the refund concerned; 0 for the whole booking.
        number: u32,
    },
    /// Finds seats for a late payment, or refunds it.
    PlaceLate,
}

/// Reason why an event did not change a booking. Callers distinguish a final booking from a lost race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The same event was processed before; nothing is left to do.
    #[error("already done")]
    AlreadyDone,
    /// The booking is final.
    #[error("the booking is final")]
    Gone,
    /// The event is not possible in this state.
    #[error("not possible from this state")]
    WrongState,
    /// The deadline has not passed yet.
    #[error("not due yet")]
    NotDue,
    /// Too late to cancel or to pay.
    #[error("too late")]
    TooLate,
}

/// Returns the refund of `price` for a cancellation by the buyer. The fee is rounded down, in the buyer's favour; in a
/// currency with three decimals to tens, because Stripe moves no smaller amounts ("Three-decimal currencies").
#[must_use]
pub fn back_to_buyer(price: Money) -> Money {
    let fee = price.minor * CANCELLATION_FEE_PERCENT / 100;
    let step = if price.currency.minor_digits() > 2 { 10 } else { 1 };
    Money::new(price.minor - fee / step * step, price.currency)
}

/// Returns the last instant at which a buyer may cancel.
#[must_use]
pub const fn buyer_cancels_until(show_starts_at: Timestamp) -> Timestamp {
    show_starts_at.plus_ms(-BUYER_CANCELS_UNTIL_MS)
}

impl BookingState {
    /// True if no transition leaves this state.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
    }
}

/// True if the transition table contains this transition.
#[must_use]
pub const fn may_move(from: BookingState, to: BookingState) -> bool {
    use BookingState::{Cancelled, Confirmed, Created, Expired, PaymentPending, PaymentSucceeded, SeatsLocked};
    matches!(
        (from, to),
        (Created, SeatsLocked | Expired)
            | (SeatsLocked, PaymentPending | Expired | Cancelled)
            | (PaymentPending, PaymentSucceeded | Cancelled | Expired)
            | (PaymentSucceeded, Confirmed | Cancelled)
            | (Confirmed, Cancelled)
    )
}

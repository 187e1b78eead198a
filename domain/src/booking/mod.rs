//! The booking machine: every move a booking may make stands in one table, here and nowhere else.
//!
//! ```text
//! CREATED ──────────► SEATS_LOCKED ───► PAYMENT_PENDING ───► PAYMENT_SUCCEEDED ───► CONFIRMED
//!    │                   │                  │                    │                    │
//!    └──► EXPIRED ◄──────┴──────────────────┤                    │                    │
//!                        └──► CANCELLED ◄───┴────────────────────┴────────────────────┘
//! ```
//!
//! [`step`] decides and nothing else does: webhook, browser, reconciler and staff all enter here. It
//! is pure; the server loads a [`Booking`], steps it, and writes the result with the from-state and
//! version repeated in the `WHERE` clause. The same table guards the row once more in SQL, and
//! `migrations/` is compared with [`may_move`] by a test of the server.

mod step;
#[cfg(test)]
mod tests;

pub use crate::api::{BookingState, MoneyState};
pub use step::step;

use crate::money::Money;
use crate::time::{MINUTE_MS, Timestamp};

/// How much longer a hold lasts once a payment was submitted.
pub const PAYMENT_EXTENSION_MS: i64 = 2 * MINUTE_MS;
/// A buyer may cancel until this long before the show.
pub const BUYER_CANCELS_UNTIL_MS: i64 = 120 * MINUTE_MS;
/// The fee for that, in percent of the total.
pub const CANCELLATION_FEE_PERCENT: i64 = 10;
/// A show cannot be booked within this long of its start.
pub const SALES_CLOSE_BEFORE_START_MS: i64 = 5 * MINUTE_MS;

/// What the machine needs to know of a booking. Who and which seats is the server's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    /// Where it stands.
    pub state: BookingState,
    /// How its money stands.
    pub money: MoneyState,
    /// What its seats cost: those it still has.
    pub total: Money,
    /// Until when it must be paid.
    pub expires_at: Timestamp,
}

/// Something that happened to a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The lock store confirmed the hold.
    HoldTaken,
    /// The buyer pressed Pay while the hold was alive; it now lasts until `until`.
    PaymentSubmitted {
        /// New end of the hold.
        until: Timestamp,
    },
    /// The gateway has the money.
    PaymentSucceeded {
        /// How much it took.
        amount: Money,
    },
    /// The gateway declined, or the buyer gave up on its page.
    PaymentFailed,
    /// The gateway acknowledged that it will never charge.
    PaymentVoided,
    /// Postgres turned every claim into a sale.
    SeatsSold,
    /// A claim was gone at commit, or the show had started: there is nothing to sell.
    SeatsLost,
    /// The buyer wants out.
    CancelledByBuyer {
        /// When the show starts; decides whether it is still early enough.
        show_starts_at: Timestamp,
    },
    /// Staff cancelled: a defective seat, a cancelled show.
    CancelledByStaff,
    /// The buyer gives some of the seats back and keeps the others.
    PartCancelledByBuyer {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// What those seats cost.
        price: Money,
        /// When the show starts; decides whether it is still early enough.
        show_starts_at: Timestamp,
    },
    /// Staff take some of the seats back: one is broken.
    PartCancelledByStaff {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// What those seats cost.
        price: Money,
    },
    /// Its time is over.
    TimedOut,
    /// The gateway acknowledged the refund.
    RefundSettled,
    /// Money that came too late for another booking pays for this one: the gateway has it already.
    PaymentMovedIn {
        /// Until when the sale must be committed.
        until: Timestamp,
    },
    /// The money is in the till: somebody at the counter took it, and no gateway is asked.
    TakenAtCounter {
        /// Until when the sale must be committed.
        until: Timestamp,
    },
    /// Staff gave the buyer other seats: another booking has them, and the money of this one.
    Exchanged,
    /// The seats it was exchanged for cost less than the money that moved in: the rest goes back.
    DifferenceReturned {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// How much goes back.
        amount: Money,
    },
    /// The show was moved to another screen, and the booking has places there.
    Relocated,
    /// The money of this booking came too late, and pays for another booking of the same buyer now.
    LateMoneyMoved,
    /// The money of this booking came too late, and there is nothing it could pay for.
    LateMoneyReturned {
        /// How much goes back.
        amount: Money,
    },
}

impl Event {
    /// The event's stable name in the event log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HoldTaken => "hold_taken",
            Self::PaymentSubmitted { .. } => "payment_submitted",
            Self::PaymentSucceeded { .. } => "payment_succeeded",
            Self::PaymentFailed => "payment_failed",
            Self::PaymentVoided => "payment_voided",
            Self::SeatsSold => "seats_sold",
            Self::SeatsLost => "seats_lost",
            Self::CancelledByBuyer { .. } => "cancelled_by_buyer",
            Self::CancelledByStaff => "cancelled_by_staff",
            Self::PartCancelledByBuyer { .. } => "part_cancelled_by_buyer",
            Self::PartCancelledByStaff { .. } => "part_cancelled_by_staff",
            Self::TimedOut => "timed_out",
            Self::RefundSettled => "refund_settled",
            Self::PaymentMovedIn { .. } => "payment_moved_in",
            Self::TakenAtCounter { .. } => "taken_at_counter",
            Self::Exchanged => "exchanged",
            Self::DifferenceReturned { .. } => "difference_returned",
            Self::Relocated => "relocated",
            Self::LateMoneyMoved => "late_money_moved",
            Self::LateMoneyReturned { .. } => "late_money_returned",
        }
    }
}

/// Work that follows from a step. Written in the step's transaction, done afterwards, at least once;
/// so every effect is idempotent. The effects of one booking are done in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask the gateway for the money, under the key `pay:{booking}`.
    Charge,
    /// Tell the gateway never to charge this.
    VoidPayment,
    /// Tell a gateway that the booking left for another one never to charge this. No step asks for it:
    /// whoever changes the gateway does. Waits for no other effect, and none waits for it.
    VoidLeft,
    /// Send back what is left of the money, under the key `refund:{booking}`.
    Refund {
        /// How much.
        amount: Money,
    },
    /// Send back the money of some seats, or what is over after an exchange, under the key
    /// `refund:{booking}:{number}`.
    RefundPart {
        /// Number of the refund within the booking, from 1.
        number: u32,
        /// How much.
        amount: Money,
    },
    /// Show the seats as sold in the lock store.
    MarkBooked,
    /// Give claims and hold back: the seats are free for others.
    ReleaseSeats,
    /// Give back the seats of one part.
    ReleasePart {
        /// Number of the refund they went with.
        number: u32,
    },
    /// Send the ticket.
    SendTicket,
    /// Tell the buyer what became of the booking and of the money. Waits for no other effect, and none
    /// waits for it.
    SendNotice {
        /// Number of the refund it is about; 0 for the whole booking.
        number: u32,
    },
    /// Find seats for money that came too late, or send it back.
    PlaceLate,
}

/// Why an event did not move a booking. "Gone" and "lost the race" are different answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The very same thing happened before; nothing is left to do.
    #[error("already done")]
    AlreadyDone,
    /// The booking is final.
    #[error("the booking is final")]
    Gone,
    /// Not from this state.
    #[error("not possible from this state")]
    WrongState,
    /// A time-out that is not due.
    #[error("not due yet")]
    NotDue,
    /// Too late to cancel or to pay.
    #[error("too late")]
    TooLate,
}

/// What a buyer who cancels gets back of `price`. The fee is rounded down, in the buyer's favour.
#[must_use]
pub const fn back_to_buyer(price: Money) -> Money {
    Money::new(price.minor - price.minor * CANCELLATION_FEE_PERCENT / 100, price.currency)
}

/// The last instant at which a buyer may cancel.
#[must_use]
pub const fn buyer_cancels_until(show_starts_at: Timestamp) -> Timestamp {
    show_starts_at.plus_ms(-BUYER_CANCELS_UNTIL_MS)
}

/// All states, in the order a booking passes through them.
pub const ALL_STATES: [BookingState; 7] = [
    BookingState::Created,
    BookingState::SeatsLocked,
    BookingState::PaymentPending,
    BookingState::PaymentSucceeded,
    BookingState::Confirmed,
    BookingState::Cancelled,
    BookingState::Expired,
];

impl BookingState {
    /// Whether nothing may follow.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
    }

    /// As SQL and JSON spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::SeatsLocked => "SEATS_LOCKED",
            Self::PaymentPending => "PAYMENT_PENDING",
            Self::PaymentSucceeded => "PAYMENT_SUCCEEDED",
            Self::Confirmed => "CONFIRMED",
            Self::Cancelled => "CANCELLED",
            Self::Expired => "EXPIRED",
        }
    }

    /// The state of that name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        ALL_STATES.into_iter().find(|state| state.as_str() == name)
    }
}

impl MoneyState {
    /// As SQL and JSON spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Pending => "PENDING",
            Self::Paid => "PAID",
            Self::Failed => "FAILED",
            Self::Refunding => "REFUNDING",
            Self::Refunded => "REFUNDED",
            Self::Moved => "MOVED",
        }
    }

    /// The state of that name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Pending, Self::Paid, Self::Failed, Self::Refunding, Self::Refunded, Self::Moved]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// The table of moves: a booking may make these and no others.
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

//! JSON of bookings and of paying for them.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

use crate::api::cancelling::{LatePaymentHandling, RefundView, StepView};
use crate::api::moving::SeatOffer;
use crate::api::{PlaceLine, SeatLine};
use crate::money::Money;
use crate::pricing::Breakdown;

/// Name and address of a buyer or ticket holder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Full name, 1 to 120 characters.
    pub name: String,
    /// E-mail address.
    pub email: String,
}

/// `POST /bookings`: checks out a hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BookingRequest {
    /// The show that the hold belongs to.
    pub show: Uuid,
    /// An active hold of the caller.
    pub hold: Uuid,
    /// The buyer, who receives any refund.
    pub buyer: Person,
    /// The ticket holder, if it is not the buyer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Person>,
    /// Handling of a payment that arrives after the deadline.
    #[serde(default, skip_serializing_if = "LatePaymentHandling::is_default")]
    pub if_late: LatePaymentHandling,
    /// Payment in the same request. If absent, `POST /bookings/{id}/confirm` pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pay: Option<CheckoutPayment>,
}

/// Payment details in a checkout request. They replace a call to `POST /bookings/{id}/confirm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = PayAtOnce))]
#[serde(deny_unknown_fields)]
pub struct CheckoutPayment {
    /// Total shown to the buyer, in minor units of the show's currency. A different total is refused.
    pub total_minor: i64,
    /// As in [`ConfirmRequest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_token: Option<String>,
}

/// `POST /bookings/{id}/confirm`: pays for a booking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// A payment token from the gateway, which is charged at once. Without it the answer contains `pay_url`, the
    /// gateway's payment page. A booking that costs nothing needs neither: it is confirmed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_token: Option<String>,
}

/// States of a booking, in the order it passes through them. JSON and SQL use the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum BookingState {
    /// Stored; its seats are not confirmed as held yet.
    Created,
    /// Its seats are held.
    SeatsLocked,
    /// A charge is in progress; its outcome may be unknown.
    PaymentPending,
    /// Paid; the sale is being committed.
    PaymentSucceeded,
    /// Sold.
    Confirmed,
    /// Ended without a sale, or cancelled. Final.
    Cancelled,
    /// Expired. Final.
    Expired,
}

/// State of a booking's money, for the status page: paid, issuing, refunding, refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum MoneyState {
    /// No charge was requested.
    None,
    /// A charge was requested; the gateway has not reported its outcome.
    Pending,
    /// Charged.
    Paid,
    /// Declined or abandoned: no money was taken.
    Failed,
    /// A refund is in progress.
    Refunding,
    /// Refunded to the payer.
    Refunded,
    /// Arrived too late for this booking and pays for another one.
    Moved,
}

/// A booking, for its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BookingView {
    /// The booking.
    pub id: Uuid,
    /// Short reference for people and phone calls, for example `K7QM-2XPA`.
    pub reference: String,
    /// Its show.
    pub show: Uuid,
    /// State of the booking.
    pub state: BookingState,
    /// State of its money.
    pub money: MoneyState,
    /// Its seats.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// Total price.
    pub total: Money,
    /// The parts of the total.
    pub breakdown: Breakdown,
    /// The buyer.
    pub buyer: Person,
    /// The ticket holder.
    pub holder: Person,
    /// Payment deadline, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// The same in the theatre's time zone: `2026-11-21T19:42:07`. Present only when the booking is read and can still
    /// be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_theatre: Option<String>,
    /// The gateway's payment page, while the buyer can pay there.
    pub pay_url: Option<String>,
    /// The ticket page, once the booking is confirmed.
    pub ticket_url: Option<String>,
    /// Deadline for cancelling with a refund of the price less the fee, milliseconds since 1970. Absent if there is
    /// nothing to cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_until_ms: Option<i64>,
    /// Refunds. Present only when the booking is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refunds: Vec<RefundView>,
    /// History for people. Present only when the booking is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepView>,
    /// The booking that a late payment for this one was used for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Uuid>,
    /// Offer of other places after the show has moved to another screen, until the buyer answers. Present only when the
    /// booking is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat_offer: Option<SeatOffer>,
    /// Its seats, still held after a declined payment. A new booking of this hold can pay with another card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_hold: Option<KeptHold>,
}

impl BookingView {
    /// Returns its receipt.
    #[must_use]
    pub fn receipt(&self) -> Receipt {
        Receipt { seats: self.seats.clone(), places: self.places.clone(), breakdown: self.breakdown }
    }
}

/// Seats and places with their prices, and the parts of the total: on pages, in mails and on paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The seats.
    pub seats: Vec<SeatLine>,
    /// The places in areas without numbered seats.
    pub places: Vec<PlaceLine>,
    /// The parts of their total.
    pub breakdown: Breakdown,
}

impl Receipt {
    /// Name, category and price of each line. Places in one area are one line: `2 × Floor`.
    pub fn lines(&self) -> impl Iterator<Item = (String, &str, Money)> {
        let seats = self.seats.iter().map(|line| (line.label.clone(), line.category.as_str(), line.price));
        let places = self.places.iter().map(|line| {
            let name = match line.quantity {
                1 => line.label.clone(),
                count => format!("{count} × {}", line.label),
            };
            (name, line.category.as_str(), line.total())
        });
        seats.chain(places)
    }
}

/// A hold that outlives a declined payment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeptHold {
    /// Id of the hold, for the `hold` field of `POST /bookings`.
    pub hold: Uuid,
    /// Expiry, milliseconds since 1970.
    pub until_ms: i64,
    /// The same in the theatre's time zone: `2026-11-21T19:42:07`.
    pub until_theatre: String,
}

/// A transition of a booking with its actor and reason. Immutable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BookingEventView {
    /// Sequence number within the booking, from 1.
    pub number: i32,
    /// Name of the event, for example `payment_succeeded`.
    pub event: String,
    /// State before; absent in the first event.
    pub from: Option<BookingState>,
    /// State after.
    pub to: BookingState,
    /// Actor: `buyer`, `gateway`, `reconciler`, `staff`, `system`.
    pub actor: String,
    /// The reason, in a sentence.
    pub reason: String,
    /// Time, RFC 3339.
    pub at: String,
}

//! The JSON of bookings: made, paid for, read.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::cancelling::{IfLate, RefundView, StepView};
use crate::api::moving::SeatOffer;
use crate::api::{PlaceLine, SeatLine};
use crate::money::Money;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Who pays and, when it is for a friend, who will sit there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Full name, 1 to 120 characters.
    pub name: String,
    /// E-mail address.
    pub email: String,
}

/// `POST /bookings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BookingRequest {
    /// The show; a hold is addressed under it.
    pub show: Uuid,
    /// A live hold of the caller.
    pub hold: Uuid,
    /// Who pays; refunds go to them.
    pub buyer: Person,
    /// Who sits there, when it is not the buyer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Person>,
    /// What to do with money that comes when the time is over.
    #[serde(default, skip_serializing_if = "IfLate::is_usual")]
    pub if_late: IfLate,
    /// Pay for it as well, in the same request. Without it `POST /bookings/{id}/confirm` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pay: Option<PayAtOnce>,
}

/// What `POST /bookings/{id}/confirm` would be told, in the request that checks out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PayAtOnce {
    /// What the buyer was told that it costs, in minor units of the show's currency. Nobody pays another sum.
    pub total_minor: i64,
    /// As in [`ConfirmRequest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_token: Option<String>,
}

/// `POST /bookings/{id}/confirm`: pay for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// A payment token from the gateway, to be charged at once. Without one the answer carries
    /// `pay_url`: the gateway's own page, where the buyer pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_token: Option<String>,
}

/// States of a booking, as JSON and SQL spell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BookingState {
    /// Written down, seats not yet confirmed held.
    Created,
    /// Its seats are held.
    SeatsLocked,
    /// A charge is under way; we may not know how it ended.
    PaymentPending,
    /// The money is there; the sale is being committed.
    PaymentSucceeded,
    /// Sold.
    Confirmed,
    /// Ended without a sale, or undone. Final.
    Cancelled,
    /// Ran out of time. Final.
    Expired,
}

/// How the money of a booking stands, for the status page: paid, issuing, refunding, refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MoneyState {
    /// Nothing was charged.
    None,
    /// A charge was asked for; the gateway has not said how it ended.
    Pending,
    /// Charged.
    Paid,
    /// Declined or given up: nothing was taken.
    Failed,
    /// On its way back.
    Refunding,
    /// Back with the payer.
    Refunded,
    /// It came too late for this booking and pays for another one.
    Moved,
}

/// A booking, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BookingView {
    /// The booking.
    pub id: Uuid,
    /// Its short name for people and phones, for example `K7QM-2XPA`.
    pub reference: String,
    /// Its show.
    pub show: Uuid,
    /// Where it stands.
    pub state: BookingState,
    /// How its money stands.
    pub money: MoneyState,
    /// Its seats.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// What they cost.
    pub total: Money,
    /// Who pays.
    pub buyer: Person,
    /// Who sits there.
    pub holder: Person,
    /// Until when it must be paid, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// The same on the clocks of the theatre: `2026-11-21T19:42:07`. Only when the booking is read, and while it may
    /// be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_theatre: Option<String>,
    /// The gateway's page, while it waits for the buyer.
    pub pay_url: Option<String>,
    /// The ticket page, once confirmed.
    pub ticket_url: Option<String>,
    /// Until when the buyer may cancel and get the price back less the fee, milliseconds since 1970; absent
    /// when there is nothing to cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_until_ms: Option<i64>,
    /// Money that went back. Only when the booking is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refunds: Vec<RefundView>,
    /// What happened so far, for people. Only when the booking is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepView>,
    /// The booking its money pays for, when that came too late for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Uuid>,
    /// Other places because its show was moved to another screen, until the buyer has answered. Only when the booking
    /// is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat_offer: Option<SeatOffer>,
    /// Its seats, still held after the payment was declined: a new booking of this hold pays for them with another card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_hold: Option<KeptHold>,
}

/// A hold that outlives a declined payment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct KeptHold {
    /// Its id: what `POST /bookings` takes as `hold`.
    pub hold: Uuid,
    /// Until when it lasts, milliseconds since 1970.
    pub until_ms: i64,
    /// The same on the clocks of the theatre: `2026-11-21T19:42:07`.
    pub until_theatre: String,
}

/// One move of a booking: who, when, why. Immutable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BookingEventView {
    /// Running number within the booking, from 1.
    pub number: i32,
    /// The event's name, for example `payment_succeeded`.
    pub event: String,
    /// State before; absent for the first.
    pub from: Option<BookingState>,
    /// State after.
    pub to: BookingState,
    /// Who caused it: `buyer`, `gateway`, `reconciler`, `staff`, `system`.
    pub actor: String,
    /// Why, in a sentence.
    pub reason: String,
    /// When, RFC 3339.
    pub at: String,
}

//! JSON of cancellations, refunds and late payments.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::money::Money;
use crate::seats::SeatIndex;

/// Handling of a payment that arrives after its booking has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = IfLate))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LatePaymentHandling {
    /// Refund it at once.
    Refund,
    /// Take the same seats if they are still free, otherwise refund.
    #[default]
    SameSeats,
    /// Take the same seats, or as many other seats together that are no cheaper; otherwise refund.
    SameOrBetter,
}

impl LatePaymentHandling {
    /// True for the default choice.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// `POST /bookings/{id}/cancel`: cancels a booking or some of its seats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Seats to cancel, each once; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<SeatIndex>>,
    /// Labels of the seats as the caller saw them, in the order of `seats`: a show that moved to another room has other
    /// seats under these numbers, and the request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// A refund, sent or pending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundView {
    /// Number within the booking: 0 for a refund of everything left, from 1 for single seats.
    pub number: u32,
    /// Amount to refund.
    pub amount: Money,
    /// Fee kept.
    pub fee: Money,
    /// Names of the refunded seats; empty for a refund of everything left.
    pub seats: Vec<String>,
    /// True once the gateway has acknowledged it.
    pub settled: bool,
    /// True if the gateway could not deliver it to the payer and returned it. A person then handles it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub came_back: bool,
}

/// One step in the history on the booking page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepView {
    /// Stable name of the step, for example `paid`.
    pub step: String,
    /// Display text, for example `Paid`.
    pub words: String,
    /// Time, RFC 3339.
    pub at: String,
    /// Time in the theatre's time zone, for display: `Sat 21 Nov, 20:15:07`.
    pub at_local: String,
    /// The same for programs that format it themselves: `2026-11-21T20:15:07`.
    #[serde(default)]
    pub at_theatre: String,
    /// Refunded amount, if the step is a refund.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// Names of the seats concerned; absent if the step concerns all seats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<String>,
    /// The cinema's message, if the cinema took the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Cause of a failed payment, if known: `declined` by the bank, `stopped` by the payer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

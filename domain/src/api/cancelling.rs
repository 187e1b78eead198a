//! The JSON of undoing a booking, of what goes back, and of what to do with money that comes too late.

use serde::{Deserialize, Serialize};

use crate::money::Money;
use crate::seats::SeatIndex;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What to do with money that comes when the time for its booking is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum IfLate {
    /// Send it back at once.
    Refund,
    /// Take the same seats if they are still free, else send it back.
    #[default]
    SameSeats,
    /// Take the same seats, else as many others together that are no cheaper, else send it back.
    SameOrBetter,
}

impl IfLate {
    /// As SQL and JSON spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::SameSeats => "same_seats",
            Self::SameOrBetter => "same_or_better",
        }
    }

    /// Whether it is what happens to those who said nothing.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The choice of that name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Refund, Self::SameSeats, Self::SameOrBetter].into_iter().find(|choice| choice.as_str() == name)
    }
}

/// `POST /bookings/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// The seats to give back, each once; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<SeatIndex>>,
}

/// Money on its way back, or back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RefundView {
    /// Number within the booking: 0 for all that was left, from 1 for single seats.
    pub number: u32,
    /// How much goes back.
    pub amount: Money,
    /// How much was kept as a fee.
    pub fee: Money,
    /// Names of the seats it is for; empty when it is for all that were left.
    pub seats: Vec<String>,
    /// Whether the gateway acknowledged it.
    pub settled: bool,
    /// Whether it came back all the same: the gateway could not send it to the payer, and a person looks at it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub came_back: bool,
}

/// One step of a booking as its page tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StepView {
    /// Stable name, for example `paid`.
    pub step: String,
    /// In words, for example `Paid`.
    pub words: String,
    /// When, RFC 3339.
    pub at: String,
    /// When, on the theatre's clocks, for people: `Sat 21 Nov, 20:15:07`.
    pub at_local: String,
    /// The same for programs with words of their own: `2026-11-21T20:15:07`.
    #[serde(default)]
    pub at_theatre: String,
    /// What goes back, where that is the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// Names of the seats it is about, where it is not about all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<String>,
    /// What the cinema said of it, where it was the cinema's doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why a payment failed, where that is known: `declined` by the bank, `stopped` by the payer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

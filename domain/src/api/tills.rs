//! JSON of tills: float, ledger, cashing up and day close.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::money::Money;
use crate::till::{Means, TillEntryKind};

/// `POST …/till`: opens the caller's till.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenTill {
    /// The float, minor units.
    pub float_minor: i64,
}

/// `POST …/till/drops`: records cash taken from the till to the safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    /// Amount, minor units.
    pub amount_minor: i64,
    /// The reason.
    pub reason: String,
}

/// `POST …/till/cash-up`: closes the caller's till.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CashUp {
    /// Counted cash, minor units.
    pub counted_minor: i64,
    /// The reason for a difference; optional if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `POST …/tills/{till}/cash-up`: a manager cashes up another person's till.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CashUpFor {
    /// Counted cash, minor units.
    pub counted_minor: i64,
    /// The reason why the manager counts it, and the reason for a difference if there is one.
    pub reason: String,
}

/// `POST …/day-close`: closes the business day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DayClose {
    /// A note about the day.
    pub reason: String,
}

/// A line in a till's ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TillRow {
    /// Line number within the till, from 1.
    pub number: u32,
    /// Kind of entry.
    pub kind: TillEntryKind,
    /// Means of payment: cash, card, or none.
    pub means: Means,
    /// Amount received; negative if paid out.
    pub amount: Money,
    /// The booking concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booking: Option<Uuid>,
    /// Reference of that booking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The reason.
    pub reason: String,
    /// Time, RFC 3339.
    pub at: String,
}

/// A till and its sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TillView {
    /// The till.
    pub id: Uuid,
    /// Name of its cashier.
    pub person: String,
    /// Time of opening, RFC 3339.
    pub opened_at: String,
    /// Time of cashing up, RFC 3339; absent while the till is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
    /// The float.
    pub float: Money,
    /// Cash sales less cash refunds.
    pub cash: Money,
    /// Card sales less card refunds.
    pub card: Money,
    /// Cash taken to the safe.
    pub dropped: Money,
    /// Expected cash.
    pub expected: Money,
    /// Cash counted when the till was cashed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Money>,
    /// Counted cash less expected cash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Money>,
    /// The manager who cashed it up for its cashier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<String>,
    /// The manager's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_why: Option<String>,
    /// Ledger lines, latest first: at most 200, and only for the caller's own till.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<TillRow>,
}

/// A closed business day with the sums of its tills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DayView {
    /// Number of the day in the theatre, from 1.
    pub number: u32,
    /// Time of closing, RFC 3339.
    pub closed_at: String,
    /// Its tills.
    pub tills: Vec<TillView>,
    /// Cash sales less cash refunds in all tills.
    pub cash: Money,
    /// Card sales less card refunds in all tills.
    pub card: Money,
    /// Sum of the differences between counted and expected cash.
    pub difference: Money,
}

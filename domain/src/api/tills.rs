//! The JSON of tills: their float, their ledger, their end, and the day's.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::money::Money;
use crate::till::{Entry, Means};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// `POST …/till`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenTill {
    /// Cash that is in it, minor units.
    pub float_minor: i64,
}

/// `POST …/till/drops`: cash goes from the till to the safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    /// How much, minor units.
    pub amount_minor: i64,
    /// Why.
    pub reason: String,
}

/// `POST …/till/cash-up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CashUp {
    /// Cash that was counted, minor units.
    pub counted_minor: i64,
    /// Why it is another sum than expected; may be left out where it is the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `POST …/tills/{till}/cash-up`: a manager counts somebody's till in their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CashUpFor {
    /// Cash that was counted, minor units.
    pub counted_minor: i64,
    /// Why nobody else counts it, and why it is another sum where it is one.
    pub reason: String,
}

/// `POST …/day-close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DayClose {
    /// A word about the day.
    pub reason: String,
}

/// A line of a till's ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TillRow {
    /// Its number in the till, from 1.
    pub number: u32,
    /// What happened.
    pub kind: Entry,
    /// Cash, card, or nothing at all.
    pub means: Means,
    /// What came in; below zero: what went out.
    pub amount: Money,
    /// The booking it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booking: Option<Uuid>,
    /// That booking's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why.
    pub reason: String,
    /// When, RFC 3339.
    pub at: String,
}

/// A till and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TillView {
    /// The till.
    pub id: Uuid,
    /// Whose.
    pub person: String,
    /// Since when, RFC 3339.
    pub opened_at: String,
    /// When it was counted, RFC 3339; not yet, where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
    /// Cash it was opened with.
    pub float: Money,
    /// Sales for cash, less what went back in cash.
    pub cash: Money,
    /// Sales by card, less what went back to cards.
    pub card: Money,
    /// Cash that went to the safe.
    pub dropped: Money,
    /// Cash that should be in it.
    pub expected: Money,
    /// Cash that was counted at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Money>,
    /// What was counted less what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Money>,
    /// The manager who counted it in place of the person whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<String>,
    /// Why they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_why: Option<String>,
    /// The ledger, the latest line first; only of one's own till, and at most 200 lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<TillRow>,
}

/// A day that was closed: the sums of its tills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DayView {
    /// Its number in the theatre, from 1.
    pub number: u32,
    /// When it was closed, RFC 3339.
    pub closed_at: String,
    /// Its tills.
    pub tills: Vec<TillView>,
    /// Cash of all of them, less what went back.
    pub cash: Money,
    /// Cards, likewise.
    pub card: Money,
    /// What was counted less what was expected, in all.
    pub difference: Money,
}

//! What a theatre asks for its seats.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pricing::Format;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What a theatre asks for its seats. Amounts are minor units of its currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffView {
    /// What a category costs before any percentage and surcharge.
    pub base: BTreeMap<String, i64>,
    /// Percent of the base on Saturday and Sunday, multiplied with the time's.
    pub weekend_percent: i64,
    /// Percent of the base of a matinee, on any day.
    pub matinee_percent: i64,
    /// Percent of the base of every later show, on any day.
    pub prime_percent: i64,
    /// Added for a format.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, i64>))]
    pub surcharge: BTreeMap<Format, i64>,
    /// Which version this is; a change names the one it was made from. 0 before the first.
    #[serde(default)]
    pub version: u32,
}

/// `POST /theatres/{theatre}/tariff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffRequest {
    /// What it asks from now on, for shows planned from now on.
    pub tariff: TariffView,
    /// Why, in one line.
    pub reason: String,
}

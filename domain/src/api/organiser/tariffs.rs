//! JSON of a theatre's tariff.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pricing::{Format, TaxAndFee};

/// Tariff of a theatre. Amounts are minor units of its currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffView {
    /// Price of each category before percentages and surcharges.
    pub base: BTreeMap<String, i64>,
    /// Percentage for Saturday and Sunday, multiplied with the percentage for the time of day.
    pub weekend_percent: i64,
    /// Percentage for a matinee, on any day.
    pub matinee_percent: i64,
    /// Percentage for any later show, on any day.
    pub prime_percent: i64,
    /// Surcharge of each format.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, i64>))]
    pub surcharge: BTreeMap<Format, i64>,
    /// Taxes and fees. An answer has them; without them a request keeps the present ones.
    #[serde(default)]
    pub tax_and_fee: Option<TaxAndFee>,
    /// Version of the tariff. A change names the version that it was made from. 0: never set.
    #[serde(default)]
    pub version: u32,
}

/// `POST /theatres/{theatre}/tariff`: replaces the tariff for shows planned from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffRequest {
    /// The new tariff.
    pub tariff: TariffView,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

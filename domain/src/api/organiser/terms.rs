//! JSON of a show's terms of sale.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::seats::{DEFAULT_HOLD_MS, MAX_SEATS_PER_PERSON};
use crate::time::SECOND_MS;

/// Sales status of a show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Sales {
    /// Not published yet.
    Planned,
    /// On sale from `sales_from`, or at once.
    #[default]
    Open,
    /// Visible, but seats cannot be taken. Holds that exist can still be paid for.
    Paused,
}

/// Terms of sale of a show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TermsOfSale {
    /// Sales status.
    pub sales: Sales,
    /// Start of sales in the theatre's time zone, `2026-12-01T10:00`; absent: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sales_from: Option<String>,
    /// Duration of a hold, seconds.
    pub hold_seconds: u32,
    /// Flash sale: short holds without extensions.
    pub flash_sale: bool,
    /// Limit of seats per person, 1 to 10.
    pub per_person: u32,
    /// True if guests must verify their e-mail address with a mailed code before checkout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub email_code: bool,
    /// Limit of seats that one card may pay for, 1 to 100; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_instrument: Option<u32>,
}

impl Default for TermsOfSale {
    fn default() -> Self {
        Self {
            sales: Sales::Open,
            sales_from: None,
            hold_seconds: (DEFAULT_HOLD_MS / SECOND_MS) as u32,
            flash_sale: false,
            per_person: MAX_SEATS_PER_PERSON as u32,
            email_code: false,
            per_instrument: None,
        }
    }
}

/// `POST …/programme/{show}/terms`: changes the terms of sale and, optionally, the prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TermsRequest {
    /// The new terms.
    pub terms: TermsOfSale,
    /// Price by category, minor units; absent: unchanged. Accepted only while seats cannot be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<BTreeMap<String, i64>>,
    /// Version of the terms that the change was made from.
    pub version: u32,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

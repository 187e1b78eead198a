//! JSON of a show's terms of sale.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::seats::DEFAULT_HOLD_MS;
use crate::time::SECOND_MS;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Sales status of a show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sales {
    /// Not published yet.
    Planned,
    /// On sale from `sales_from`, or at once.
    #[default]
    Open,
    /// Visible, but seats cannot be taken. Holds that exist can still be paid for.
    Paused,
}

impl Sales {
    /// Name in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Open => "open",
            Self::Paused => "paused",
        }
    }

    /// Parses a name written by [`Sales::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Planned, Self::Open, Self::Paused].into_iter().find(|sales| sales.as_str() == text)
    }
}

/// Terms of sale of a show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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
            per_person: 10,
            email_code: false,
            per_instrument: None,
        }
    }
}

/// `POST …/programme/{show}/terms`: changes the terms of sale and, optionally, the prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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

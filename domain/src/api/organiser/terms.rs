//! How a show is sold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::seats::USUAL_HOLD_MS;
use crate::time::SECOND_MS;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Whether a show is sold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sales {
    /// Nobody sees it yet.
    Planned,
    /// From the beginning, or from the time that was set.
    #[default]
    Open,
    /// It is seen, and nobody takes seats; whoever has some may pay.
    Paused,
}

impl Sales {
    /// As SQL spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Open => "open",
            Self::Paused => "paused",
        }
    }

    /// Reads what [`Sales::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Planned, Self::Open, Self::Paused].into_iter().find(|sales| sales.as_str() == text)
    }
}

/// How a show is sold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TermsOfSale {
    /// Whether it is.
    pub sales: Sales,
    /// Not before this, on the clocks of the theatre: `2026-12-01T10:00`; absent: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sales_from: Option<String>,
    /// How long seats are held, seconds.
    pub hold_seconds: u32,
    /// On-sale day: short holds that nobody extends.
    pub flash_sale: bool,
    /// Seats one person may have, 1 to 10.
    pub per_person: u32,
    /// Whether guests prove their address by a code, mailed to it, before they check out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub email_code: bool,
    /// Seats that one card may pay for, 1 to 100; absent: as many as people do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_instrument: Option<u32>,
}

impl Default for TermsOfSale {
    fn default() -> Self {
        Self {
            sales: Sales::Open,
            sales_from: None,
            hold_seconds: (USUAL_HOLD_MS / SECOND_MS) as u32,
            flash_sale: false,
            per_person: 10,
            email_code: false,
            per_instrument: None,
        }
    }
}

/// `POST …/programme/{show}/terms`: another way to sell a show, other prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TermsRequest {
    /// How it is sold from now on.
    pub terms: TermsOfSale,
    /// Price by category, minor units; absent: as they are. Only while nobody can take seats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<BTreeMap<String, i64>>,
    /// The version this was decided on.
    pub version: u32,
    /// Why, in one line.
    pub reason: String,
}

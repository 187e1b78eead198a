//! JSON of theatres, as those who manage them write them down.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// A city that has no theatre yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCity {
    /// Its name.
    pub name: String,
    /// Its country, ISO 3166-1 alpha-2: `PT`.
    pub country: String,
    /// The clocks there, an IANA name: `Europe/Lisbon`.
    pub time_zone: String,
}

/// `POST /theatres`: one more. Either `city` or `new_city`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TheatreRequest {
    /// Its name.
    pub name: String,
    /// Its street address.
    pub address: String,
    /// Slug of its city, where that is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// Its city, where that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_city: Option<NewCity>,
    /// What it takes, ISO 4217: `EUR`.
    pub currency: String,
    /// Why, in one line.
    pub reason: String,
}

/// `POST /theatres/{theatre}`: what is written about one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TheatreChange {
    /// Its name from now on.
    pub name: String,
    /// Its street address from now on.
    pub address: String,
    /// What it takes from now on; only while nothing was planned or sold there.
    pub currency: String,
    /// The version this was decided on.
    pub version: u32,
    /// Why, in one line.
    pub reason: String,
}

/// A theatre as those who manage it see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ManagedTheatre {
    /// Its name in addresses.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its street address.
    pub address: String,
    /// Slug of its city.
    pub city: String,
    /// Name of its city.
    pub city_name: String,
    /// The clocks there, an IANA name.
    pub time_zone: String,
    /// What it takes, ISO 4217.
    pub currency: String,
    /// Which version this is; a change names the one it was made from.
    pub version: u32,
}

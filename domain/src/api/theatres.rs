//! JSON of theatres for their managers.

use serde::{Deserialize, Serialize};

/// A city without a theatre so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCity {
    /// Its name.
    pub name: String,
    /// Its country, ISO 3166-1 alpha-2: `PT`.
    pub country: String,
    /// Time zone, an IANA name: `Europe/Lisbon`.
    pub time_zone: String,
}

/// `POST /theatres`: adds a theatre. Exactly one of `city` and `new_city` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TheatreRequest {
    /// Its name.
    pub name: String,
    /// Its street address.
    pub address: String,
    /// Slug of an existing city.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// A new city.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_city: Option<NewCity>,
    /// Currency of its prices, ISO 4217: `EUR`.
    pub currency: String,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// `POST /theatres/{theatre}`: changes a theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TheatreChange {
    /// New name.
    pub name: String,
    /// New street address.
    pub address: String,
    /// New currency. It can change only while the theatre has no planned shows and no sales.
    pub currency: String,
    /// Version that the change was made from.
    pub version: u32,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// A theatre for its managers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ManagedTheatre {
    /// Slug of the theatre.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its street address.
    pub address: String,
    /// Slug of its city.
    pub city: String,
    /// Name of its city.
    pub city_name: String,
    /// Time zone, an IANA name.
    pub time_zone: String,
    /// Currency of its prices, ISO 4217.
    pub currency: String,
    /// Version of the theatre. A change names the version that it was made from.
    pub version: u32,
}

//! Films to choose from.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// `POST /theatres/{theatre}/films`: a film nobody has shown yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FilmRequest {
    /// Its title.
    pub title: String,
    /// One line about it; may be empty.
    #[serde(default)]
    pub tagline: String,
    /// What it is about; may be empty.
    #[serde(default)]
    pub synopsis: String,
    /// How long it is, minutes.
    pub running_minutes: u32,
    /// Age rating as printed; may be empty.
    #[serde(default)]
    pub rating: String,
    /// Its genre; may be empty.
    #[serde(default)]
    pub genre: String,
    /// Why, in one line.
    pub reason: String,
}

/// A film in a list to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FilmChoice {
    /// Its name in addresses.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How long it is, minutes.
    pub running_minutes: u32,
}

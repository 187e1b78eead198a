//! JSON of films and of the list to choose one from.

use serde::{Deserialize, Serialize};

/// `POST /theatres/{theatre}/films`: adds a film.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FilmRequest {
    /// Its title.
    pub title: String,
    /// One line about the film; may be empty.
    #[serde(default)]
    pub tagline: String,
    /// Synopsis; may be empty.
    #[serde(default)]
    pub synopsis: String,
    /// Running time, minutes.
    pub running_minutes: u32,
    /// Age rating as printed; may be empty.
    #[serde(default)]
    pub rating: String,
    /// Its genre; may be empty.
    #[serde(default)]
    pub genre: String,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// A film in a list to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FilmChoice {
    /// Slug of the film.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Running time, minutes.
    pub running_minutes: u32,
}

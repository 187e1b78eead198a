//! Weeks of shows: planned, looked at, called off.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::terms::TermsOfSale;
use crate::api::moving::MoveView;
use crate::pricing::{Format, Weekday};

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// What becomes of a time that the clocks jump over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum InGap {
    /// Nothing is planned at all, and the time is named.
    #[default]
    Refuse,
    /// It becomes the time the clocks jump to, and that is said.
    Move,
}

/// When shows start on a day of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DayPattern {
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "monday"))]
    pub weekday: Weekday,
    /// On the clocks of the theatre, `20:15`.
    pub times: Vec<String>,
}

/// `POST /theatres/{theatre}/programme`: weeks of shows by a pattern, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ShowsRequest {
    /// Where.
    pub screen: String,
    /// What.
    pub film: String,
    /// Language spoken.
    pub language: String,
    /// How.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "2D"))]
    pub format: Format,
    /// The first day, `2026-12-07`.
    pub from: String,
    /// How many weeks from there.
    pub weeks: u32,
    /// The pattern of a week.
    pub pattern: Vec<DayPattern>,
    /// Between the end and the next show, minutes.
    pub cleaning_minutes: u32,
    /// What becomes of a time that the clocks jump over.
    #[serde(default)]
    pub in_gap: InGap,
    /// How they are sold.
    #[serde(default)]
    pub terms: TermsOfSale,
    /// Why, in one line.
    pub reason: String,
}

/// A show that was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PlannedShow {
    /// The show.
    pub id: Uuid,
    /// When it starts, RFC 3339.
    pub starts_at: String,
    /// The same on the clocks of the theatre, `2026-12-07T20:15:00`.
    pub starts_local: String,
    /// Whether the clocks jump over the time that was asked for.
    pub moved: bool,
}

/// Shows that were planned, in the order of their start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PlannedShows {
    /// The shows.
    pub shows: Vec<PlannedShow>,
}

/// `GET /theatres/{theatre}/programme`: which week.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct WeekQuery {
    /// The first of seven days, `2026-12-07`; today when absent.
    pub from: Option<String>,
}

/// How far the undoing of a show is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CancellationView {
    /// Why, as buyers are told.
    pub reason: String,
    /// Bookings undone so far.
    pub undone: u32,
    /// Bookings still to be undone.
    pub left: u32,
    /// Refunds that the gateway has not confirmed yet.
    pub refunds_open: u32,
    /// Refunds of what was paid at a counter, which wait there for the customer.
    #[serde(default)]
    pub refunds_at_counter: u32,
    /// Whether every booking is undone.
    pub finished: bool,
}

/// A show as its organiser sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OrganisedShow {
    /// The show.
    pub id: Uuid,
    /// Slug of the film.
    pub film: String,
    /// Its title.
    pub title: String,
    /// Slug of the screen.
    pub screen: String,
    /// Its name.
    pub screen_name: String,
    /// When it starts on the clocks of the theatre, `2026-12-07T20:15:00`.
    pub starts_local: String,
    /// The same in milliseconds since 1970.
    pub starts_at_ms: i64,
    /// Language spoken.
    pub language: String,
    /// How it is shown.
    pub format: String,
    /// ISO 4217 code of its prices.
    pub currency: String,
    /// Price by category, minor units.
    pub prices: BTreeMap<String, i64>,
    /// How it is sold.
    pub terms: TermsOfSale,
    /// Which version of the terms this is; a change names the one it was made from.
    pub version: u32,
    /// Seats and places of its room.
    pub seats: u32,
    /// Seats and places that are sold.
    pub sold: u32,
    /// Set when it will not take place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationView>,
    /// Its last move to another screen. Only when a single show is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MoveView>,
}

/// `POST …/programme/{show}/defective-seats`: seats to be taken out of sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DefectiveSeatsRequest {
    /// Their names, as they are printed: `C7`. 1 to 20.
    pub seats: Vec<String>,
    /// In every planned show of the screen, or in this one alone.
    #[serde(default)]
    pub all_shows: bool,
    /// The reason in one line, for the notice to their buyers.
    pub reason: String,
}

/// Seats that were taken out of sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DefectiveSeatsView {
    /// Their names.
    pub seats: Vec<String>,
    /// In so many shows.
    pub shows: u32,
    /// Bookings that had one of them, sold or being paid for: their money for it goes back within seconds.
    pub bookings: u32,
    /// The first ten shows of the screen, by their ids, whose room lacks one of these seats: there the others are out of
    /// sale.
    pub elsewhere: Vec<Uuid>,
}

/// `POST …/programme/{show}/cancel`: it will not take place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelShowRequest {
    /// Why, in one line: buyers are told.
    pub reason: String,
}

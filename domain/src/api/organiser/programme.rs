//! JSON of a week's programme: shows are planned, listed and cancelled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::terms::TermsOfSale;
use crate::api::moving::MoveView;
use crate::pricing::{Format, Weekday};

/// Handling of a start time that a daylight-saving change skips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = InGap))]
#[serde(rename_all = "snake_case")]
pub enum SkippedTimeHandling {
    /// Refuses the whole request and names the time.
    #[default]
    Refuse,
    /// Moves the show to the first time after the skipped hour and reports it.
    Move,
}

/// Start times of shows on one weekday.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DayPattern {
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "monday"))]
    pub weekday: Weekday,
    /// Start times in the theatre's time zone, `20:15`.
    pub times: Vec<String>,
}

/// `POST /theatres/{theatre}/programme`: weeks of shows by a pattern, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ShowsRequest {
    /// Slug of the screen.
    pub screen: String,
    /// Slug of the film.
    pub film: String,
    /// Language spoken.
    pub language: String,
    /// Projection format.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "2D"))]
    pub format: Format,
    /// The first day, `2026-12-07`.
    pub from: String,
    /// Number of weeks, starting with `from`.
    pub weeks: u32,
    /// The pattern of a week.
    pub pattern: Vec<DayPattern>,
    /// Time for cleaning between the end of a show and the start of the next, minutes.
    pub cleaning_minutes: u32,
    /// Handling of a start time that a daylight-saving change skips.
    #[serde(default)]
    pub in_gap: SkippedTimeHandling,
    /// Terms of sale of every show.
    #[serde(default)]
    pub terms: TermsOfSale,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// A show that was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedShow {
    /// The show.
    pub id: Uuid,
    /// When it starts, RFC 3339.
    pub starts_at: String,
    /// Start in the theatre's time zone, `2026-12-07T20:15:00`.
    pub starts_local: String,
    /// True if a daylight-saving change skipped the requested time and the show starts later.
    pub moved: bool,
}

/// Planned shows in the order of their start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedShows {
    /// The shows.
    pub shows: Vec<PlannedShow>,
}

/// `GET /theatres/{theatre}/programme`: selects a week.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct WeekQuery {
    /// First of seven days, `2026-12-07`; default: today.
    pub from: Option<String>,
}

/// Progress of a show's cancellation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancellationView {
    /// The reason that buyers are given.
    pub reason: String,
    /// Bookings cancelled so far.
    pub undone: u32,
    /// Bookings still to be cancelled.
    pub left: u32,
    /// Refunds that the gateway has not confirmed yet.
    pub refunds_open: u32,
    /// Refunds of counter payments that customers have not collected yet.
    #[serde(default)]
    pub refunds_at_counter: u32,
    /// True once every booking is cancelled.
    pub finished: bool,
}

/// A show as its organiser sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// Start in the theatre's time zone, `2026-12-07T20:15:00`.
    pub starts_local: String,
    /// The same in milliseconds since 1970.
    pub starts_at_ms: i64,
    /// Running time of the film, minutes.
    pub running_minutes: u32,
    /// Time for cleaning after the show, minutes.
    pub cleaning_minutes: u32,
    /// Language spoken.
    pub language: String,
    /// Projection format.
    pub format: String,
    /// ISO 4217 code of its prices.
    pub currency: String,
    /// Price by category, minor units.
    pub prices: BTreeMap<String, i64>,
    /// Terms of sale.
    pub terms: TermsOfSale,
    /// Version of the terms. A change names the version that it was made from.
    pub version: u32,
    /// Number of seats and places in the room.
    pub seats: u32,
    /// Number of sold seats and places.
    pub sold: u32,
    /// Progress of the cancellation, if the show is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationView>,
    /// The last move to another screen. Present only when a single show is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MoveView>,
    /// Prices by category that a draft kept in its move, where the tariff has others for its new start, minor units.
    /// Present only in the response to the move.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_prices: BTreeMap<String, i64>,
}

/// `POST …/programme/{show}/defective-seats`: takes seats out of sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DefectiveSeatsRequest {
    /// Their names, as they are printed: `C7`. 1 to 20.
    pub seats: Vec<String>,
    /// True: in every planned show of the screen. False: in this show only.
    #[serde(default)]
    pub all_shows: bool,
    /// The reason in one line. Their buyers read it in the notice.
    pub reason: String,
}

/// Seats that were taken out of sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DefectiveSeatsView {
    /// Their names.
    pub seats: Vec<String>,
    /// Number of shows in which they were taken out of sale.
    pub shows: u32,
    /// Number of sold or pending bookings with one of these seats. Their money for it is refunded within seconds.
    pub bookings: u32,
    /// Ids of the first ten shows of the screen whose room lacks one of these seats. In those shows the remaining seats
    /// are out of sale.
    pub elsewhere: Vec<Uuid>,
}

/// `POST …/programme/{show}/cancel`: cancels a show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelShowRequest {
    /// The reason in one line. Buyers read it.
    pub reason: String,
}

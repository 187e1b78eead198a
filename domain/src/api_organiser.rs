//! JSON of what organisers do: rooms, weeks of shows, prices, how shows are sold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::SeatKind;
use crate::api_moving::MoveView;
use crate::layout::import::Finding;
use crate::pricing::{Format, Weekday};

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// `POST /theatres/{theatre}/layouts`: a room in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LayoutImport {
    /// The room's name where the file has none.
    #[serde(default)]
    pub name: String,
    /// Whether what is printed on seats may be changed where it is missing or somebody else's.
    #[serde(default)]
    pub mend: bool,
    /// The public seating-plan JSON, or a layout file of ours.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub plan: serde_json::Value,
}

/// A category of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct LayoutCategory {
    /// The name prices go by.
    pub name: String,
    /// The name for people.
    pub label: String,
    /// What its seats are.
    pub kind: SeatKind,
    /// Its seats.
    pub seats: u32,
}

/// A room that was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct LayoutView {
    /// The room.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its seats.
    pub seats: u32,
    /// Its rows.
    pub rows: u32,
    /// Its sections.
    pub sections: u32,
    /// Places in areas without numbered seats.
    pub places: u32,
    /// Its categories.
    pub categories: Vec<LayoutCategory>,
    /// What was changed, and what may surprise.
    pub remarks: Vec<Finding>,
    /// Whether a screen has it, or had.
    pub published: bool,
}

/// `GET …/layouts/{layout}/file`: in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct FileQuery {
    /// `seating_plan`, the public JSON, or `own`, as it was brought.
    pub form: FileForm,
}

/// A form of a room's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileForm {
    /// The public seating-plan JSON.
    #[default]
    SeatingPlan,
    /// As it was brought: a layout file of ours where it was one.
    Own,
}

/// `POST /theatres/{theatre}/screens`: a new screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScreenRequest {
    /// Its name for people.
    pub name: String,
    /// Its room, which was imported here.
    pub layout: Uuid,
    /// Why, in one line.
    pub reason: String,
}

/// `POST /theatres/{theatre}/screens/{screen}/layout`: another room for shows planned from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishRequest {
    /// The room, which was imported here.
    pub layout: Uuid,
    /// Why, in one line.
    pub reason: String,
}

/// A screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ScreenView {
    /// Its name in addresses.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its room for shows planned from now on.
    pub layout: Uuid,
    /// How many rooms it has had, this one included.
    pub version: u32,
    /// Seats of that room.
    pub seats: u32,
    /// Shows to come, in whichever room they were planned.
    pub shows: u32,
}

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

/// What a theatre asks for its seats. Amounts are minor units of its currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffView {
    /// Weekday evening price by category.
    pub base: BTreeMap<String, i64>,
    /// Percent of the base on Saturday and Sunday.
    pub weekend_percent: i64,
    /// Percent of the base before 17:00.
    pub matinee_percent: i64,
    /// Percent of the base from then on.
    pub prime_percent: i64,
    /// Added for a format.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, i64>))]
    pub surcharge: BTreeMap<Format, i64>,
    /// Which version this is; a change names the one it was made from. 0 before the first.
    #[serde(default)]
    pub version: u32,
}

/// `POST /theatres/{theatre}/tariff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffRequest {
    /// What it asks from now on, for shows planned from now on.
    pub tariff: TariffView,
    /// Why, in one line.
    pub reason: String,
}

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
    /// On-sale day: holds of 90 seconds that nobody extends.
    pub flash_sale: bool,
    /// Seats one person may have, 1 to 10.
    pub per_person: u32,
}

impl Default for TermsOfSale {
    fn default() -> Self {
        Self { sales: Sales::Open, sales_from: None, hold_seconds: 300, flash_sale: false, per_person: 10 }
    }
}

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

/// `POST …/programme/{show}/cancel`: it will not take place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelShowRequest {
    /// Why, in one line: buyers are told.
    pub reason: String,
}

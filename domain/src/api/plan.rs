//! JSON of a room as a show sells it: what stands where, what it costs, and its seats and places by name.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::money::Money;
use crate::seats::{AreaIndex, SeatIndex};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What a seat is for; decides its drawing, its list text and later its companions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SeatKind {
    /// An ordinary seat.
    #[default]
    Standard,
    /// A reclining seat.
    Recliner,
    /// Half of a sofa for two; its partner is the neighbour in the same row.
    Couple,
    /// A space for a wheelchair.
    Wheelchair,
    /// The seat beside a wheelchair space.
    Companion,
}

/// A price category as one show sells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CategoryView {
    /// Name as in the layout, for example `gold`.
    pub name: String,
    /// Name for people, for example `Gold`.
    pub label: String,
    /// What its seats are.
    pub kind: SeatKind,
    /// Price of one seat of this category in this show.
    pub price: Money,
}

/// One row of seats; the four lists run in parallel, seat after seat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RowView {
    /// Row letter or number, for example `C`.
    pub label: String,
    /// Index of its first seat; the others follow without a gap.
    pub first: SeatIndex,
    /// Seat numbers as printed, for example `7` or `14 bis`.
    pub numbers: Vec<String>,
    /// Centre of each seat, plan units from the left.
    pub x: Vec<i32>,
    /// Centre of each seat, plan units from the top.
    pub y: Vec<i32>,
    /// Index into [`PlanView::categories`] of each seat.
    pub category: Vec<u8>,
}

/// A part of the room with a name of its own: stalls, circle, block 104.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SectionView {
    /// Name for people; empty in a room of one part.
    pub name: String,
    /// Its rows, `A–K`, where a part of a room is so large that it is shown in several sections of one name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Index of its first seat.
    pub first: SeatIndex,
    /// How many seats it has; they are numbered without a gap.
    pub count: u32,
    /// The box around its seats in plan units: left, top, right, bottom.
    pub bounds: [i32; 4],
    /// Its cheapest category, as an index into [`PlanView::categories`].
    pub category: u8,
    /// Its rows; empty in the overview of a large room, then asked for with `?section=`.
    pub rows: Vec<RowView>,
}

/// The room of a show with its prices: everything about the seat map that does not change while one
/// looks. `GET /shows/{id}/plan`, one section of a large room with `?section=N`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PlanView {
    /// The show.
    pub show: Uuid,
    /// How many seats it has: indices 0 to `seat_count - 1`.
    pub seat_count: u32,
    /// Width of the room in plan units; a seat is about [`SEAT_PITCH`] wide.
    pub width: i32,
    /// Height of the room in plan units.
    pub height: i32,
    /// What everyone looks at: `screen` or `stage`.
    pub focus: String,
    /// Where it is: centre x, y and width, in plan units.
    pub focus_at: [i32; 3],
    /// Categories with the prices of this show.
    pub categories: Vec<CategoryView>,
    /// Sections in the order of their seats.
    pub sections: Vec<SectionView>,
    /// Whether `sections` carries no rows because the room is large.
    pub overview: bool,
    /// Areas without numbered seats, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaView>,
    /// Names the room these seats are numbered in: it is another once the show was moved to another screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Uuid>,
}

/// An area where nobody has a seat of their own, as one show sells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct AreaView {
    /// The area.
    pub area: AreaIndex,
    /// Name for people, for example `Standing floor`.
    pub name: String,
    /// Name of its category as in the layout, for example `floor`.
    pub category: String,
    /// Its category's name for people.
    pub category_label: String,
    /// Price of one place.
    pub price: Money,
    /// How many places it has.
    pub capacity: u32,
}

/// Distance of two neighbouring seats in plan units.
pub const SEAT_PITCH: i32 = 20;
/// Rooms with more seats than this are sent as an overview, section by section.
pub const OVERVIEW_ABOVE_SEATS: u32 = 2_500;

/// A seat by name, with its price, as a hold or a booking lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SeatLine {
    /// The seat.
    pub seat: SeatIndex,
    /// Its name for people, for example `C7` or `Circle C7`.
    pub label: String,
    /// Its category's name for people.
    pub category: String,
    /// Its price.
    pub price: Money,
}

/// Places in an area by name, with their price, as a hold or a booking lists them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PlaceLine {
    /// The area.
    pub area: AreaIndex,
    /// Its name for people, for example `Standing floor`.
    pub label: String,
    /// Its category's name for people.
    pub category: String,
    /// Price of one place.
    pub price: Money,
    /// How many places.
    pub quantity: u32,
}

impl PlaceLine {
    /// Price of all of them.
    #[must_use]
    pub fn total(&self) -> Money {
        Money::new(self.price.minor.saturating_mul(i64::from(self.quantity)), self.price.currency)
    }
}

//! JSON of a show's seating plan: positions, prices, and the names of seats and places.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SeatKind;
use crate::money::Money;
use crate::seats::{AreaIndex, SeatIndex};

/// A price category as one show sells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CategoryView {
    /// Name as in the layout, for example `gold`.
    pub name: String,
    /// Name for people, for example `Gold`.
    pub label: String,
    /// Kind of its seats.
    pub kind: SeatKind,
    /// Price of one seat of this category in this show.
    pub price: Money,
}

/// A row of seats. Its four lists have one entry per seat, in the same order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// Direction in which each seat faces, degrees clockwise from the top. Empty if all of them face the top.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turn: Vec<i32>,
}

/// A drawing in the room: an area for sale, a table, a bar, a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShapeView {
    /// Its middle in plan units: x, y.
    pub at: [i32; 2],
    /// Corners of its outline in plan units: x, y, x, y… Empty for a text alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corners: Vec<i32>,
    /// Its text; may be empty.
    pub text: String,
    /// The area without numbered seats that it is. It has an outline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<AreaIndex>,
}

/// A named part of the room: stalls, circle, block 104.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SectionView {
    /// Display name; empty if the room has only one section.
    pub name: String,
    /// Row range, `A–K`, if a large part of a room is divided into several sections of the same name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Index of its first seat.
    pub first: SeatIndex,
    /// Number of seats. Their indices are contiguous.
    pub count: u32,
    /// Bounding box of its seats in plan units: left, top, right, bottom.
    pub bounds: [i32; 4],
    /// Its cheapest category, as an index into [`PlanView::categories`].
    pub category: u8,
    /// Its rows. Empty in the overview of a large room; `?section=` loads them.
    pub rows: Vec<RowView>,
}

/// Seating plan and prices of a show: the part of the seat map that does not change during a visit. `GET
/// /shows/{id}/plan` returns it; `?section=N` returns one section of a large room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanView {
    /// The show.
    pub show: Uuid,
    /// Number of seats; their indices are 0 to `seat_count - 1`.
    pub seat_count: u32,
    /// Width of the room in plan units; a seat is about [`SEAT_PITCH`] wide.
    pub width: i32,
    /// Height of the room in plan units.
    pub height: i32,
    /// The focus of the room: `screen`, `stage`, `field` or `none`. It is at the top of the plan, or in the middle.
    pub focus: String,
    /// Position of the focus: centre x, y and width, in plan units.
    pub focus_at: [i32; 3],
    /// Depth of the focus in plan units. No seat is within width and depth; 0 if there is no space.
    pub focus_depth: i32,
    /// True if seats are all around the focus.
    pub is_round: bool,
    /// Areas without numbered seats whose place is known, and drawings that are not for sale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<ShapeView>,
    /// Categories with the prices of this show.
    pub categories: Vec<CategoryView>,
    /// Sections in the order of their seats.
    pub sections: Vec<SectionView>,
    /// True for a large room, in which a section has rows only if it was requested with `?section=`.
    pub overview: bool,
    /// Areas without numbered seats, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaView>,
    /// Id of the room that the seat indices refer to. It changes when the show moves to another screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Uuid>,
}

/// An area without numbered seats, as sold in one show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AreaView {
    /// The area.
    pub area: AreaIndex,
    /// Display name, for example `Standing floor`.
    pub name: String,
    /// Name of its category as in the layout, for example `floor`.
    pub category: String,
    /// Display name of its category.
    pub category_label: String,
    /// Price of one place.
    pub price: Money,
    /// Number of places.
    pub capacity: u32,
}

/// Distance between neighbouring seats in plan units.
pub const SEAT_PITCH: i32 = 20;
/// Seat count above which a room is sent as an overview, with sections loaded one by one.
pub const OVERVIEW_ABOVE_SEATS: u32 = 2_500;

/// A seat with its name and price, as listed in a hold or a booking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeatLine {
    /// The seat.
    pub seat: SeatIndex,
    /// Display name, for example `C7` or `Circle C7`.
    pub label: String,
    /// Display name of its category.
    pub category: String,
    /// Its price.
    pub price: Money,
}

/// Places in an area with their name and price, as listed in a hold or a booking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaceLine {
    /// The area.
    pub area: AreaIndex,
    /// Display name of the area, for example `Standing floor`.
    pub label: String,
    /// Display name of its category.
    pub category: String,
    /// Price of one place.
    pub price: Money,
    /// Number of places.
    pub quantity: u32,
}

impl PlaceLine {
    /// Price of all places.
    #[must_use]
    pub fn total(&self) -> Money {
        Money::new(self.price.minor.saturating_mul(i64::from(self.quantity)), self.price.currency)
    }
}

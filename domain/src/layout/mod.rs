//! The room as it is sold: zones, rows and seats, each seat with a dense number, a place, a category
//! and a name for people.
//!
//! A [`Layout`] is read from one of two forms, told apart by their keys: the public seating-plan JSON
//! ([`seating_plan`]), kept without loss, or a short hand-written [`sketch`]. It is stored as the very
//! JSON it was read from and measured once, when it is read. Prices come in as arguments
//! ([`Layout::plan_view`]); what a seat is doing right now is not here at all. Files of strangers come in through
//! [`import`], which names everything that is wrong with one.

mod areas;
pub mod editing;
mod error;
mod frame;
pub mod import;
mod room;
pub mod seating_plan;
pub mod sketch;
#[cfg(test)]
mod tests;
mod view;

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use areas::{Area, MAX_AREA_CAPACITY};
pub use error::{LayoutError, MAX_CATEGORIES, MAX_COORDINATE, MAX_NAME_CHARS, MAX_ROOM_SIDE};
pub use frame::MARGIN;
use room::Room;
pub use room::{Category, Focus, FocusKind};
use seating_plan::SeatingPlan;
use sketch::Sketch;
pub use view::PlanError;

use crate::seats::SeatIndex;
use crate::wire::Dot;

/// A room, checked and numbered. Immutable: a changed room is another layout.
#[derive(Clone, Debug)]
pub struct Layout {
    source: Source,
    room: Room,
    /// Places without seats that are for sale.
    areas: Vec<Area>,
}

/// What a layout was read from.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Plan(Box<SeatingPlan>),
    Sketch(Box<Sketch>),
}

/// One seat of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatRef<'a> {
    /// The zone's name; empty in a room of one part.
    pub zone: &'a str,
    /// The row's label; may be empty.
    pub row: &'a str,
    /// The number on the seat.
    pub number: &'a str,
    /// The name for people, unique in the room: see [`Layout::label`].
    pub label: String,
    /// Index into [`Layout::categories`].
    pub category: u8,
}

impl Layout {
    /// Reads a file of either form: one with the key `sketch` is a sketch, else a seating plan.
    ///
    /// # Errors
    /// What is wrong with the file, and where.
    pub fn from_json(text: &str) -> Result<Self, LayoutError> {
        let value = serde_json::from_str(text).map_err(shape)?;
        Self::from_value(value)
    }

    fn from_value(value: Value) -> Result<Self, LayoutError> {
        if value.get("sketch").is_some() {
            Self::from_sketch(serde_json::from_value(value).map_err(shape)?)
        } else {
            Self::from_seating_plan(value)
        }
    }

    /// Reads the public seating-plan JSON.
    ///
    /// # Errors
    /// What is wrong with the plan, and where.
    pub fn from_seating_plan(json: Value) -> Result<Self, LayoutError> {
        let plan: SeatingPlan = serde_json::from_value(json).map_err(shape)?;
        let areas = areas::of_plan(&plan);
        areas::check(&areas, &plan.categories.iter().map(|category| category.name.as_str()).collect())?;
        let room = Room::build(plan.draw()?)?;
        Ok(Self { source: Source::Plan(Box::new(plan)), room, areas })
    }

    /// Expands a sketch.
    ///
    /// # Errors
    /// What is wrong with the sketch, and where.
    pub fn from_sketch(sketch: Sketch) -> Result<Self, LayoutError> {
        let areas = sketch.areas.clone();
        areas::check(&areas, &sketch.categories.iter().map(|category| category.name.as_str()).collect())?;
        let room = Room::build(sketch.draw()?)?;
        Ok(Self { source: Source::Sketch(Box::new(sketch)), room, areas })
    }

    /// The room in the public seating-plan JSON: the very value it was imported from, or a sketch
    /// written out, with our additional keys: `label` and `kind` of categories, `focus`, and what makes a drawing an
    /// area for sale.
    #[must_use]
    pub fn to_seating_plan(&self) -> Value {
        let plan = match &self.source {
            Source::Plan(plan) => serde_json::to_value(plan),
            Source::Sketch(sketch) => {
                let drawing = sketch.draw().expect("it was drawn when the layout was read");
                serde_json::to_value(seating_plan::write(&sketch.name, &drawing, &self.areas))
            }
        };
        plan.expect("a plan has string keys and finite numbers, so it is always JSON")
    }

    /// The room's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.source {
            Source::Plan(plan) => &plan.name,
            Source::Sketch(sketch) => &sketch.name,
        }
    }

    /// How many seats: indices 0 to one less.
    #[must_use]
    pub fn seat_count(&self) -> u32 {
        self.room.seats.len() as u32
    }

    /// The seats of each section, in the order of the plan. Seats are numbered section by section, so
    /// these ranges lie one after the other and cover the room.
    pub fn sections(&self) -> impl Iterator<Item = Range<SeatIndex>> {
        self.room.zones.iter().map(|zone| zone.first..zone.first + zone.count)
    }

    /// The seats of each row, in the order of their numbers.
    pub fn rows(&self) -> impl Iterator<Item = Range<SeatIndex>> {
        self.room.rows.iter().map(|row| row.first..row.first + row.count)
    }

    /// Where a seat is, plan units, and its category; `None` beyond the last.
    #[must_use]
    pub fn place(&self, index: SeatIndex) -> Option<((i32, i32), u8)> {
        self.room.seats.get(index as usize).map(|seat| ((seat.x, seat.y), seat.category))
    }

    /// Where every seat is, for painting the whole room: see [`crate::wire::encode_dots`].
    #[must_use]
    pub fn dots(&self) -> Vec<Dot> {
        self.room.seats.iter().map(|seat| Dot { x: seat.x, y: seat.y, category: seat.category }).collect()
    }

    /// Width and height of the room, plan units.
    #[must_use]
    pub fn size(&self) -> (i32, i32) {
        (self.room.width, self.room.height)
    }

    /// What everyone looks at, and its centre and width, plan units: x, y, width.
    #[must_use]
    pub fn focus(&self) -> (FocusKind, [i32; 3]) {
        (self.room.focus, self.room.focus_at)
    }

    /// Areas without seats that are for sale; an area's number is its place among them. Drawings of a public seating
    /// plan that have no capacity are not among them.
    #[must_use]
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// The price categories; a seat's category is an index into them.
    #[must_use]
    pub fn categories(&self) -> &[Category] {
        &self.room.categories
    }

    /// A seat by its index, in O(log rows); `None` beyond the last.
    #[must_use]
    pub fn seat(&self, index: SeatIndex) -> Option<SeatRef<'_>> {
        let row = self.room.row_of(index)?;
        let seat = &self.room.seats[index as usize];
        Some(SeatRef {
            zone: self.room.section_name(row.zone),
            row: &row.label,
            number: &seat.number,
            label: self.room.label(row, seat),
            category: seat.category,
        })
    }

    /// The seat's name for people, unique in the room.
    ///
    /// Row and number, `C7`; with a hyphen where two digits would meet, `12-7`; with the zone in front
    /// when the room has more than one with seats, `Circle C7`.
    #[must_use]
    pub fn label(&self, index: SeatIndex) -> Option<String> {
        let row = self.room.row_of(index)?;
        Some(self.room.label(row, &self.room.seats[index as usize]))
    }

    /// All seats in the order of their indices.
    pub fn seats(&self) -> impl Iterator<Item = SeatRef<'_>> {
        (0..self.seat_count()).filter_map(|index| self.seat(index))
    }

    /// The seat people call `label`. Looks at every seat: for loading, not for requests.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<SeatIndex> {
        (0..self.seat_count()).find(|index| self.label(*index).as_deref() == Some(label))
    }
}

fn shape(error: serde_json::Error) -> LayoutError {
    LayoutError::Shape(error.to_string())
}

impl PartialEq for Layout {
    /// Equal sources make equal rooms.
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Layout {
    /// The JSON it was read from, so that what is stored stays small and readable.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.source {
            Source::Plan(plan) => plan.serialize(serializer),
            Source::Sketch(sketch) => sketch.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

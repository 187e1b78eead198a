//! Seating layout of a room: zones, rows and seats. Each seat has a dense index, a position, a category and a display
//! name. A layout may also have only areas without numbered seats.
//!
//! A [`Layout`] is parsed from one of two formats, which are distinguished by their keys: the public seating-plan JSON
//! ([`seating_plan`]), kept without loss, or a short hand-written [`sketch`]. It is stored as the JSON it was parsed
//! from and measured once, when it is parsed. Prices are arguments ([`Layout::plan_view`]); the current state of seats
//! is not part of a layout. Uploaded files are parsed by [`import`], which reports all their errors.

mod areas;
pub mod editing;
mod error;
mod frame;
pub mod import;
mod room;
pub mod seating_plan;
mod shapes;
pub mod sketch;
#[cfg(test)]
mod tests;
mod view;

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use areas::{Area, MAX_AREA_CAPACITY};
pub use error::{LayoutError, MAX_CATEGORIES, MAX_COORDINATE, MAX_NAME_CHARS, MAX_ROOM_SIDE};
pub use frame::MARGIN;
pub use room::{Category, Focus, FocusChoice, FocusKind, FocusSide, PlacedFocus};
use room::{Drawing, MeasuredRoom};
use seating_plan::{PlanZone, SeatingPlan};
use sketch::Sketch;
pub use view::PlanError;

use crate::api::SeatKind;
use crate::seats::SeatIndex;
use crate::wire::Dot;

/// A room, validated and numbered. Immutable: a changed room is another layout.
#[derive(Clone, Debug)]
pub struct Layout {
    source: Source,
    room: MeasuredRoom,
    /// Areas without numbered seats that are for sale.
    areas: Vec<Area>,
}

/// Parsed source of a layout.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Plan(Box<SeatingPlan>),
    Sketch(Box<Sketch>),
}

/// One seat of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatRef<'a> {
    /// Name of the zone; empty if the room has only one.
    pub zone: &'a str,
    /// Label of the row; may be empty.
    pub row: &'a str,
    /// Number of the seat.
    pub number: &'a str,
    /// Display name, unique in the room: see [`Layout::label`].
    pub label: String,
    /// Index into [`Layout::categories`].
    pub category: u8,
}

impl Layout {
    /// Parses a file of either format: a sketch if it has the key `sketch`, otherwise a seating plan.
    ///
    /// # Errors
    /// [`LayoutError`] with the error and its position in the file.
    pub fn from_json(text: &str) -> Result<Self, LayoutError> {
        let value = serde_json::from_str(text).map_err(shape_error)?;
        Self::from_value(value)
    }

    fn from_value(value: Value) -> Result<Self, LayoutError> {
        if value.get("sketch").is_some() {
            Self::from_sketch(serde_json::from_value(value).map_err(shape_error)?)
        } else {
            Self::from_seating_plan(value)
        }
    }

    /// Parses the public seating-plan JSON.
    ///
    /// # Errors
    /// [`LayoutError`] with the error and its position in the plan.
    pub fn from_seating_plan(json: Value) -> Result<Self, LayoutError> {
        let plan: SeatingPlan = serde_json::from_value(json).map_err(shape_error)?;
        let areas = areas::areas_of_plan(&plan);
        areas::check(&areas, &plan.categories.iter().map(|category| category.name.as_str()).collect())?;
        let room = MeasuredRoom::build(plan.draw()?, &areas)?;
        Ok(Self { source: Source::Plan(Box::new(plan)), room, areas })
    }

    /// Expands a sketch.
    ///
    /// # Errors
    /// [`LayoutError`] with the error and its position in the sketch.
    pub fn from_sketch(sketch: Sketch) -> Result<Self, LayoutError> {
        let areas = sketch.areas.clone();
        areas::check(&areas, &sketch.categories.iter().map(|category| category.name.as_str()).collect())?;
        let room = MeasuredRoom::build(sketch.draw()?, &areas)?;
        Ok(Self { source: Source::Sketch(Box::new(sketch)), room, areas })
    }

    /// Returns the room in the public seating-plan JSON: the imported value, or an expanded sketch. It includes our
    /// additional keys: `label` and `kind` of categories, `focus`, and the keys that make a drawing an area for sale.
    #[must_use]
    pub fn to_seating_plan(&self) -> Value {
        serde_json::to_value(self.plan()).expect("a plan has string keys and finite numbers, so it is always JSON")
    }

    fn plan(&self) -> Cow<'_, SeatingPlan> {
        match &self.source {
            Source::Plan(plan) => Cow::Borrowed(plan),
            Source::Sketch(sketch) => {
                let drawing = sketch.draw().expect("it was drawn when the layout was read");
                Cow::Owned(seating_plan::write(&sketch.name, &drawing, &self.areas))
            }
        }
    }

    /// Returns name and number of seats of each zone of [`Layout::to_seating_plan`]: unlike [`Layout::sections`] also of
    /// zones without seats, and of large ones as a whole.
    #[must_use]
    pub fn zones(&self) -> Vec<(String, usize)> {
        let facts = |zone: &PlanZone| {
            (zone.name.clone().unwrap_or_default(), zone.rows.iter().map(|row| row.seats.len()).sum::<usize>())
        };
        self.plan().zones.iter().map(facts).collect()
    }

    /// Name of the room.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.source {
            Source::Plan(plan) => &plan.name,
            Source::Sketch(sketch) => &sketch.name,
        }
    }

    /// Number of seats; their indices are 0 to one less.
    #[must_use]
    pub fn seat_count(&self) -> u32 {
        self.room.seats.len() as u32
    }

    /// Returns the seats of each section, in plan order. Seats are numbered section by section, so these ranges are
    /// contiguous and cover the room.
    pub fn sections(&self) -> impl Iterator<Item = Range<SeatIndex>> {
        self.room.zones.iter().map(|zone| zone.first..zone.first + zone.count)
    }

    /// Returns the seats of each row, in seat order.
    pub fn rows(&self) -> impl Iterator<Item = Range<SeatIndex>> {
        self.room.rows.iter().map(|row| row.first..row.first + row.count)
    }

    /// Returns the position of a seat in plan units, and its category; `None` beyond the last seat.
    #[must_use]
    pub fn place(&self, index: SeatIndex) -> Option<((i32, i32), u8)> {
        self.room.seats.get(index as usize).map(|seat| ((seat.x, seat.y), seat.category))
    }

    /// Returns the positions of all seats, to draw the whole room: see [`crate::wire::encode_dots`].
    #[must_use]
    pub fn dots(&self) -> Vec<Dot> {
        self.room.seats.iter().map(|seat| Dot { x: seat.x, y: seat.y, category: seat.category }).collect()
    }

    /// Returns width and height of the room, plan units.
    #[must_use]
    pub fn size(&self) -> (i32, i32) {
        (self.room.width, self.room.height)
    }

    /// Returns the focus of the room.
    #[must_use]
    pub fn focus(&self) -> PlacedFocus {
        self.room.focus
    }

    /// Returns kind and side of the focus as the file or a person stated them; `None` if the stage above the seats is an
    /// assumption. The rows of a sketch begin at its focus.
    #[must_use]
    pub fn known_focus(&self) -> Option<FocusChoice> {
        let is_known = match &self.source {
            Source::Plan(plan) => plan.rest.contains_key("focus"),
            Source::Sketch(_) => true,
        };
        is_known.then_some(FocusChoice { kind: self.room.focus.kind, side: self.room.focus.side })
    }

    /// Returns the same room with another focus, on that side of its seats.
    ///
    /// # Errors
    /// [`LayoutError`] if the room with it is too large.
    pub fn with_focus(&self, choice: FocusChoice) -> Result<Self, LayoutError> {
        let drawing = self.source.draw()?;
        let focus = frame::focus_at(&drawing, choice.kind, choice.side);
        self.refocused(drawing, focus)
    }

    fn refocused(&self, mut drawing: Drawing, focus: Focus) -> Result<Self, LayoutError> {
        drawing.focus = Some(focus);
        let mut source = self.source.clone();
        source.set_focus(focus);
        Ok(Self { source, room: MeasuredRoom::build(drawing, &self.areas)?, areas: self.areas.clone() })
    }

    /// Returns the areas without numbered seats that are for sale, by index. Drawings of a public seating plan without
    /// a capacity are excluded.
    #[must_use]
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// Returns the kind of a seat.
    #[must_use]
    pub fn seat_kind(&self, index: SeatIndex) -> SeatKind {
        let category = self.place(index).and_then(|(_, own)| self.categories().get(usize::from(own)));
        category.map_or(SeatKind::Standard, |category| category.kind)
    }

    /// Returns the price categories, to which the categories of seats are indices.
    #[must_use]
    pub fn categories(&self) -> &[Category] {
        &self.room.categories
    }

    /// Returns a seat by its index, in O(log rows); `None` beyond the last seat.
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

    /// Returns the display name of a seat, unique in the room.
    ///
    /// It is row and number, `C7`; with a hyphen between two digits, `12-7`; with the zone in front if several zones
    /// have seats, `Circle C7`.
    #[must_use]
    pub fn label(&self, index: SeatIndex) -> Option<String> {
        let row = self.room.row_of(index)?;
        Some(self.room.label(row, &self.room.seats[index as usize]))
    }

    /// Iterates over all seats in index order.
    pub fn seats(&self) -> impl Iterator<Item = SeatRef<'_>> {
        (0..self.seat_count()).filter_map(|index| self.seat(index))
    }

    /// Finds a seat by its display name. It scans all seats, so it is for loading, not for requests.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<SeatIndex> {
        (0..self.seat_count()).find(|index| self.label(*index).as_deref() == Some(label))
    }
}

impl Source {
    fn draw(&self) -> Result<Drawing, LayoutError> {
        match self {
            Self::Plan(plan) => plan.draw(),
            Self::Sketch(sketch) => sketch.draw(),
        }
    }

    fn set_focus(&mut self, focus: Focus) {
        match self {
            Self::Plan(plan) => {
                plan.rest.insert("focus".to_owned(), seating_plan::json(&focus));
            }
            Self::Sketch(sketch) => sketch.focus = Some(focus),
        }
    }
}

fn shape_error(error: serde_json::Error) -> LayoutError {
    LayoutError::Shape(error.to_string())
}

impl PartialEq for Layout {
    /// Compares sources, since equal sources make equal rooms.
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Layout {
    /// Writes the source JSON, so that stored layouts stay small and readable.
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

//! Editor of a room: rows, areas, categories and sections, the commands that change them, and undo.
//!
//! A [`Draft`] is parsed from the public seating plan and written as one. A drawn room therefore passes the same
//! [`import`](super::import) checks as an uploaded file. Keys of other editors are kept with their object, so nothing
//! of a plan is lost. A row stores its middle, rotation and bow, and each seat only its distance along the row, so that
//! a row is bent, rotated and numbered as a unit. Seats of an uploaded row that are not on the curve keep their
//! deviation.
//!
//! Commands are pure ([`Draft::apply`]); a refused command changes nothing. [`History`] keeps snapshots, which share
//! unchanged rows.
//!
//! A draft has a whole room, or one section of a larger room with the other sections unchanged beside it.

mod command;
mod curve;
mod history;
mod numbering;
mod others;
mod reading;
mod rows;
#[cfg(test)]
mod tests;
mod writing;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::curve::add;
use self::others::OtherSections;
use super::areas::MAX_AREA_CAPACITY;
use super::error::{MAX_CATEGORIES, MAX_COORDINATE, MAX_NAME_CHARS};
use super::import::{Finding, FindingKind, import};
use super::room::{Category, Focus, FocusKind, FocusSide, name_of};
use crate::api::SEAT_PITCH;
use crate::seats::MAX_AREAS_PER_SHOW;

pub use command::{Command, CommandError, NewRows};
pub use history::{History, MAX_UNDO_STEPS};
pub use numbering::{Numbering, label_after};
pub use reading::DraftError;
pub(super) use reading::outline_of;

/// Maximum number of seats edited at once: larger rooms are edited section by section, and larger sections are
/// read-only. Every change is validated and drawn at once, which is fast up to this size.
pub const MAX_EDITED_SEATS: usize = 5_000;
/// Maximum number of seats in a drawn row; uploaded rows may be longer.
pub const MAX_SEATS_PER_ROW: usize = 300;
/// Maximum number of rows drawn at once.
pub const MAX_ROWS_AT_ONCE: usize = 100;
/// Default distance between rows, in seats.
pub const ROW_GAP_SEATS: f64 = 1.2;

/// Identifier of a row, area, section or category in commands. It is never reused in a draft.
pub type ObjectKey = u32;
/// A point or vector in units of the drawing: right, down.
pub type DrawingPoint = [f64; 2];

/// A room in the editor.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The room's name.
    pub name: String,
    /// Distance between seats, in units of the drawing. All other lengths have the same unit.
    pub pitch: f64,
    /// Screen, stage or field.
    pub focus: Focus,
    /// Price categories; at least one.
    pub categories: Vec<DraftCategory>,
    /// Parts of the room; at least one.
    pub sections: Vec<DraftSection>,
    /// All rows, within each section in plan order.
    pub rows: Vec<Arc<DraftRow>>,
    /// Areas without numbered seats, within each section in plan order.
    pub areas: Vec<Arc<DraftArea>>,
    next_key: ObjectKey,
    /// Other keys of the plan.
    rest: Map<String, Value>,
    /// Empty if the draft has the whole room.
    others: Arc<OtherSections>,
}

/// A price category.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftCategory {
    /// Identifier in commands.
    pub key: ObjectKey,
    /// Name, label, kind and colour.
    pub category: Category,
    rest: Map<String, Value>,
}

/// A part of the room.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftSection {
    /// Identifier in commands.
    pub key: ObjectKey,
    /// Its name, which is part of the names of its seats if the room has several sections.
    pub name: String,
    /// Corner of the section in the plan. Drawings that are not for sale are relative to it.
    origin: DrawingPoint,
    /// Drawings that are not for sale, unchanged.
    drawings: Vec<Value>,
    rest: Map<String, Value>,
}

/// A row of seats.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftRow {
    /// Identifier in commands.
    pub key: ObjectKey,
    /// The section it is in.
    pub section: ObjectKey,
    /// Letter or number.
    pub label: String,
    /// Its middle.
    pub at: DrawingPoint,
    /// Rotation, degrees clockwise; at 0 the audience faces up the page.
    pub turn: f64,
    /// Distance by which its ends are in front of its middle; negative if they are behind.
    pub bow: f64,
    /// Its seats; neighbours are adjacent in the list.
    pub seats: Vec<DraftSeat>,
    rest: Map<String, Value>,
}

/// A seat.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftSeat {
    /// The printed number.
    pub number: String,
    /// Its category.
    pub category: ObjectKey,
    /// Its index in the room that the draft was parsed from; `None` for a new seat.
    pub origin: Option<u32>,
    /// Distance from the middle, along the row.
    along: f64,
    /// Deviation from the row's curve, in coordinates of the row.
    stray: DrawingPoint,
    rest: Map<String, Value>,
}

/// An area without numbered seats.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftArea {
    /// Identifier in commands.
    pub key: ObjectKey,
    /// The section it is in.
    pub section: ObjectKey,
    /// Display name.
    pub name: String,
    /// Category of its places.
    pub category: ObjectKey,
    /// Number of places.
    pub capacity: u32,
    /// Its middle.
    pub at: DrawingPoint,
    /// Shape seen from above.
    pub outline: Outline,
    rest: Map<String, Value>,
}

/// Shape of an area, seen from above.
#[derive(Clone, Debug, PartialEq)]
pub enum Outline {
    /// Width and depth.
    Rectangle(DrawingPoint),
    /// Its corners relative to its middle, at least three.
    Polygon(Vec<DrawingPoint>),
}

impl Outline {
    /// Returns its corners relative to its middle.
    #[must_use]
    pub fn corners(&self) -> Vec<DrawingPoint> {
        match self {
            Self::Rectangle([width, depth]) => {
                let (x, y) = (width / 2.0, depth / 2.0);
                vec![[-x, -y], [x, -y], [x, y], [-x, y]]
            }
            Self::Polygon(corners) => corners.clone(),
        }
    }

    /// Returns the outline with one corner moved by the given vector. A rectangle becomes a polygon.
    #[must_use]
    pub fn with_corner(&self, corner: usize, [x, y]: DrawingPoint) -> Self {
        let mut corners = self.corners();
        if let Some(at) = corners.get_mut(corner) {
            *at = [at[0] + x, at[1] + y];
        }
        Self::Polygon(corners)
    }
}

impl Draft {
    /// Creates an empty room with a screen, one section and one category with the given name.
    #[must_use]
    pub fn new(name: &str, category: &str) -> Self {
        let pitch = f64::from(SEAT_PITCH);
        let category = Category { name: category.to_owned(), label: None, kind: Default::default(), color: None };
        Self {
            name: name.to_owned(),
            pitch,
            focus: Focus {
                kind: FocusKind::Screen,
                side: FocusSide::Top,
                at: [20.0 * pitch, 2.0 * pitch],
                width: 16.0 * pitch,
                depth: None,
            },
            categories: vec![DraftCategory { key: 0, category, rest: Map::new() }],
            sections: vec![DraftSection {
                key: 1,
                name: String::new(),
                origin: [0.0, 0.0],
                drawings: Vec::new(),
                rest: Map::new(),
            }],
            rows: Vec::new(),
            areas: Vec::new(),
            next_key: 2,
            rest: Map::new(),
            others: Arc::default(),
        }
    }

    /// True if the draft has one section of a larger room.
    #[must_use]
    pub fn is_one_section(&self) -> bool {
        !self.others.before.is_empty() || !self.others.after.is_empty()
    }

    /// Returns the positions of seats in sections that the draft keeps unchanged.
    #[must_use]
    pub fn other_seats(&self) -> &[DrawingPoint] {
        &self.others.points
    }

    /// Returns the number of seats.
    #[must_use]
    pub fn seat_count(&self) -> usize {
        self.rows.iter().map(|row| row.seats.len()).sum()
    }

    /// A row by its key.
    #[must_use]
    pub fn row(&self, key: ObjectKey) -> Option<&Arc<DraftRow>> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// An area by its key.
    #[must_use]
    pub fn area(&self, key: ObjectKey) -> Option<&Arc<DraftArea>> {
        self.areas.iter().find(|area| area.key == key)
    }

    /// Returns the position of a category in the list, which decides its colour.
    #[must_use]
    pub fn category_index(&self, key: ObjectKey) -> usize {
        self.categories.iter().position(|category| category.key == key).unwrap_or(0)
    }

    /// Returns the display name of a row, as in findings: `Circle A`.
    #[must_use]
    pub fn row_name(&self, row: &DraftRow) -> String {
        format!("{} {}", self.section_name(row.section).trim(), row.label.trim()).trim().to_owned()
    }

    /// Returns the name of a section; empty if it does not exist.
    #[must_use]
    pub fn section_name(&self, key: ObjectKey) -> &str {
        self.sections.iter().find(|section| section.key == key).map_or("", |section| &section.name)
    }

    /// Finds the rows that a finding refers to, by the seat or row that it names.
    #[must_use]
    pub fn rows_called(&self, place: &str) -> Vec<ObjectKey> {
        let mut seated: Vec<ObjectKey> = self.rows.iter().map(|row| row.section).collect();
        seated.sort_unstable();
        seated.dedup();
        let is_called = |row: &Arc<DraftRow>| {
            let section = if seated.len() > 1 { self.section_name(row.section).trim() } else { "" };
            self.row_name(row) == place
                || row.seats.iter().any(|seat| name_of(section, row.label.trim(), seat.number.trim()) == place)
        };
        self.rows.iter().filter(|row| is_called(row)).map(|row| row.key).collect()
    }

    /// Runs the import checks on what is edited: a section is checked with the whole room when it is saved. Returns the
    /// remarks.
    ///
    /// # Errors
    /// All errors, at least one finding.
    pub fn validate(&self) -> Result<Vec<Finding>, Vec<Finding>> {
        let edited = Self { others: Arc::default(), ..self.clone() };
        match import(edited.to_seating_plan(), &self.name, false) {
            Ok(read) => Ok(read.remarks),
            // A section may be empty if another one has seats.
            Err(findings)
                if !self.other_seats().is_empty()
                    && findings.iter().all(|finding| finding.kind == FindingKind::NoSeats) =>
            {
                Ok(Vec::new())
            }
            Err(findings) => Err(findings),
        }
    }

    fn new_key(&mut self) -> ObjectKey {
        let key = self.next_key;
        self.next_key += 1;
        key
    }
}

/// A rectangle in the drawing: left, top, right, bottom.
pub type Bounds = [f64; 4];

/// Distance from the screen to the first row, in seats.
const FIRST_ROW_SEATS: f64 = 3.0;

/// Returns the bounding box of points; `None` if there are none.
fn bounding_box(points: impl Iterator<Item = DrawingPoint>) -> Option<Bounds> {
    let [left, top, right, bottom] = points.fold(
        [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
        |[left, top, right, bottom], [x, y]| [left.min(x), top.min(y), right.max(x), bottom.max(y)],
    );
    (left <= right && top <= bottom).then_some([left, top, right, bottom])
}

impl Draft {
    /// Returns the points of the selected rows and areas: centres of seats, and corners.
    fn points_of(&self, is_selected: impl Fn(ObjectKey) -> bool + Copy) -> impl Iterator<Item = DrawingPoint> {
        let rows = self.rows.iter().filter(move |row| is_selected(row.key)).flat_map(|row| row.points());
        let areas = self.areas.iter().filter(move |area| is_selected(area.key));
        rows.chain(areas.flat_map(|area| area.outline.corners().into_iter().map(move |corner| add(area.at, corner))))
    }

    /// Returns the bounding box of these rows and areas.
    #[must_use]
    pub fn bounds_of(&self, keys: &[ObjectKey]) -> Option<Bounds> {
        bounding_box(self.points_of(|key| keys.contains(&key)))
    }

    /// Returns the bounding box of one section, or of the whole room with its focus.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        let section = bounding_box(self.points_of(|_| true)).filter(|_| self.is_one_section());
        section.unwrap_or_else(|| self.room_bounds())
    }

    /// Returns the bounding box of all sections and the focus.
    fn room_bounds(&self) -> Bounds {
        let ([x, y], half) = (self.focus.at, self.focus.width / 2.0);
        let focus = [-half, half].map(|end| add(self.focus.at, self.focus.side.turn_back([end, 0.0])));
        let others = self.other_seats().iter().copied();
        bounding_box(self.points_of(|_| true).chain(focus).chain(others)).unwrap_or([x, y, x, y])
    }

    /// Returns the middle of these rows and areas.
    fn middle_of(&self, keys: &[ObjectKey]) -> Option<DrawingPoint> {
        let [left, top, right, bottom] = self.bounds_of(keys)?;
        Some([f64::midpoint(left, right), f64::midpoint(top, bottom)])
    }

    /// Returns the rows with a seat in a rectangle, and the areas with their middle in it.
    #[must_use]
    pub fn inside(&self, [left, top, right, bottom]: Bounds) -> Vec<ObjectKey> {
        let is_inside = |[x, y]: &DrawingPoint| (left..=right).contains(x) && (top..=bottom).contains(y);
        let rows = self.rows.iter().filter(|row| row.points().iter().any(is_inside)).map(|row| row.key);
        rows.chain(self.areas.iter().filter(|area| is_inside(&area.at)).map(|area| area.key)).collect()
    }

    /// Returns the position for the next row: behind everything, centred on the focus, or behind the section alone.
    #[must_use]
    pub fn next_place(&self) -> DrawingPoint {
        let [x, y] = self.focus.at;
        let Some([left, _, right, bottom]) = bounding_box(self.points_of(|_| true)) else {
            return [x, y + FIRST_ROW_SEATS * self.pitch];
        };
        let x = if self.is_one_section() { f64::midpoint(left, right) } else { x };
        [x, bottom + ROW_GAP_SEATS * self.pitch]
    }
}

/// Maximum number of sections.
const MAX_SECTIONS: usize = 200;
/// Maximum number of rows and areas together.
const MAX_OBJECTS: usize = 2_000;
/// Maximum number of corners of an area.
const MAX_CORNERS: usize = 64;

impl Draft {
    /// Checks the draft against the limits. An uploaded plan may already exceed a limit; it must not grow further.
    fn check(&self, before: &Self) -> Result<(), CommandError> {
        if self.seat_count() > MAX_EDITED_SEATS {
            return Err(CommandError::TooManySeats);
        }
        let counts = |draft: &Self| {
            let (rows, areas) = (draft.rows.len(), draft.areas.len());
            [rows + areas, areas, draft.sections.len(), draft.categories.len()]
        };
        let most = [MAX_OBJECTS, MAX_AREAS_PER_SHOW, MAX_SECTIONS, MAX_CATEGORIES];
        if (0..most.len()).any(|of| counts(self)[of] > most[of].max(counts(before)[of])) {
            return Err(CommandError::TooMany);
        }
        let is_in_range = |value: f64| value.is_finite() && value.abs() <= MAX_COORDINATE;
        let is_place = |[x, y]: DrawingPoint| is_in_range(x) && is_in_range(y);
        let Focus { at, width, depth, .. } = self.focus;
        let is_size = |size: f64| is_in_range(size) && size > 0.0;
        let mut is_valid = is_place(at) && is_size(width) && depth.is_none_or(is_size);
        for row in &self.rows {
            let reach = row.half() + row.bow.abs();
            is_valid &=
                is_place(row.at) && row.turn.is_finite() && is_in_range(reach + row.at[0].abs().max(row.at[1].abs()));
        }
        for area in &self.areas {
            let corners = area.outline.corners();
            is_valid &= is_place(area.at) && corners.iter().all(|corner| is_place(add(area.at, *corner)));
            is_valid &= (3..=MAX_CORNERS).contains(&corners.len());
            if let Outline::Rectangle([width, depth]) = area.outline {
                is_valid &= width > 0.0 && depth > 0.0;
            }
            if !(1..=MAX_AREA_CAPACITY).contains(&area.capacity) {
                return Err(CommandError::Capacity);
            }
        }
        is_valid.then_some(()).ok_or(CommandError::OutOfBounds)
    }
}

/// Returns the name without surrounding white space, if it is valid.
fn valid_name(text: &str) -> Result<String, CommandError> {
    let name = text.trim();
    let is_readable = !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.contains(char::is_control);
    is_readable.then(|| name.to_owned()).ok_or(CommandError::NoName)
}

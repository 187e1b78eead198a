//! A room on the drawing board: rows, areas, categories and sections as somebody draws them, the commands that change
//! them, and the way back.
//!
//! A [`Draft`] is read from the public seating plan and written as one, so that what is drawn goes in by the same
//! door as any file and is looked at by the same [`import`](super::import) checks. Nothing of a plan is lost on the
//! way: keys of other editors stay with their object. A row knows its middle, its turn and its bow, each seat only how
//! far along the row it is, so that a row is bent, turned and numbered as one; what does not lie on the curve (rows
//! of strangers) keeps how far it strays.
//!
//! Commands are pure ([`Draft::after`]); a refused one changes nothing. [`History`] keeps what was, in snapshots that
//! share every row that did not change.

mod command;
mod curve;
mod history;
mod limits;
mod numbering;
mod place;
mod reading;
mod rows;
#[cfg(test)]
mod tests;
mod writing;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use command::{Command, NewRows, Refused};
pub use history::{History, MAX_STEPS};
pub use numbering::{Numbering, label_after};
pub use reading::Unreadable;

use super::import::{Finding, import};
use super::room::{Category, Focus, FocusKind, name_of};
use crate::api::SEAT_PITCH;

/// The most seats a room may have that is edited; larger ones are looked at. Every change is checked and painted at
/// once, which stays quick up to here.
pub const MAX_EDITED_SEATS: usize = 5_000;
/// The most seats of a row that is drawn here; rows of strangers may be longer.
pub const MAX_SEATS_PER_ROW: usize = 300;
/// The most rows drawn at once.
pub const MAX_ROWS_AT_ONCE: usize = 100;
/// From row to row unless somebody says otherwise, in seats.
pub const ROW_GAP_SEATS: f64 = 1.2;

/// What a row, an area, a section or a category is called by commands; never given twice in a draft.
pub type Key = u32;
/// A point, or a way, in the units of the drawing: right, down.
pub type Point = [f64; 2];

/// A room as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The room's name.
    pub name: String,
    /// From seat to seat, in units of the drawing. Every other length is one of the drawing too.
    pub pitch: f64,
    /// Screen or stage.
    pub focus: Focus,
    /// Price categories; at least one.
    pub categories: Vec<DraftCategory>,
    /// Parts of the room; at least one.
    pub sections: Vec<DraftSection>,
    /// All rows, in the order of the plan within each section.
    pub rows: Vec<Arc<DraftRow>>,
    /// Areas without numbers, in the order of the plan within each section.
    pub areas: Vec<Arc<DraftArea>>,
    next_key: Key,
    /// What the plan says besides.
    rest: Map<String, Value>,
}

/// A price category.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftCategory {
    /// What commands call it.
    pub key: Key,
    /// Its name, words, kind and colour.
    pub category: Category,
    rest: Map<String, Value>,
}

/// A part of the room.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftSection {
    /// What commands call it.
    pub key: Key,
    /// Its name; part of the names of its seats where the room has several.
    pub name: String,
    /// Where the plan has its corner; kept, for drawings without seats go by it.
    origin: Point,
    /// Drawings that are not for sale, as they came.
    drawings: Vec<Value>,
    rest: Map<String, Value>,
}

/// A row of seats.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftRow {
    /// What commands call it.
    pub key: Key,
    /// The section it is in.
    pub section: Key,
    /// Its letter or number.
    pub label: String,
    /// Its middle.
    pub at: Point,
    /// Degrees clockwise; at 0 its people look up the page.
    pub turn: f64,
    /// How far its ends come forward of its middle; negative where they fall back.
    pub bow: f64,
    /// Its seats, neighbours side by side.
    pub seats: Vec<DraftSeat>,
    rest: Map<String, Value>,
}

/// A seat.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftSeat {
    /// What is printed on it.
    pub number: String,
    /// Its category.
    pub category: Key,
    /// Its index in the room this draft was read from; `None` for a new one.
    pub origin: Option<u32>,
    /// How far it is from the middle, along the row.
    along: f64,
    /// How far it lies beside the row's curve, in the row's own directions.
    stray: Point,
    rest: Map<String, Value>,
}

/// A place without numbered seats.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftArea {
    /// What commands call it.
    pub key: Key,
    /// The section it is in.
    pub section: Key,
    /// Its name for people.
    pub name: String,
    /// Category of its places.
    pub category: Key,
    /// How many people may be there.
    pub capacity: u32,
    /// Its middle.
    pub at: Point,
    /// What it looks like from above.
    pub outline: Outline,
    rest: Map<String, Value>,
}

/// What an area looks like from above.
#[derive(Clone, Debug, PartialEq)]
pub enum Outline {
    /// So wide and so deep.
    Rectangle(Point),
    /// Its corners, from its middle; three at least.
    Polygon(Vec<Point>),
}

impl Outline {
    /// Its corners, from its middle.
    #[must_use]
    pub fn corners(&self) -> Vec<Point> {
        match self {
            Self::Rectangle([width, depth]) => {
                let (x, y) = (width / 2.0, depth / 2.0);
                vec![[-x, -y], [x, -y], [x, y], [-x, y]]
            }
            Self::Polygon(corners) => corners.clone(),
        }
    }

    /// The same with one corner moved so far. A rectangle with a corner of its own is none.
    #[must_use]
    pub fn with_corner(&self, corner: usize, [x, y]: Point) -> Self {
        let mut corners = self.corners();
        if let Some(at) = corners.get_mut(corner) {
            *at = [at[0] + x, at[1] + y];
        }
        Self::Polygon(corners)
    }
}

impl Draft {
    /// An empty room with a screen, one section and one category of that name.
    #[must_use]
    pub fn new(name: &str, category: &str) -> Self {
        let pitch = f64::from(SEAT_PITCH);
        let category = Category { name: category.to_owned(), label: None, kind: Default::default(), color: None };
        Self {
            name: name.to_owned(),
            pitch,
            focus: Focus { kind: FocusKind::Screen, at: [20.0 * pitch, 2.0 * pitch], width: 16.0 * pitch },
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
        }
    }

    /// How many seats are drawn.
    #[must_use]
    pub fn seat_count(&self) -> usize {
        self.rows.iter().map(|row| row.seats.len()).sum()
    }

    /// A row by its key.
    #[must_use]
    pub fn row(&self, key: Key) -> Option<&Arc<DraftRow>> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// An area by its key.
    #[must_use]
    pub fn area(&self, key: Key) -> Option<&Arc<DraftArea>> {
        self.areas.iter().find(|area| area.key == key)
    }

    /// The place of a category among the categories, which decides its colour.
    #[must_use]
    pub fn category_index(&self, key: Key) -> usize {
        self.categories.iter().position(|category| category.key == key).unwrap_or(0)
    }

    /// A row for people, as findings name it: `Circle A`.
    #[must_use]
    pub fn row_name(&self, row: &DraftRow) -> String {
        format!("{} {}", self.section_name(row.section).trim(), row.label.trim()).trim().to_owned()
    }

    /// The name of a section; empty for one that is not there.
    #[must_use]
    pub fn section_name(&self, key: Key) -> &str {
        self.sections.iter().find(|section| section.key == key).map_or("", |section| &section.name)
    }

    /// Rows that a finding is about, by what it names: a seat or a row.
    #[must_use]
    pub fn rows_called(&self, place: &str) -> Vec<Key> {
        let mut seated: Vec<Key> = self.rows.iter().map(|row| row.section).collect();
        seated.sort_unstable();
        seated.dedup();
        let is_called = |row: &Arc<DraftRow>| {
            let section = if seated.len() > 1 { self.section_name(row.section).trim() } else { "" };
            self.row_name(row) == place
                || row.seats.iter().any(|seat| name_of(section, row.label.trim(), seat.number.trim()) == place)
        };
        self.rows.iter().filter(|row| is_called(row)).map(|row| row.key).collect()
    }

    /// What the import would say of it: what stands in the way, or else what is worth knowing.
    ///
    /// # Errors
    /// Everything that is wrong, at least one finding.
    pub fn look(&self) -> Result<Vec<Finding>, Vec<Finding>> {
        import(self.to_seating_plan(), &self.name, false).map(|read| read.remarks)
    }

    fn new_key(&mut self) -> Key {
        let key = self.next_key;
        self.next_key += 1;
        key
    }
}

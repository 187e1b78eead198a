//! The sketch format: a room in a few lines that a person can read and edit. `demo/README.md` is its manual.
//!
//! A sketch states "rows A to H, seats 1 to 8, an aisle, 9 to 20"; `Sketch::draw` computes the positions of the
//! seats. Distances are plan units: 20 from seat to seat. Irregular positions need the public seating plan instead.

mod draw;
mod pattern;

use serde::{Deserialize, Serialize};

use super::areas::Area;
use super::room::{Category, Focus};

/// Version of the format: the value of the key `sketch`.
pub const SKETCH_VERSION: u32 = 1;
/// Default distance between rows, plan units.
pub const DEFAULT_ROW_GAP: f64 = 24.0;
/// Maximum number of copies that a repeat rule makes.
pub const MAX_COPIES: u32 = 1_000;

/// A room in the sketch format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sketch {
    /// [`SKETCH_VERSION`]. The key distinguishes a sketch from a seating plan.
    pub sketch: u32,
    /// Name of the room.
    pub name: String,
    /// Screen or stage; default: a stage in front of the first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    /// Price categories.
    pub categories: Vec<Category>,
    /// Parts of the room, in seat order.
    pub zones: Vec<SketchZone>,
    /// Areas without numbered seats, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<Area>,
}

/// A part of the room, or a rule that makes several copies of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchZone {
    /// Its name; with `repeat`, `{n}` is replaced with the number of the copy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Middle of its first row; with `repeat`, the middle of all copies.
    #[serde(default, skip_serializing_if = "is_origin")]
    pub at: [f64; 2],
    /// Rotation about `at`, degrees clockwise; at 0 the audience faces up the page.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turn: f64,
    /// Radius of the first row's arc, plan units; absent for straight rows. The ends bend towards the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arc: Option<f64>,
    /// Distance between rows, plan units.
    #[serde(default = "default_row_gap")]
    pub row_gap: f64,
    /// Distance between seats, plan units.
    #[serde(default = "default_pitch", skip_serializing_if = "is_default_pitch")]
    pub pitch: f64,
    /// Default category of its seats.
    pub category: String,
    /// Its rows, starting nearest to the focus.
    pub rows: Vec<RowGroup>,
    /// Rule for copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// Rows with the same seats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowGroup {
    /// Labels of the rows: `A-H`, `A-H J-L`, `12-1`.
    pub rows: String,
    /// Their seats from left to right: `1-8 . 9-20 . 21-28`.
    pub seats: String,
    /// Their category, if it differs from the zone's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Additional space in front of the first row, plan units.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gap: f64,
    /// Shift to the right, in seats; negative to the left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shift: f64,
}

/// A rule for copies of a zone, which are numbered in its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Number of the first copy.
    pub from: u32,
    /// Placement of the copies.
    #[serde(flatten)]
    pub place: Placement,
}

/// Placement of the copies of a zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Evenly along an oval, facing inwards.
    Around {
        /// Number of copies.
        count: u32,
        /// Half width and half height of the oval through their first rows, plan units.
        radius: [f64; 2],
        /// Start of the first copy and end of the last, degrees clockwise from the top.
        degrees: [f64; 2],
    },
    /// In a grid of columns and lines, line by line.
    Grid {
        /// Number of columns and lines.
        count: [u32; 2],
        /// Distance between columns and between lines, plan units.
        step: [f64; 2],
    },
}

fn default_row_gap() -> f64 {
    DEFAULT_ROW_GAP
}

fn default_pitch() -> f64 {
    f64::from(crate::api::SEAT_PITCH)
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference; which sizes are trivial differs by target"
)]
fn is_default_pitch(pitch: &f64) -> bool {
    *pitch == default_pitch()
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference; which sizes are trivial differs by target"
)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_origin(point: &[f64; 2]) -> bool {
    *point == [0.0, 0.0]
}

//! The sketch: a room in a few lines that a person can read and edit; `demo/README.md` is its manual.
//!
//! A sketch says "rows A to H, seats 1 to 8, an aisle, 9 to 20"; [`Sketch::draw`] works out where each
//! seat is. Distances are plan units: 20 from seat to seat. What a sketch cannot say (seats strewn at
//! will), the public seating plan can.

mod draw;
mod pattern;

use serde::{Deserialize, Serialize};

use super::areas::Area;
use super::room::{Category, Focus};

/// The version of the form, the value of the key `sketch`.
pub const SKETCH_VERSION: u32 = 1;
/// Distance from row to row unless the sketch says otherwise, plan units.
pub const DEFAULT_ROW_GAP: f64 = 24.0;
/// The most copies a repeat rule may make.
pub const MAX_COPIES: u32 = 1_000;

/// A room as a person writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sketch {
    /// [`SKETCH_VERSION`]; its presence tells a sketch from a seating plan.
    pub sketch: u32,
    /// The room.
    pub name: String,
    /// Screen or stage; without it a stage above the first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    /// Price categories.
    pub categories: Vec<Category>,
    /// Parts of the room, in the order of their seats' numbers.
    pub zones: Vec<SketchZone>,
    /// Areas without seats, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<Area>,
}

/// A part of the room, or a rule that makes many alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchZone {
    /// Its name; with `repeat`, `{n}` stands for the copy's number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The middle of its first row; with `repeat`, the middle of all copies.
    #[serde(default, skip_serializing_if = "is_origin")]
    pub at: [f64; 2],
    /// How far it is turned about `at`, degrees clockwise; at 0 its people look up the page.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turn: f64,
    /// Radius of the first row's arc, plan units; straight rows without it. Ends bend towards the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arc: Option<f64>,
    /// From row to row, plan units.
    #[serde(default = "default_row_gap")]
    pub row_gap: f64,
    /// From seat to seat, plan units.
    #[serde(default = "default_pitch", skip_serializing_if = "is_default_pitch")]
    pub pitch: f64,
    /// Category of seats that name none.
    pub category: String,
    /// Its rows, nearest to the focus first.
    pub rows: Vec<RowGroup>,
    /// Makes copies of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// Rows that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowGroup {
    /// Which rows: `A-H`, `A-H J-L`, `12-1`.
    pub rows: String,
    /// Their seats from left to right: `1-8 . 9-20 . 21-28`.
    pub seats: String,
    /// Their category, when it is not the zone's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Additional space in front of the first of them, plan units.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gap: f64,
    /// How far they are moved to the right, in seats; negative to the left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shift: f64,
}

/// A rule that makes copies of a zone, numbered in its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// The first copy's number.
    pub from: u32,
    /// Where the copies go.
    #[serde(flatten)]
    pub place: Placement,
}

/// Where the copies of a zone go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Evenly along an oval, looking inwards.
    Around {
        /// How many.
        count: u32,
        /// Half width and half height of the oval through their first rows, plan units.
        radius: [f64; 2],
        /// Where the first copy begins and the last ends, degrees clockwise from the top.
        degrees: [f64; 2],
    },
    /// In columns and lines, line after line.
    Grid {
        /// Columns and lines.
        count: [u32; 2],
        /// From column to column and from line to line, plan units.
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

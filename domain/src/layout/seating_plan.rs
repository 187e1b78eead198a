//! The public seating-plan JSON (`zones > rows > seats`) documented by pretix, parsed and written without loss. Data
//! that we do not use (areas, row number positions, keys of other editors) stays in the `rest` of its object.
//!
//! Optional keys of ours: `label` and `kind` of a category, `focus` of the plan, and `name`, `category` and `capacity`
//! of a zone's drawing, which make it an area for sale. A file without them is a room of standard seats; a stage at the
//! top is assumed until a person states another focus.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::areas::Area;
use super::error::LayoutError;
use super::room::{Category, Drawing, DrawnRow, DrawnSeat, DrawnZone, Focus};
use super::shapes::shapes_of_plan;
use crate::api::SEAT_PITCH;

/// Larger integers are not exact as floats and are left unchanged.
const EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
/// Width and depth of a sketch's area when it is drawn, plan units.
const AREA_SIZE: [f64; 2] = [200.0, 80.0];

/// A seating plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeatingPlan {
    /// Name of the room.
    pub name: String,
    /// Price categories.
    pub categories: Vec<PlanCategory>,
    /// Parts of the room.
    pub zones: Vec<PlanZone>,
    /// Other keys, for example `size`.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A category; its `color` and our keys `label` and `kind` are in `rest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanCategory {
    /// Name that seats refer to.
    pub name: String,
    /// Other keys.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A part of the room; its `areas` are in `rest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanZone {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub name: Option<String>,
    /// Offset of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub position: Option<Position>,
    /// Its rows.
    pub rows: Vec<PlanRow>,
    /// Other keys.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A row of seats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// Letter or number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub row_number: Option<String>,
    /// Offset of its seats.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub position: Option<Position>,
    /// Its seats.
    pub seats: Vec<PlanSeat>,
    /// Other keys.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A seat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanSeat {
    /// The printed number.
    pub seat_number: String,
    /// Position relative to the row.
    pub position: Position,
    /// Name of its category.
    pub category: String,
    /// Other keys, for example `seat_guid`.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A point relative to its container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// To the right.
    #[serde(serialize_with = "whole_where_possible")]
    pub x: f64,
    /// Down.
    #[serde(serialize_with = "whole_where_possible")]
    pub y: f64,
    /// Other keys.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Position {
    /// Creates a point without other keys.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, rest: Map::new() }
    }
}

/// Deserializes a present key to `Some`. An explicit `null` is refused, because writing would lose it.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Writes whole numbers as integers, which the documented schema requires. Editors also write fractions.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference; which sizes are trivial differs by target"
)]
fn whole_where_possible<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < EXACT_INTEGER {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

impl SeatingPlan {
    /// Converts the plan to a drawing with absolute positions.
    pub(super) fn draw(&self) -> Result<Drawing, LayoutError> {
        let categories = self.categories.iter().map(PlanCategory::read).collect::<Result<Vec<_>, _>>()?;
        let numbers: HashMap<&str, usize> =
            self.categories.iter().enumerate().map(|(number, category)| (category.name.as_str(), number)).collect();
        let focus = match self.rest.get("focus") {
            Some(value) => Some(Focus::deserialize(value).map_err(|e| LayoutError::Shape(format!("focus: {e}")))?),
            None => None,
        };
        let nowhere = Position::default();
        let mut zones = Vec::with_capacity(self.zones.len());
        for zone in &self.zones {
            let at = zone.position.as_ref().unwrap_or(&nowhere);
            let mut rows = Vec::with_capacity(zone.rows.len());
            for row in &zone.rows {
                let from = row.position.as_ref().unwrap_or(&nowhere);
                let seats = row.seats.iter().map(|seat| {
                    // The room refuses more categories than fit in a byte when it is built.
                    let category = numbers.get(seat.category.as_str()).ok_or_else(|| row.unknown_category(seat))?;
                    Ok(DrawnSeat {
                        number: seat.seat_number.clone(),
                        x: at.x + from.x + seat.position.x,
                        y: at.y + from.y + seat.position.y,
                        category: u8::try_from(*category).unwrap_or(u8::MAX),
                    })
                });
                rows.push(DrawnRow {
                    label: row.row_number.clone().unwrap_or_default(),
                    seats: seats.collect::<Result<Vec<_>, LayoutError>>()?,
                });
            }
            zones.push(DrawnZone { name: zone.name.clone().unwrap_or_default(), rows });
        }
        Ok(Drawing { categories, focus, zones, shapes: shapes_of_plan(self) })
    }
}

impl PlanRow {
    fn unknown_category(&self, seat: &PlanSeat) -> LayoutError {
        LayoutError::UnknownCategory {
            place: format!("seat {:?} of row {:?}", seat.seat_number, self.row_number.as_deref().unwrap_or("")),
            category: seat.category.clone(),
        }
    }
}

impl PlanCategory {
    /// Reads a category with our keys.
    pub(super) fn read(&self) -> Result<Category, LayoutError> {
        let text = |key: &str| self.rest.get(key).and_then(Value::as_str).map(str::to_owned);
        let kind = match self.rest.get("kind") {
            Some(kind) => Deserialize::deserialize(kind)
                .map_err(|e| LayoutError::Shape(format!("kind of category {:?}: {e}", self.name)))?,
            None => Default::default(),
        };
        Ok(Category { name: self.name.clone(), label: text("label"), kind, color: text("color") })
    }
}

/// Converts a drawing to a plan, for the export of a sketch.
pub(super) fn write(name: &str, drawing: &Drawing, areas: &[Area]) -> SeatingPlan {
    let mut rest = Map::new();
    if let Some(focus) = &drawing.focus {
        rest.insert("focus".to_owned(), json(focus));
    }
    let categories = drawing.categories.iter().map(|category| {
        let Value::Object(mut rest) = json(category) else { unreachable!("a struct is an object") };
        rest.remove("name");
        PlanCategory { name: category.name.clone(), rest }
    });
    let mut number = 0_u32;
    let zones = drawing.zones.iter().map(|zone| PlanZone {
        name: Some(zone.name.clone()),
        position: Some(Position::default()),
        rows: zone
            .rows
            .iter()
            .map(|row| PlanRow {
                row_number: Some(row.label.clone()),
                position: Some(Position::default()),
                seats: row
                    .seats
                    .iter()
                    .map(|seat| {
                        number += 1;
                        write_seat(seat, number, &drawing.categories)
                    })
                    .collect(),
                rest: Map::new(),
            })
            .collect(),
        rest: Map::new(),
    });
    let mut zones: Vec<PlanZone> = zones.collect();
    if !areas.is_empty() {
        zones.push(zone_of_areas(drawing, areas));
    }
    SeatingPlan { name: name.to_owned(), categories: categories.collect(), zones, rest }
}

/// Areas of a sketch without bounds are drawn in a line behind the last seat. All are in a zone without rows.
fn zone_of_areas(drawing: &Drawing, areas: &[Area]) -> PlanZone {
    let seats = || drawing.zones.iter().flat_map(|zone| &zone.rows).flat_map(|row| &row.seats);
    // A room without seats begins at the origin.
    let left = seats().map(|seat| seat.x).reduce(f64::min).unwrap_or_default();
    let bottom = seats().map(|seat| seat.y).reduce(f64::max).unwrap_or_default();
    let [width, height] = AREA_SIZE;
    let drawn = areas.iter().zip(0_u32..).map(|(area, number)| {
        let (x, y) = (left + f64::from(number) * (width + f64::from(SEAT_PITCH)), bottom + 2.0 * f64::from(SEAT_PITCH));
        let [x, y, right, lower] = area.bounds.map_or([x, y, x + width, y + height], |bounds| bounds.map(f64::from));
        serde_json::json!({
            "shape": "rectangle",
            "position": Position::new(x, y),
            "rectangle": { "width": right - x, "height": lower - y },
            "name": area.name,
            "category": area.category,
            "capacity": area.capacity,
        })
    });
    let rest = Map::from_iter([("areas".to_owned(), drawn.collect())]);
    PlanZone { name: None, position: None, rows: Vec::new(), rest }
}

fn write_seat(seat: &DrawnSeat, number: u32, categories: &[Category]) -> PlanSeat {
    let mut rest = Map::new();
    rest.insert("seat_guid".to_owned(), Value::String(format!("seat-{number}")));
    PlanSeat {
        seat_number: seat.number.clone(),
        position: Position::new(seat.x, seat.y),
        category: categories[usize::from(seat.category)].name.clone(),
        rest,
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("a struct with string keys is always JSON")
}

//! Drawings of a seating plan: areas for sale, tables, bars, texts, and the stage if a person drew it.

use serde_json::Value;

use super::areas::{self, Area};
use super::editing::outline_of;
use super::frame::{PlanTransform, is_place};
use super::import::kind_named;
use super::room::{DrawnShape, Seat};
use super::seating_plan::{Position, SeatingPlan};
use crate::api::{SEAT_PITCH, ShapeView};
use crate::seats::{AreaIndex, MAX_AREAS_PER_SHOW};

/// Maximum number of shapes that are drawn; a plan with more is a picture.
const MAX_SHAPES: usize = 500;
/// Maximum length of a drawn text, characters.
const MAX_TEXT_CHARS: usize = 60;
/// Distance from a table's edge within which seats are at the table, plan units: one and a half seats.
const TABLE_REACH: i32 = SEAT_PITCH * 3 / 2;

/// Returns the drawings of a plan, zone by zone.
pub(super) fn shapes_of_plan(plan: &SeatingPlan) -> Vec<DrawnShape> {
    let drawings = plan.zones.iter().flat_map(|zone| {
        let origin = zone.position.as_ref().map_or([0.0, 0.0], |at| [at.x, at.y]);
        let drawings = zone.rest.get("areas").and_then(Value::as_array);
        drawings.into_iter().flatten().map(move |drawing| (drawing, origin))
    });
    // Areas are numbered in the order of `areas_of_plan`, including those without a place.
    let mut numbers = (0..).take(MAX_AREAS_PER_SHOW);
    let drawn = drawings.filter_map(|(drawing, origin)| {
        let area = drawing.as_object().and_then(areas::of_drawing).and_then(|_| numbers.next());
        let shape = shape_of(drawing, origin)?;
        Some(DrawnShape { area: area.filter(|_| !shape.corners.is_empty()), ..shape })
    });
    drawn.take(MAX_SHAPES).collect()
}

/// Returns an area of a sketch as a rectangle; `None` if it has no bounds.
pub(super) fn shape_of_area(area: &Area, number: AreaIndex) -> Option<DrawnShape> {
    let [left, top, right, bottom] = area.bounds?.map(f64::from);
    Some(DrawnShape {
        at: [f64::midpoint(left, right), f64::midpoint(top, bottom)],
        corners: vec![[left, top], [right, top], [right, bottom], [left, bottom]],
        text: area.name.clone(),
        area: Some(number),
    })
}

/// Converts a drawing to a shape; `None` for a drawing without a place or a content.
fn shape_of(drawing: &Value, origin: [f64; 2]) -> Option<DrawnShape> {
    let keys = drawing.as_object()?;
    let position: Position = serde_json::from_value(keys.get("position")?.clone()).ok()?;
    let corner = [origin[0] + position.x, origin[1] + position.y];
    let text = drawing.pointer("/text/text").or_else(|| keys.get("name")).and_then(Value::as_str).unwrap_or_default();
    let text: String = text.trim().chars().take(MAX_TEXT_CHARS).collect();
    let has_outline =
        matches!(keys.get("shape").and_then(Value::as_str), Some("rectangle" | "polygon" | "circle" | "ellipse"));
    let (at, corners): ([f64; 2], Vec<[f64; 2]>) = if has_outline {
        let (at, corners) = outline_of(drawing, corner, f64::from(SEAT_PITCH));
        (at, corners.into_iter().map(|[x, y]| [at[0] + x, at[1] + y]).collect())
    } else {
        (corner, Vec::new())
    };
    let is_drawn = at.into_iter().chain(corners.iter().copied().flatten()).all(is_place);
    (is_drawn && (has_outline || !text.is_empty())).then_some(DrawnShape { at, corners, text, area: None })
}

/// Converts a drawing to plan units; `None` for the one that is the focus.
pub(super) fn placed(shape: &DrawnShape, frame: &PlanTransform) -> Option<ShapeView> {
    let at = frame.place_drawing(shape.at);
    // Stored numbers are rounded: they may differ in the last digit.
    let is_there = (0..2).all(|axis| (at[axis] - frame.focus.at[axis]).abs() <= 1);
    if is_there && shape.area.is_none() && kind_named(&shape.text) == Some(frame.focus.kind) {
        return None;
    }
    Some(ShapeView {
        at,
        corners: shape.corners.iter().flat_map(|corner| frame.place_drawing(*corner)).collect(),
        text: shape.text.clone(),
        area: shape.area,
    })
}

/// Returns the range of a shape along both axes; `None` for a text alone.
fn bounds_of(shape: &ShapeView) -> Option<[[i32; 2]; 2]> {
    let along = |axis: usize| shape.corners.iter().skip(axis).step_by(2).copied();
    let range = |axis: usize| Some([along(axis).min()?, along(axis).max()?]);
    Some([range(0)?, range(1)?])
}

/// Returns the vector from a point to the nearest point of a rectangle; zero within it.
fn way_to([x, y]: [i32; 2], [[left, right], [top, bottom]]: [[i32; 2]; 2]) -> [i32; 2] {
    [x.clamp(left, right) - x, y.clamp(top, bottom) - y]
}

/// Returns the direction from a point to a rectangle, degrees clockwise from the top; 0 within it.
pub(super) fn turn_towards(at: [i32; 2], bounds: [[i32; 2]; 2]) -> i32 {
    let [x, y] = way_to(at, bounds);
    f64::from(x).atan2(f64::from(-y)).to_degrees().round() as i32
}

/// Turns the seats at a table towards it. A shape is a table if seats are near it on sides that are opposite or at a right
/// angle; others are walls, or bars behind a row. An area for sale is none.
pub(super) fn turn_to_table(shape: &ShapeView, seats: &mut [Seat]) {
    let Some(bounds) = bounds_of(shape).filter(|_| shape.area.is_none()) else { return };
    let is_near = |seat: &Seat| {
        let way = way_to([seat.x, seat.y], bounds);
        way != [0, 0] && way.iter().all(|along| along.abs() <= TABLE_REACH)
    };
    let Some(first) = seats.iter().find(|seat| is_near(seat)).map(|seat| way_to([seat.x, seat.y], bounds)) else {
        return;
    };
    let is_elsewhere = |seat: &Seat| {
        let way = way_to([seat.x, seat.y], bounds);
        way[0] * first[0] + way[1] * first[1] <= 0
    };
    if seats.iter().any(|seat| is_near(seat) && is_elsewhere(seat)) {
        for seat in seats.iter_mut().filter(|seat| is_near(seat)) {
            seat.turn = turn_towards([seat.x, seat.y], bounds);
        }
    }
}

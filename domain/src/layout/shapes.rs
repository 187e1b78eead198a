//! Drawings of a seating plan that are not for sale: tables, bars, texts, and the stage if a person drew it.

use serde_json::Value;

use super::areas;
use super::editing::outline_of;
use super::frame::is_place;
use super::room::DrawnShape;
use super::seating_plan::{Position, SeatingPlan};
use crate::api::SEAT_PITCH;

/// Maximum number of shapes that are drawn; a plan with more is a picture.
const MAX_SHAPES: usize = 500;
/// Maximum length of a drawn text, characters.
const MAX_TEXT_CHARS: usize = 60;

/// Returns the drawings of a plan, zone by zone.
pub(super) fn shapes_of_plan(plan: &SeatingPlan) -> Vec<DrawnShape> {
    let drawn = plan.zones.iter().flat_map(|zone| {
        let origin = zone.position.as_ref().map_or([0.0, 0.0], |at| [at.x, at.y]);
        let areas = zone.rest.get("areas").and_then(Value::as_array);
        areas.into_iter().flatten().filter_map(move |drawing| shape_of(drawing, origin))
    });
    drawn.take(MAX_SHAPES).collect()
}

/// Converts a drawing to a shape; `None` for an area for sale, and for a drawing without a place or a content.
fn shape_of(drawing: &Value, origin: [f64; 2]) -> Option<DrawnShape> {
    let keys = drawing.as_object()?;
    if areas::of_drawing(keys).is_some() {
        return None;
    }
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
    (is_drawn && (has_outline || !text.is_empty())).then_some(DrawnShape { at, corners, text })
}

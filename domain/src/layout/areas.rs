//! Areas without numbered seats: a standing floor, a lawn. A sketch lists them. In a public seating plan an area is a
//! zone's drawing with a `capacity`, a `name` and a `category`, which are extensions of ours. Other drawings are
//! decoration.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{LayoutError, MAX_NAME_CHARS};
use super::frame::is_place;
use super::seating_plan::SeatingPlan;
use crate::seats::MAX_AREAS_PER_SHOW;

/// Maximum number of places in an area.
pub const MAX_AREA_CAPACITY: u32 = 100_000;

/// An area without numbered seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Display name, unique among the areas of the room.
    pub name: String,
    /// Category of its places.
    pub category: String,
    /// Number of places, 1 to [`MAX_AREA_CAPACITY`].
    pub capacity: u32,
    /// Left, top, right and bottom of an area of a sketch. Without it the area is not drawn. In a seating plan, the zone's
    /// drawing has the outline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[i32; 4]>,
}

/// Checks that the areas can be sold in a room with these categories.
pub(super) fn check(areas: &[Area], categories: &BTreeSet<&str>) -> Result<(), LayoutError> {
    let refuse = |name: &str, why| Err(LayoutError::Area { name: name.to_owned(), why });
    if areas.len() > MAX_AREAS_PER_SHOW {
        return refuse(&areas[MAX_AREAS_PER_SHOW].name, "a room has at most 64 areas");
    }
    for (number, area) in areas.iter().enumerate() {
        if area.name.is_empty() || area.name.chars().count() > MAX_NAME_CHARS {
            return refuse(&area.name, "an area's name has 1 to 120 characters");
        }
        if areas[..number].iter().any(|other| other.name == area.name) {
            return refuse(&area.name, "two areas have this name");
        }
        if !(1..=MAX_AREA_CAPACITY).contains(&area.capacity) {
            return refuse(&area.name, "an area has 1 to 100,000 places");
        }
        if area.bounds.is_some_and(|bounds| !is_rectangle(bounds)) {
            return refuse(&area.name, "the bounds of an area are left, top, right and bottom");
        }
        if !categories.contains(area.category.as_str()) {
            let (place, category) = (area.name.clone(), area.category.clone());
            return Err(LayoutError::UnknownCategory { place, category });
        }
    }
    Ok(())
}

/// True if left and top are before right and bottom.
fn is_rectangle(bounds: [i32; 4]) -> bool {
    let [left, top, right, bottom] = bounds;
    left < right && top < bottom && bounds.into_iter().map(f64::from).all(is_place)
}

/// Returns the areas of a plan, zone by zone.
pub(super) fn areas_of_plan(plan: &SeatingPlan) -> Vec<Area> {
    let drawings = plan.zones.iter().filter_map(|zone| zone.rest.get("areas")).filter_map(Value::as_array);
    drawings.flatten().filter_map(Value::as_object).filter_map(of_drawing).collect()
}

/// Converts a drawing to an area; `None` for decoration. A capacity that is not a whole number becomes 0, which
/// [`check`] refuses.
pub(super) fn of_drawing(drawing: &Map<String, Value>) -> Option<Area> {
    let capacity = drawing.get("capacity").filter(|capacity| !capacity.is_null())?;
    let text = |key: &str| drawing.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(Area {
        name: text("name").trim().to_owned(),
        // Not trimmed: categories are compared exactly.
        category: text("category").to_owned(),
        capacity: capacity.as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
        bounds: None,
    })
}

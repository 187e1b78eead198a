//! Sections of a large room that are not in the editor.

use serde_json::Value;

use super::super::areas;
use super::super::seating_plan::{PlanSeat, PlanZone};
use super::DrawingPoint;

/// Sections around the one in the editor. They are written as they were read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OtherSections {
    /// Those before it, in plan order.
    pub before: Vec<PlanZone>,
    /// Those after it, in plan order.
    pub after: Vec<PlanZone>,
    /// Positions of their seats.
    pub points: Vec<DrawingPoint>,
}

impl OtherSections {
    fn zones(&self) -> impl Iterator<Item = &PlanZone> {
        self.before.iter().chain(&self.after)
    }

    /// Returns their seats, in plan order.
    pub fn seats(&self) -> impl Iterator<Item = &PlanSeat> {
        self.zones().flat_map(|zone| &zone.rows).flat_map(|row| &row.seats)
    }

    /// True if a seat or an area has the category of this name.
    pub fn has_category(&self, name: &str) -> bool {
        let drawings = self.zones().filter_map(|zone| zone.rest.get("areas")).filter_map(Value::as_array).flatten();
        let mut areas = drawings.filter_map(Value::as_object).filter_map(areas::of_drawing);
        self.seats().any(|seat| seat.category == name) || areas.any(|area| area.category == name)
    }
}

//! Writes a draft as a public seating plan, including all keys it was parsed with.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::seating_plan::{PlanCategory, PlanRow, PlanSeat, PlanZone, Position, SeatingPlan, json as written};
use super::curve::add;
use super::{Draft, DraftArea, DraftCategory, DraftRow, DraftSection, DrawingPoint, Outline};

/// Positions are rounded to hundredths, like those of sketches.
const HUNDREDTHS: f64 = 100.0;
/// Colours of an area for other editors; ours uses the colour of the category.
const AREA_COLOURS: [(&str, &str); 2] = [("color", "#dddddd"), ("border_color", "#666666")];

impl Draft {
    /// Returns the room in the public seating-plan JSON, with our additional keys.
    #[must_use]
    pub fn to_seating_plan(&self) -> Value {
        let mut rest = self.rest.clone();
        let mut focus = self.focus;
        (focus.at, focus.width) = (focus.at.map(round_to_hundredths), round_to_hundredths(focus.width));
        focus.depth = focus.depth.map(round_to_hundredths);
        rest.insert("focus".to_owned(), written(&focus));
        if !rest.contains_key("size") {
            let [_, _, right, bottom] = self.room_bounds();
            let size = |side: f64| (side + 2.0 * self.pitch).max(1.0).ceil() as u64;
            rest.insert("size".to_owned(), json!({ "width": size(right), "height": size(bottom) }));
        }
        let mut ids = SeatIds::of(self);
        let edited: Vec<PlanZone> = self.sections.iter().map(|section| self.write_section(section, &mut ids)).collect();
        let (before, after) = (self.others.before.iter().cloned(), self.others.after.iter().cloned());
        let plan = SeatingPlan {
            name: self.name.clone(),
            categories: self.categories.iter().map(write_category).collect(),
            zones: before.chain(edited).chain(after).collect(),
            rest,
        };
        written(&plan)
    }

    fn write_section(&self, section: &DraftSection, ids: &mut SeatIds) -> PlanZone {
        let mut rest = section.rest.clone();
        let own = self.areas.iter().filter(|area| area.section == section.key);
        let drawings: Vec<Value> =
            section.drawings.iter().cloned().chain(own.map(|area| self.write_area(area, section.origin))).collect();
        if !drawings.is_empty() {
            rest.insert("areas".to_owned(), Value::Array(drawings));
        }
        let rows = self.rows.iter().filter(|row| row.section == section.key);
        PlanZone {
            name: Some(section.name.clone()),
            position: Some(Position::new(section.origin[0], section.origin[1])),
            rows: rows.map(|row| self.write_row(row, section.origin, ids)).collect(),
            rest,
        }
    }

    fn write_row(&self, row: &DraftRow, origin: DrawingPoint, ids: &mut SeatIds) -> PlanRow {
        let mut rest = row.rest.clone();
        rest.entry("row_number_position").or_insert_with(|| json!("both"));
        let seats = row.seats.iter().zip(row.points()).map(|(seat, at)| {
            let mut rest = seat.rest.clone();
            rest.entry("seat_guid").or_insert_with(|| ids.next());
            PlanSeat {
                seat_number: seat.number.clone(),
                position: position(at, origin),
                category: self.categories[self.category_index(seat.category)].category.name.clone(),
                rest,
            }
        });
        PlanRow {
            row_number: Some(row.label.clone()),
            position: Some(Position::default()),
            seats: seats.collect(),
            rest,
        }
    }

    fn write_area(&self, area: &DraftArea, origin: DrawingPoint) -> Value {
        let mut keys = area.rest.clone();
        for (key, colour) in AREA_COLOURS {
            keys.entry(key).or_insert_with(|| json!(colour));
        }
        let (shape, corner, form) = match &area.outline {
            Outline::Rectangle([width, depth]) => {
                let corner = add(area.at, [-width / 2.0, -depth / 2.0]);
                (
                    "rectangle",
                    corner,
                    json!({ "width": round_to_hundredths(*width), "height": round_to_hundredths(*depth) }),
                )
            }
            Outline::Polygon(corners) => {
                let points: Vec<Position> = corners.iter().map(|at| position(*at, [0.0, 0.0])).collect();
                ("polygon", area.at, json!({ "points": points }))
            }
        };
        let text = keys.entry("text").or_insert_with(|| {
            let middle = position(area.at, corner);
            json!({ "position": middle, "color": "#333333" })
        });
        if let Some(text) = text.as_object_mut() {
            text.insert("text".to_owned(), json!(area.name));
        }
        let category = &self.categories[self.category_index(area.category)].category.name;
        let own = [
            ("shape", json!(shape)),
            ("position", written(&position(corner, origin))),
            ("rotation", json!(0)),
            (shape, form),
            ("name", json!(area.name)),
            ("category", json!(category)),
            ("capacity", json!(area.capacity)),
        ];
        keys.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(keys)
    }
}

fn write_category(category: &DraftCategory) -> PlanCategory {
    let mut rest = category.rest.clone();
    if let Value::Object(ours) = written(&category.category) {
        rest.extend(ours.into_iter().filter(|(key, _)| key != "name"));
    }
    PlanCategory { name: category.category.name.clone(), rest }
}

/// Returns a point relative to a corner.
fn position([x, y]: DrawingPoint, [from_x, from_y]: DrawingPoint) -> Position {
    Position::new(round_to_hundredths(x - from_x), round_to_hundredths(y - from_y))
}

fn round_to_hundredths(value: f64) -> f64 {
    // Adding 0.0 removes the sign of a negative zero.
    (value * HUNDREDTHS).round() / HUNDREDTHS + 0.0
}

/// Generates ids for seats without one; existing ids are kept.
struct SeatIds {
    used: HashSet<String>,
    next: u32,
}

impl SeatIds {
    fn of(draft: &Draft) -> Self {
        let id = |rest: &Map<String, Value>| rest.get("seat_guid").and_then(Value::as_str).map(str::to_owned);
        let edited = draft.rows.iter().flat_map(|row| &row.seats).map(|seat| &seat.rest);
        let others = draft.others.seats().map(|seat| &seat.rest);
        Self { used: edited.chain(others).filter_map(id).collect(), next: 0 }
    }

    fn next(&mut self) -> Value {
        loop {
            self.next += 1;
            let id = format!("seat-{}", self.next);
            if self.used.insert(id.clone()) {
                return Value::String(id);
            }
        }
    }
}

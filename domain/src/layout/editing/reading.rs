//! Parses a public seating plan into a draft. Each row gets the middle, rotation and bow that fit its seats, and each
//! seat keeps its deviation. When the draft is written again, every seat has the same position.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::super::areas;
use super::super::frame::{focus_beside, median_pitch};
use super::super::room::Focus;
use super::super::seating_plan::{PlanCategory, PlanRow, PlanZone, Position, SeatingPlan};
use super::curve::{Curve, add, normalise_angle, rotate};
use super::others::OtherSections;
use super::{
    Draft, DraftArea, DraftCategory, DraftRow, DraftSeat, DraftSection, DrawingPoint, FocusKind, FocusSide,
    MAX_EDITED_SEATS, ObjectKey, Outline,
};
use crate::api::SEAT_PITCH;

/// Bow in seats below which a row is considered straight.
const STRAIGHT_BELOW_SEATS: f64 = 0.02;
/// Maximum deviation of seats from the arc of their row, in seats. A row beyond it is not an arc.
const MAX_DEVIATION_SEATS: f64 = 0.35;
/// Number of corners that replace a circle or an oval.
const ROUND_CORNERS: u32 = 24;
/// Side of the square that replaces an unknown shape, in seats.
const UNKNOWN_SHAPE_SEATS: f64 = 5.0;

/// Reason why a plan cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// It is not a seating plan.
    #[error("this is not a seating plan: {0}")]
    NotAPlan(String),
    /// The room, or the section, has more seats than are edited at once: this many.
    #[error("the room has {0} seats; at most {MAX_EDITED_SEATS} can be edited")]
    TooLarge(usize),
}

/// State of parsing a plan.
struct PlanParser {
    draft: Draft,
    categories: HashMap<String, ObjectKey>,
    seats: u32,
}

impl Draft {
    /// Parses a public seating plan that passed the import.
    ///
    /// # Errors
    /// [`DraftError`] if it is not a seating plan or too large.
    pub fn read(plan: Value) -> Result<Self, DraftError> {
        Self::read_zones(plan, None)
    }

    /// Parses one section of such a plan, by its index. The draft is written with the other sections as they are.
    ///
    /// # Errors
    /// [`DraftError`] if it is not a seating plan, has no such section, or the section is too large.
    pub fn read_section(plan: Value, section: usize) -> Result<Self, DraftError> {
        Self::read_zones(plan, Some(section))
    }

    fn read_zones(plan: Value, section: Option<usize>) -> Result<Self, DraftError> {
        let not_a_plan = |why: &dyn std::fmt::Display| DraftError::NotAPlan(why.to_string());
        let mut plan: SeatingPlan = serde_json::from_value(plan).map_err(|why| not_a_plan(&why))?;
        let edited = section.map_or(0..plan.zones.len(), |section| section..section.saturating_add(1));
        let zones = plan.zones.get(edited.clone()).ok_or_else(|| not_a_plan(&"it has no such section"))?;
        let seats = seats_in(zones);
        if seats > MAX_EDITED_SEATS {
            return Err(DraftError::TooLarge(seats));
        }
        let drawing = plan.draw().map_err(|why| not_a_plan(&why))?;
        let mut draft = Self::new(&plan.name, "");
        draft.pitch = median_pitch(&drawing).unwrap_or(f64::from(SEAT_PITCH));
        (draft.categories, draft.sections, draft.next_key) = (Vec::new(), Vec::new(), 0);
        let focus = plan.rest.remove("focus");
        draft.rest = std::mem::take(&mut plan.rest);
        let after = plan.zones.split_off(edited.end);
        let zones = plan.zones.split_off(edited.start);
        let before = plan.zones;
        let seats = seats_in(&before) as u32;
        let drawn = drawing.zones.iter().enumerate().filter(|(number, _)| !edited.contains(number));
        let others = drawn.flat_map(|(_, zone)| &zone.rows).flat_map(|row| &row.seats);
        let points = others.map(|seat| [seat.x, seat.y]).collect();
        draft.others = Arc::new(OtherSections { before, after, points });
        let mut reader = PlanParser { draft, categories: HashMap::new(), seats };
        for category in plan.categories {
            reader.category(category).map_err(|why| not_a_plan(&why))?;
        }
        for zone in zones {
            reader.zone(zone).map_err(DraftError::NotAPlan)?;
        }
        let mut draft = reader.draft;
        if draft.categories.is_empty() || draft.sections.is_empty() {
            return Err(DraftError::NotAPlan("it has no category or no zone".to_owned()));
        }
        draft.focus = match focus {
            Some(focus) => Focus::deserialize(&focus).map_err(|why| not_a_plan(&why))?,
            // A stage above the seats.
            None => draft.focus_at(FocusKind::default(), FocusSide::default()),
        };
        Ok(draft)
    }

    /// Returns a focus on that side of all seats of the room.
    #[must_use]
    pub fn focus_at(&self, kind: FocusKind, side: FocusSide) -> Focus {
        let edited = self.rows.iter().flat_map(|row| row.points());
        let seats: Vec<DrawingPoint> = edited.chain(self.other_seats().iter().copied()).collect();
        focus_beside(&seats, self.pitch, kind, side)
    }
}

impl PlanParser {
    fn category(&mut self, plan: PlanCategory) -> Result<(), super::super::LayoutError> {
        let (category, key) = (plan.read()?, self.draft.new_key());
        let mut rest = plan.rest;
        for ours in ["label", "kind", "color"] {
            rest.remove(ours);
        }
        self.categories.insert(plan.name, key);
        self.draft.categories.push(DraftCategory { key, category, rest });
        Ok(())
    }

    fn category_of(&self, name: &str) -> Result<ObjectKey, String> {
        self.categories.get(name).copied().ok_or_else(|| format!("there is no category {name:?}"))
    }

    fn zone(&mut self, zone: PlanZone) -> Result<(), String> {
        let PlanZone { name, position, rows, mut rest } = zone;
        let key = self.draft.new_key();
        let origin = point(position.as_ref());
        let mut drawings = Vec::new();
        if let Some(Value::Array(drawn)) = rest.remove("areas") {
            for drawing in drawn {
                match self.area(&drawing, key, origin)? {
                    Some(area) => self.draft.areas.push(Arc::new(area)),
                    None => drawings.push(drawing),
                }
            }
        }
        for row in rows.into_iter().filter(|row| !row.seats.is_empty()) {
            let row = self.row(row, key, origin)?;
            self.draft.rows.push(Arc::new(row));
        }
        self.draft.sections.push(DraftSection { key, name: name.unwrap_or_default(), origin, drawings, rest });
        Ok(())
    }

    fn row(&mut self, row: PlanRow, section: ObjectKey, origin: DrawingPoint) -> Result<DraftRow, String> {
        let corner = add(origin, point(row.position.as_ref()));
        let points: Vec<DrawingPoint> =
            row.seats.iter().map(|seat| add(corner, [seat.position.x, seat.position.y])).collect();
        let fit = Fit::of(&points, self.draft.pitch);
        let mut seats = Vec::with_capacity(points.len());
        for (seat, (along, stray)) in row.seats.into_iter().zip(fit.seats) {
            let (category, origin) = (self.category_of(&seat.category)?, Some(self.seats));
            self.seats += 1;
            seats.push(DraftSeat { number: seat.seat_number, category, origin, along, stray, rest: seat.rest });
        }
        let label = row.row_number.unwrap_or_default();
        let key = self.draft.new_key();
        Ok(DraftRow { key, section, label, at: fit.at, turn: fit.turn, bow: fit.bow, seats, rest: row.rest })
    }

    /// Converts a drawing to an area for sale; `None` for decoration.
    fn area(&mut self, drawing: &Value, section: ObjectKey, origin: DrawingPoint) -> Result<Option<DraftArea>, String> {
        let Some(keys) = drawing.as_object() else { return Ok(None) };
        let Some(sold) = areas::of_drawing(keys) else { return Ok(None) };
        let corner = add(origin, point(position_of(drawing).as_ref()));
        let (at, outline) = outline(drawing, corner, self.draft.pitch);
        let mut rest = keys.clone();
        for ours in [
            "name",
            "category",
            "capacity",
            "position",
            "rotation",
            "shape",
            "rectangle",
            "polygon",
            "circle",
            "ellipse",
        ] {
            rest.remove(ours);
        }
        let (category, key) = (self.category_of(&sold.category)?, self.draft.new_key());
        let (name, capacity) = (sold.name, sold.capacity);
        Ok(Some(DraftArea { key, section, name, category, capacity, at, outline, rest }))
    }
}

fn seats_in(zones: &[PlanZone]) -> usize {
    zones.iter().flat_map(|zone| &zone.rows).map(|row| row.seats.len()).sum()
}

fn point(position: Option<&Position>) -> DrawingPoint {
    position.map_or([0.0, 0.0], |at| [at.x, at.y])
}

fn position_of(object: &Value) -> Option<Position> {
    Position::deserialize(object.get("position")?).ok()
}

/// Returns the middle of a drawing and its corners relative to it.
pub(in super::super) fn outline_of(
    drawing: &Value,
    corner: DrawingPoint,
    pitch: f64,
) -> (DrawingPoint, Vec<DrawingPoint>) {
    let (at, outline) = outline(drawing, corner, pitch);
    (at, outline.corners())
}

/// Returns the middle of a drawing and its outline relative to it.
fn outline(drawing: &Value, corner: DrawingPoint, pitch: f64) -> (DrawingPoint, Outline) {
    let number = |path: &str| drawing.pointer(path).and_then(Value::as_f64);
    let rotation = number("/rotation").unwrap_or_default();
    let square = UNKNOWN_SHAPE_SEATS * pitch;
    let round = |x: f64, y: f64| {
        let angle = |number: u32| f64::from(number) / f64::from(ROUND_CORNERS) * std::f64::consts::TAU;
        (0..ROUND_CORNERS)
            .map(|number| [x * angle(number).cos(), y * angle(number).sin()])
            .collect::<Vec<DrawingPoint>>()
    };
    let corners = match drawing.get("shape").and_then(Value::as_str) {
        Some("polygon") => {
            let points = drawing.pointer("/polygon/points").and_then(Value::as_array);
            let read = |at: &Value| Some([at.get("x")?.as_f64()?, at.get("y")?.as_f64()?]);
            points.into_iter().flatten().filter_map(read).collect()
        }
        Some("circle") => {
            let radius = number("/circle/radius").unwrap_or(square / 2.0);
            round(radius, radius)
        }
        Some("ellipse") => round(
            number("/ellipse/radius/x").unwrap_or(square / 2.0),
            number("/ellipse/radius/y").unwrap_or(square / 2.0),
        ),
        shape => {
            let side = |path| number(path).filter(|side| shape == Some("rectangle") && *side > 0.0).unwrap_or(square);
            let [width, depth] = [side("/rectangle/width"), side("/rectangle/height")];
            if rotation == 0.0 {
                return (add(corner, [width / 2.0, depth / 2.0]), Outline::Rectangle([width, depth]));
            }
            vec![[0.0, 0.0], [width, 0.0], [width, depth], [0.0, depth]]
        }
    };
    if corners.len() < 3 {
        return (corner, Outline::Rectangle([square, square]));
    }
    let corners: Vec<DrawingPoint> = corners.into_iter().map(|at| rotate(at, rotation)).collect();
    let sum = corners.iter().fold([0.0, 0.0], |sum, at| add(sum, *at));
    let count = corners.len() as f64;
    let middle = [sum[0] / count, sum[1] / count];
    let around = corners.into_iter().map(|at| add(at, [-middle[0], -middle[1]])).collect();
    (add(corner, middle), Outline::Polygon(around))
}

/// Curve fitted to the seats of a row, and the position of each seat relative to it.
struct Fit {
    at: DrawingPoint,
    turn: f64,
    bow: f64,
    seats: Vec<(f64, DrawingPoint)>,
}

impl Fit {
    fn of(points: &[DrawingPoint], pitch: f64) -> Self {
        let (first, last) = (points[0], points[points.len() - 1]);
        let turn = {
            let degrees = normalise_angle((last[1] - first[1]).atan2(last[0] - first[0]).to_degrees());
            // A row listed from right to left is not upside down.
            if degrees > 90.0 {
                degrees - 180.0
            } else if degrees <= -90.0 {
                degrees + 180.0
            } else {
                degrees
            }
        };
        let local: Vec<DrawingPoint> =
            points.iter().map(|at| rotate([at[0] - first[0], at[1] - first[1]], -turn)).collect();
        let (low, high) =
            local.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), [x, _]| (low.min(*x), high.max(*x)));
        let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
        let centred: Vec<DrawingPoint> = local.iter().map(|[x, y]| [x - middle, *y]).collect();
        let arc =
            fit_arc(&centred, half).filter(|(bow, _)| bow.abs() >= STRAIGHT_BELOW_SEATS * pitch && bow.abs() < half);
        let fitted = arc.map(|(bow, depth)| (bow, depth, deviations(&centred, bow, depth, half)));
        let is_arc = |(_, _, seats): &(f64, f64, Vec<(f64, DrawingPoint)>)| {
            seats.iter().all(|(_, [x, y])| x.hypot(*y) <= MAX_DEVIATION_SEATS * pitch)
        };
        let (bow, depth, seats) = fitted.filter(is_arc).unwrap_or_else(|| {
            let depth = centred.iter().map(|[_, y]| y).sum::<f64>() / centred.len() as f64;
            (0.0, depth, deviations(&centred, 0.0, depth, half))
        });
        Self { at: add(first, rotate([middle, depth], turn)), turn, bow, seats }
    }
}

/// Fits a parabola to centred points by least squares and returns its bow and depth; `None` if there are too few
/// points.
fn fit_arc(points: &[DrawingPoint], half: f64) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let square = |[x, _]: &DrawingPoint| x * x;
    let mean = |of: &dyn Fn(&DrawingPoint) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_square, mean_y) = (mean(&square), mean(&|at| at[1]));
    let spread = mean(&|at| (square(at) - mean_square).powi(2));
    if points.len() < 3 || spread <= f64::EPSILON {
        return None;
    }
    let slope = mean(&|at| (square(at) - mean_square) * (at[1] - mean_y)) / spread;
    Some((-slope * half * half, mean_y - slope * mean_square))
}

/// Returns the distance along an arc and the deviation from it for each point.
fn deviations(points: &[DrawingPoint], bow: f64, depth: f64, half: f64) -> Vec<(f64, DrawingPoint)> {
    let (curve, along_of) = Curve::through(bow, half);
    let stray = |[x, y]: &DrawingPoint| {
        let along = along_of(*x);
        let [on_x, on_y] = curve.at(along);
        (along, [x - on_x, y - depth - on_y])
    };
    points.iter().map(stray).collect()
}

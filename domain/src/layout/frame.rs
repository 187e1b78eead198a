//! Converts units of a drawing to plan units: seats 20 apart, the origin at the top left, a margin on all sides, and the
//! focus at the top.
//!
//! The side of the drawing that the focus is on is turned to the top by quarter turns. The file keeps its positions, and
//! all code behind this module has a room whose audience faces up, or one in the round.

use super::error::{LayoutError, MAX_COORDINATE, MAX_ROOM_SIDE};
use super::room::{Drawing, DrawnSeat, Focus, FocusKind, FocusSide, PlacedFocus};
use crate::api::SEAT_PITCH;

/// Margin around the room, plan units.
pub const MARGIN: i32 = 30;
/// Relative tolerance for the seat pitch. A drawing within it of [`SEAT_PITCH`] is not rescaled, so that sketches keep
/// their author's numbers.
const PITCH_TOLERANCE: f64 = 0.05;
/// Number of seats sampled for the median pitch; it bounds the work for any file.
const PITCH_SAMPLES: usize = 2_048;
/// Half the depth that the room has space for around a focus without a depth, plan units.
const FOCUS_HALF_DEPTH: f64 = 10.0;
/// Greatest depth of a focus without a depth, as a share of its width.
const FOCUS_DEPTH: f64 = 1.0 / 6.0;
/// Distance to which drawings beside the seats enlarge the room, as a share of its longer side.
const SHAPE_REACH: f64 = 0.25;
/// Width and depth of a focus in the round, as a share of the space that the seats leave in the middle.
const ROUND_SHARE: f64 = 0.85;

/// True if the value is a valid coordinate.
pub(super) fn is_place(coordinate: f64) -> bool {
    coordinate.is_finite() && coordinate.abs() <= MAX_COORDINATE
}

/// Transformation of a drawing to plan units: turning the focus to the top, scaling to the seat pitch and shifting to
/// the margin.
pub(super) struct PlanTransform {
    side: FocusSide,
    scale: f64,
    left: f64,
    top: f64,
    pub width: i32,
    pub height: i32,
    pub focus: PlacedFocus,
}

impl PlanTransform {
    pub fn around(drawing: &Drawing) -> Result<Self, LayoutError> {
        let scale = scale_to_pitch(drawing);
        let side = drawing.focus.map(|focus| focus.side).unwrap_or_default();
        let seats: Vec<[f64; 2]> =
            drawing.seats().map(|seat| side.turn_to_top([seat.x, seat.y]).map(|along| along * scale)).collect();
        // A room that only has areas is as large as its focus.
        let mut bounds = if seats.is_empty() { [0.0; 4] } else { bounds_of(&seats) };
        let focus = match drawing.focus {
            Some(focus) => in_bounds(focus)?,
            None => focus_at(drawing, FocusKind::default(), FocusSide::default()),
        };
        let [x, y] = side.turn_to_top(focus.at).map(|along| along * scale);
        let (width, depth) = (focus.width * scale, focus.depth.map(|depth| depth * scale));
        if focus.kind != FocusKind::None {
            let half_depth = depth.map_or(FOCUS_HALF_DEPTH, |depth| depth / 2.0);
            let corners = [[x - width / 2.0, y - half_depth], [x + width / 2.0, y + half_depth]];
            bounds = bounds_of(corners.iter().chain(&[[bounds[0], bounds[1]], [bounds[2], bounds[3]]]));
        }
        bounds = with_shapes(bounds, drawing, side, scale);
        let [left, top, right, bottom] = bounds;
        if right - left > MAX_ROOM_SIDE || bottom - top > MAX_ROOM_SIDE {
            return Err(LayoutError::OutOfBounds("the far side".to_owned()));
        }
        let depth = depth.unwrap_or_else(|| (width * FOCUS_DEPTH).min(2.0 * (y - top + f64::from(MARGIN))));
        let depth = clear_depth([x, y], width, depth, &seats);
        let shifted = |along: f64, origin: f64| (along - origin).round() as i32 + MARGIN;
        let focus = PlacedFocus {
            kind: focus.kind,
            side,
            at: [shifted(x, left), shifted(y, top)],
            width: width.round() as i32,
            depth: depth.round() as i32,
        };
        let (width, height) = (shifted(right, left) + MARGIN, shifted(bottom, top) + MARGIN);
        Ok(Self { side, scale, left, top, width, height, focus })
    }

    /// Converts a point to plan units. The side of the room is bounded, so the casts are exact.
    pub fn place(&self, x: f64, y: f64) -> (i32, i32) {
        let [x, y] = self.side.turn_to_top([x, y]);
        let along = |value: f64, origin: f64| (value * self.scale - origin).round() as i32 + MARGIN;
        (along(x, self.left), along(y, self.top))
    }

    /// Converts a point of a drawing to plan units. Drawings may be far outside the room, where they are not shown.
    pub fn place_drawing(&self, [x, y]: [f64; 2]) -> [i32; 2] {
        let [x, y] = self.side.turn_to_top([x, y]);
        let within = |value: f64| value.clamp(-MAX_ROOM_SIDE, 2.0 * MAX_ROOM_SIDE);
        let along = |value: f64, origin: f64| within(value * self.scale - origin).round() as i32 + MARGIN;
        [along(x, self.left), along(y, self.top)]
    }
}

/// Returns left, top, right and bottom of these points.
fn bounds_of<'a>(points: impl IntoIterator<Item = &'a [f64; 2]>) -> [f64; 4] {
    points.into_iter().fold(
        [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
        |[left, top, right, bottom], [x, y]| [left.min(*x), top.min(*y), right.max(*x), bottom.max(*y)],
    )
}

/// Returns the bounds with the drawings beside the seats. Drawings far away are cut off, so that the seats stay large; a
/// room without seats is as large as its drawings.
fn with_shapes(bounds: [f64; 4], drawing: &Drawing, side: FocusSide, scale: f64) -> [f64; 4] {
    let [left, top, right, bottom] = bounds;
    let has_seats = drawing.seats().next().is_some();
    let reach = SHAPE_REACH * if has_seats { (right - left).max(bottom - top) } else { MAX_ROOM_SIDE };
    let corners = drawing.shapes.iter().flat_map(|shape| shape.corners.iter().chain(std::iter::once(&shape.at)));
    let drawn: Vec<[f64; 2]> = corners
        .map(|corner| side.turn_to_top(*corner).map(|along| along * scale))
        .map(|[x, y]| [x.clamp(left - reach, right + reach), y.clamp(top - reach, bottom + reach)])
        .collect();
    bounds_of(drawn.iter().chain(&[[left, top], [right, bottom]]))
}

fn in_bounds(focus: Focus) -> Result<Focus, LayoutError> {
    let is_size = |size: f64| is_place(size) && size > 0.0;
    let is_valid = focus.at.into_iter().all(is_place) && is_size(focus.width) && focus.depth.is_none_or(is_size);
    is_valid.then_some(focus).ok_or_else(|| LayoutError::OutOfBounds("the focus".to_owned()))
}

/// Returns the greatest depth up to `wanted` at which no seat is within the focus.
fn clear_depth([x, y]: [f64; 2], width: f64, wanted: f64, seats: &[[f64; 2]]) -> f64 {
    let seat = f64::from(SEAT_PITCH) / 2.0;
    let beside = seats.iter().filter(|[seat_x, _]| (seat_x - x).abs() < width / 2.0 + seat);
    let half = beside.map(|[_, seat_y]| (seat_y - y).abs() - seat).fold(wanted / 2.0, f64::min);
    2.0 * half.max(0.0)
}

/// Returns a focus on a side of the drawing's seats.
pub(super) fn focus_at(drawing: &Drawing, kind: FocusKind, side: FocusSide) -> Focus {
    let seats: Vec<[f64; 2]> = drawing.seats().map(|seat| [seat.x, seat.y]).collect();
    focus_beside(&seats, f64::from(SEAT_PITCH) / scale_to_pitch(drawing), kind, side)
}

/// Returns a focus on a side of seats with that pitch: in front of the middle half, or in the space that they leave in the
/// middle.
pub(super) fn focus_beside(seats: &[[f64; 2]], pitch: f64, kind: FocusKind, side: FocusSide) -> Focus {
    let seats: Vec<[f64; 2]> = seats.iter().map(|at| side.turn_to_top(*at)).collect();
    let [left, top, right, bottom] = if seats.is_empty() { [0.0; 4] } else { bounds_of(&seats) };
    let pair = 2.0 * pitch;
    let middle = [f64::midpoint(left, right), f64::midpoint(top, bottom)];
    if kind == FocusKind::None || side == FocusSide::Round {
        let free = free_share(&seats) * ROUND_SHARE;
        let (width, depth) = ((right - left) * free, (bottom - top) * free);
        return Focus { kind, side, at: side.turn_back(middle), width: width.max(pair), depth: Some(depth.max(pair)) };
    }
    let width = ((right - left) / 2.0).max(pair);
    Focus { kind, side, at: side.turn_back([middle[0], top - pair]), width, depth: None }
}

/// Returns the greatest share of the seats' bounding box, about its centre, that has no seat: 0 if one is at the centre.
pub(super) fn free_share(seats: &[[f64; 2]]) -> f64 {
    let [left, top, right, bottom] = bounds_of(seats);
    let [x, y] = [f64::midpoint(left, right), f64::midpoint(top, bottom)];
    let [half_width, half_height] = [(right - left) / 2.0, (bottom - top) / 2.0];
    let along = |distance: f64, half: f64| if half > 0.0 { distance.abs() / half } else { 0.0 };
    seats.iter().map(|at| along(at[0] - x, half_width).max(along(at[1] - y, half_height))).fold(1.0, f64::min)
}

/// Returns the factor that scales the median distance of neighbours to [`SEAT_PITCH`].
fn scale_to_pitch(drawing: &Drawing) -> f64 {
    let wanted = f64::from(SEAT_PITCH);
    let pitch = median_pitch(drawing).unwrap_or(wanted);
    if (pitch / wanted - 1.0).abs() <= PITCH_TOLERANCE { 1.0 } else { wanted / pitch }
}

/// Returns the median distance of a seat to the nearest other seat in its row, or in the room if rows have one seat
/// each. `None` if there is no pair of seats.
pub(super) fn median_pitch(drawing: &Drawing) -> Option<f64> {
    let rows = || drawing.zones.iter().flat_map(|zone| &zone.rows);
    let seats = rows().map(|row| row.seats.len()).sum::<usize>();
    let step = seats.div_ceil(PITCH_SAMPLES).max(1);
    let mut nearest = Vec::with_capacity(PITCH_SAMPLES);
    let mut number = 0_usize;
    for row in rows() {
        for seat in &row.seats {
            if number.is_multiple_of(step) {
                nearest.extend(nearest_distance(seat, row.seats.iter()));
            }
            number += 1;
        }
    }
    if nearest.is_empty() {
        for seat in rows().flat_map(|row| &row.seats).step_by(step) {
            nearest.extend(nearest_distance(seat, rows().flat_map(|row| &row.seats)));
        }
    }
    let middle = nearest.len() / 2;
    (!nearest.is_empty()).then(|| *nearest.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Returns the distance to the nearest seat at a different position.
fn nearest_distance<'a>(seat: &DrawnSeat, others: impl Iterator<Item = &'a DrawnSeat>) -> Option<f64> {
    let square = others
        .map(|other| (other.x - seat.x).powi(2) + (other.y - seat.y).powi(2))
        .filter(|square| *square > f64::EPSILON)
        .min_by(f64::total_cmp)?;
    Some(square.sqrt())
}

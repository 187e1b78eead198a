//! Converts units of a drawing to plan units: seats 20 apart, the origin at the top left, a margin on all sides.

use super::error::{LayoutError, MAX_COORDINATE, MAX_ROOM_SIDE};
use super::room::{Drawing, DrawnSeat, Focus};
use crate::api::SEAT_PITCH;

/// Margin around the room, plan units.
pub const MARGIN: i32 = 30;
/// Relative tolerance for the seat pitch. A drawing within it of [`SEAT_PITCH`] is not rescaled, so that sketches keep
/// their author's numbers.
const PITCH_TOLERANCE: f64 = 0.05;
/// Number of seats sampled for the median pitch; it bounds the work for any file.
const PITCH_SAMPLES: usize = 2_048;
/// Half the depth of the screen or stage, plan units.
const FOCUS_HALF_DEPTH: f64 = 10.0;

/// True if the value is a valid coordinate.
pub(super) fn is_place(coordinate: f64) -> bool {
    coordinate.is_finite() && coordinate.abs() <= MAX_COORDINATE
}

/// Transformation of a drawing to plan units: scaling to the seat pitch and shifting to the margin.
pub(super) struct PlanTransform {
    scale: f64,
    left: f64,
    top: f64,
    pub width: i32,
    pub height: i32,
    pub focus_at: [i32; 3],
}

impl PlanTransform {
    pub fn around(drawing: &Drawing) -> Result<Self, LayoutError> {
        let scale = scale_to_pitch(drawing);
        let mut left = f64::INFINITY;
        let mut top = f64::INFINITY;
        let mut right = f64::NEG_INFINITY;
        let mut bottom = f64::NEG_INFINITY;
        let mut include = |x: f64, y: f64| {
            left = left.min(x);
            top = top.min(y);
            right = right.max(x);
            bottom = bottom.max(y);
        };
        for seat in drawing.zones.iter().flat_map(|zone| &zone.rows).flat_map(|row| &row.seats) {
            include(seat.x * scale, seat.y * scale);
        }
        let focus = match drawing.focus {
            Some(Focus { at: [x, y], width, .. }) => {
                if !is_place(x) || !is_place(y) || !is_place(width) || width <= 0.0 {
                    return Err(LayoutError::OutOfBounds("the focus".to_owned()));
                }
                [x * scale, y * scale, width * scale]
            }
            // Default focus: above the seats, over the middle half of the room.
            None => [
                f64::midpoint(left, right),
                top - f64::from(2 * SEAT_PITCH),
                ((right - left) / 2.0).max(f64::from(2 * SEAT_PITCH)),
            ],
        };
        let mut include = |x: f64, y: f64| {
            left = left.min(x);
            top = top.min(y);
            right = right.max(x);
            bottom = bottom.max(y);
        };
        include(focus[0] - focus[2] / 2.0, focus[1] - FOCUS_HALF_DEPTH);
        include(focus[0] + focus[2] / 2.0, focus[1] + FOCUS_HALF_DEPTH);
        if right - left > MAX_ROOM_SIDE || bottom - top > MAX_ROOM_SIDE {
            return Err(LayoutError::OutOfBounds("the far side".to_owned()));
        }
        let mut frame = Self { scale, left, top, width: 0, height: 0, focus_at: [0; 3] };
        let (width, height) = frame.place(right / scale, bottom / scale);
        (frame.width, frame.height) = (width + MARGIN, height + MARGIN);
        let (x, y) = frame.place(focus[0] / scale, focus[1] / scale);
        frame.focus_at = [x, y, focus[2].round() as i32];
        Ok(frame)
    }

    /// Converts a point to plan units. The side of the room is bounded, so the casts are exact.
    pub fn place(&self, x: f64, y: f64) -> (i32, i32) {
        let along = |value: f64, origin: f64| (value * self.scale - origin).round() as i32 + MARGIN;
        (along(x, self.left), along(y, self.top))
    }
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

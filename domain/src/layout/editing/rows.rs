//! Seats of a row: positions, spacing and resizing.

use serde_json::Map;

use super::curve::{Curve, add, rotate};
use super::numbering::label_after;
use super::{DraftRow, DraftSeat, DrawingPoint, NewRows, ObjectKey};

impl DraftRow {
    /// Builds a row for [`NewRows`]; `None` if its seats cannot be numbered.
    pub(super) fn from_request(
        request: &NewRows,
        key: ObjectKey,
        label: String,
        at: DrawingPoint,
        pitch: f64,
    ) -> Option<Self> {
        let numbers = request.numbering.labels(request.seats)?;
        let mut along = 0.0;
        let seats = numbers.into_iter().enumerate().map(|(before, number)| {
            let aisle = if request.aisles.contains(&before) { pitch } else { 0.0 };
            along += if before == 0 { 0.0 } else { pitch + aisle };
            DraftSeat::new(number, request.category, along)
        });
        let seats = seats.collect();
        let (section, turn, bow) = (request.section, request.turn, request.bow);
        let mut row = Self { key, section, label, at, turn, bow, seats, rest: Map::new() };
        row.centre();
        Some(row)
    }

    /// Returns the position of each seat, in list order.
    #[must_use]
    pub fn points(&self) -> Vec<DrawingPoint> {
        let curve = self.curve();
        let place = |seat: &DraftSeat| add(self.at, rotate(add(curve.at(seat.along), seat.stray), self.turn));
        self.seats.iter().map(place).collect()
    }

    /// Returns the indices of its seats from left to right, as seen from the seats towards the front.
    #[must_use]
    pub fn from_left(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.seats.len()).collect();
        order.sort_by(|one, other| self.seats[*one].along.total_cmp(&self.seats[*other].along));
        order
    }

    /// Returns the distance from its middle to its outermost seat.
    #[must_use]
    pub fn half(&self) -> f64 {
        self.seats.iter().map(|seat| seat.along.abs()).fold(0.0, f64::max)
    }

    fn curve(&self) -> Curve {
        Curve::new(self.bow, self.half())
    }

    /// Shifts its seats along the row so that it extends equally to both sides.
    fn centre(&mut self) {
        let low = self.seats.iter().map(|seat| seat.along).fold(f64::INFINITY, f64::min);
        let high = self.seats.iter().map(|seat| seat.along).fold(f64::NEG_INFINITY, f64::max);
        if low.is_finite() && high.is_finite() {
            let middle = f64::midpoint(low, high);
            self.seats.iter_mut().for_each(|seat| seat.along -= middle);
        }
    }

    /// Adds or removes seats at its right end. New seats continue the numbering and take the category of their
    /// neighbour. If there is no next number, it is left empty, which is reported as a finding.
    pub(super) fn resize(&mut self, count: usize, pitch: f64) {
        let order = self.from_left();
        let is_listed_from_left = order.first() <= order.last();
        for gone in order.iter().skip(count) {
            // Marked first, because removing a seat shifts the indices of others.
            self.seats[*gone].along = f64::NAN;
        }
        self.seats.retain(|seat| !seat.along.is_nan());
        while self.seats.len() < count {
            let order = self.from_left();
            let Some(last) = order.last().map(|last| &self.seats[*last]) else { return };
            let before = order.len().checked_sub(2).map(|before| &self.seats[order[before]]);
            let seat = DraftSeat::new(next_number(before, last), last.category, last.along + pitch);
            if is_listed_from_left {
                self.seats.push(seat);
            } else {
                self.seats.insert(0, seat);
            }
        }
        self.centre();
    }

    /// Sets the distance from seat to seat behind the first `after` seats from the left.
    pub(super) fn space(&mut self, after: usize, distance: f64) {
        let order = self.from_left();
        let (Some(left), Some(right)) = (after.checked_sub(1).and_then(|left| order.get(left)), order.get(after))
        else {
            return;
        };
        let by = distance - (self.seats[*right].along - self.seats[*left].along);
        for moved in &order[after..] {
            self.seats[*moved].along += by;
        }
        self.centre();
    }
}

/// Returns the number after the last one. It continues the step between the last two, which is negative if numbers
/// begin at the right.
fn next_number(before: Option<&DraftSeat>, last: &DraftSeat) -> String {
    let value = |seat: &DraftSeat| seat.number.parse::<i64>().ok();
    if let (Some(last), Some(before)) = (value(last), before.and_then(value)) {
        let next = last + (last - before);
        return if next > 0 && next != last { next.to_string() } else { String::new() };
    }
    label_after(&last.number, 1).unwrap_or_default()
}

impl DraftSeat {
    fn new(number: String, category: ObjectKey, along: f64) -> Self {
        Self { number, category, origin: None, along, stray: [0.0, 0.0], rest: Map::new() }
    }
}

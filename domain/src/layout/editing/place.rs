//! Positions in the editor: bounding boxes, selection by rectangle, and the position of the next row.

use super::curve::add;
use super::{Draft, DrawingPoint, ObjectKey, ROW_GAP_SEATS};

/// A rectangle in the drawing: left, top, right, bottom.
pub type Bounds = [f64; 4];

/// Distance from the screen to the first row, in seats.
const FIRST_ROW_SEATS: f64 = 3.0;

/// Returns the bounding box of points; `None` if there are none.
fn bounding_box(points: impl Iterator<Item = DrawingPoint>) -> Option<Bounds> {
    let [left, top, right, bottom] = points.fold(
        [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
        |[left, top, right, bottom], [x, y]| [left.min(x), top.min(y), right.max(x), bottom.max(y)],
    );
    (left <= right && top <= bottom).then_some([left, top, right, bottom])
}

impl Draft {
    /// Returns the points of the selected rows and areas: centres of seats, and corners.
    fn points_of(&self, is_selected: impl Fn(ObjectKey) -> bool + Copy) -> impl Iterator<Item = DrawingPoint> {
        let rows = self.rows.iter().filter(move |row| is_selected(row.key)).flat_map(|row| row.points());
        let areas = self.areas.iter().filter(move |area| is_selected(area.key));
        rows.chain(areas.flat_map(|area| area.outline.corners().into_iter().map(move |corner| add(area.at, corner))))
    }

    /// Returns the bounding box of these rows and areas.
    #[must_use]
    pub fn bounds_of(&self, keys: &[ObjectKey]) -> Option<Bounds> {
        bounding_box(self.points_of(|key| keys.contains(&key)))
    }

    /// Returns the bounding box of everything, including the focus.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        let ([x, y], half) = (self.focus.at, self.focus.width / 2.0);
        let focus = [[x - half, y], [x + half, y]];
        bounding_box(self.points_of(|_| true).chain(focus)).unwrap_or([x, y, x, y])
    }

    /// Returns the middle of these rows and areas.
    pub(super) fn middle_of(&self, keys: &[ObjectKey]) -> Option<DrawingPoint> {
        let [left, top, right, bottom] = self.bounds_of(keys)?;
        Some([f64::midpoint(left, right), f64::midpoint(top, bottom)])
    }

    /// Returns the rows with a seat in a rectangle, and the areas with their middle in it.
    #[must_use]
    pub fn inside(&self, [left, top, right, bottom]: Bounds) -> Vec<ObjectKey> {
        let is_inside = |[x, y]: &DrawingPoint| (left..=right).contains(x) && (top..=bottom).contains(y);
        let rows = self.rows.iter().filter(|row| row.points().iter().any(is_inside)).map(|row| row.key);
        rows.chain(self.areas.iter().filter(|area| is_inside(&area.at)).map(|area| area.key)).collect()
    }

    /// Returns the position for the next row: behind everything, centred on the focus.
    #[must_use]
    pub fn next_place(&self) -> DrawingPoint {
        let [x, y] = self.focus.at;
        let back = bounding_box(self.points_of(|_| true)).map(|[.., bottom]| bottom + ROW_GAP_SEATS * self.pitch);
        [x, back.unwrap_or(y + FIRST_ROW_SEATS * self.pitch)]
    }
}

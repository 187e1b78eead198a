//! Arrow key navigation: a step leads to the seat at that place in the room, not to the next number.
//!
//! Pure geometry, so that curved rows, aisles and sections side by side need no special cases.

use domain::api::{RowView, SEAT_PITCH};
use domain::seats::SeatIndex;

/// Rows per Page Up and Page Down.
const PAGE_ROWS: usize = 5;

/// A step on the map. `Up` leads towards the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapStep {
    Left,
    Right,
    Up,
    Down,
    RowStart,
    RowEnd,
    First,
    Last,
    PageUp,
    PageDown,
}

impl MapStep {
    /// The step of a key in an ARIA grid.
    pub fn of_key(key: &str, control: bool) -> Option<Self> {
        Some(match (key, control) {
            ("ArrowLeft", _) => Self::Left,
            ("ArrowRight", _) => Self::Right,
            ("ArrowUp", _) => Self::Up,
            ("ArrowDown", _) => Self::Down,
            ("Home", false) => Self::RowStart,
            ("End", false) => Self::RowEnd,
            ("Home", true) => Self::First,
            ("End", true) => Self::Last,
            ("PageUp", _) => Self::PageUp,
            ("PageDown", _) => Self::PageDown,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeatPoint {
    seat: SeatIndex,
    row: usize,
    x: i32,
    y: i32,
}

/// The seats on screen and their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    points: Vec<SeatPoint>,
}

impl Steps {
    /// The seats of these rows.
    pub fn new<'a>(rows: impl Iterator<Item = &'a RowView>) -> Self {
        let mut points = Vec::new();
        for (place, row) in rows.enumerate() {
            let seats = row.first..;
            points.extend(seats.zip(row.x.iter().zip(&row.y)).map(|(seat, (x, y))| SeatPoint {
                seat,
                row: place,
                x: *x,
                y: *y,
            }));
        }
        Self { points }
    }

    /// The initial seat: a free one near the middle, else any near the middle.
    pub fn start(&self, is_free: impl Fn(SeatIndex) -> bool) -> Option<SeatIndex> {
        let count = i64::try_from(self.points.len()).ok().filter(|count| *count > 0)?;
        let mean =
            |of: fn(&SeatPoint) -> i32| self.points.iter().map(|point| i64::from(of(point))).sum::<i64>() / count;
        let (x, y) = (mean(|point| point.x), mean(|point| point.y));
        let distance = |point: &SeatPoint| (i64::from(point.x) - x).abs() + (i64::from(point.y) - y).abs();
        let nearest = |free: bool| {
            let wanted = self.points.iter().filter(|point| !free || is_free(point.seat));
            wanted.min_by_key(|point| distance(point)).map(|point| point.seat)
        };
        nearest(true).or_else(|| nearest(false))
    }

    /// The target of a step from a seat, or the seat itself at the edge.
    pub fn step(&self, from: SeatIndex, step: MapStep) -> SeatIndex {
        let Some(at) = self.points.iter().find(|point| point.seat == from).copied() else {
            return self.points.first().map_or(from, |point| point.seat);
        };
        let in_row = || self.points.iter().filter(|point| point.row == at.row);
        let found = match step {
            MapStep::Left => self.nearest(at, |dx, dy| (dx < 0 && dy.abs() < SEAT_PITCH).then(|| -dx + 2 * dy.abs())),
            MapStep::Right => self.nearest(at, |dx, dy| (dx > 0 && dy.abs() < SEAT_PITCH).then(|| dx + 2 * dy.abs())),
            MapStep::Up => return self.rows_away(at, 1, -1),
            MapStep::Down => return self.rows_away(at, 1, 1),
            MapStep::PageUp => return self.rows_away(at, PAGE_ROWS, -1),
            MapStep::PageDown => return self.rows_away(at, PAGE_ROWS, 1),
            MapStep::RowStart => in_row().min_by_key(|point| point.x).copied(),
            MapStep::RowEnd => in_row().max_by_key(|point| point.x).copied(),
            MapStep::First => self.points.first().copied(),
            MapStep::Last => self.points.last().copied(),
        };
        found.unwrap_or(at).seat
    }

    fn rows_away(&self, from: SeatPoint, rows: usize, direction: i32) -> SeatIndex {
        let mut at = from;
        for _ in 0..rows {
            // Keeps the start's column, so that stepping down and up returns to it.
            let origin = SeatPoint { x: from.x, ..at };
            let next = self.nearest(origin, |dx, dy| {
                let ahead = dy * direction;
                (ahead > SEAT_PITCH / 2).then(|| ahead * 2 + dx.abs())
            });
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at.seat
    }

    /// The seat of least cost. `cost` of (dx, dy) is `None` in other directions.
    fn nearest(&self, from: SeatPoint, cost: impl Fn(i32, i32) -> Option<i32>) -> Option<SeatPoint> {
        let candidates = self.points.iter().filter(|point| point.seat != from.seat);
        let costs = candidates.filter_map(|point| Some((cost(point.x - from.x, point.y - from.y)?, point)));
        costs.min_by_key(|(cost, point)| (*cost, point.seat)).map(|(_, point)| *point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room_plan::{RoomPlan, tests::two_sections};

    fn steps() -> Steps {
        Steps::new(RoomPlan::new(two_sections()).rows(None).map(|(_, row)| row))
    }

    #[test]
    fn arrows_lead_to_the_neighbour() {
        let steps = steps();
        assert_eq!(steps.step(1, MapStep::Right), 2);
        assert_eq!(steps.step(1, MapStep::Left), 0);
        assert_eq!(steps.step(1, MapStep::Down), 5);
        assert_eq!(steps.step(5, MapStep::Up), 1);
    }

    #[test]
    fn a_step_over_the_edge_stays() {
        let steps = steps();
        assert_eq!(steps.step(0, MapStep::Left), 0);
        assert_eq!(steps.step(0, MapStep::Up), 0);
        assert_eq!(steps.step(9, MapStep::Down), 9);
    }

    #[test]
    fn a_step_down_reaches_the_next_section() {
        assert_eq!(steps().step(4, MapStep::Down), 8);
        assert_eq!(steps().step(0, MapStep::PageDown), 8);
    }

    #[test]
    fn home_and_end_span_the_row_and_with_control_the_map() {
        let steps = steps();
        assert_eq!(MapStep::of_key("End", false).map(|step| steps.step(5, step)), Some(7));
        assert_eq!(MapStep::of_key("Home", false).map(|step| steps.step(5, step)), Some(4));
        assert_eq!(MapStep::of_key("Home", true).map(|step| steps.step(5, step)), Some(0));
        assert_eq!(MapStep::of_key("End", true).map(|step| steps.step(5, step)), Some(9));
        assert_eq!(MapStep::of_key("x", false), None);
    }

    #[test]
    fn the_first_focus_is_a_free_seat_near_the_middle() {
        assert_eq!(steps().start(|seat| seat == 7), Some(7));
        assert!(steps().start(|_| false).is_some());
        assert_eq!(Steps::default().start(|_| true), None);
    }
}

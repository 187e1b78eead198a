//! How close one looks at the map, and what must move so that the point one looks at stays where it is.
//!
//! Pure geometry in CSS pixels of the window. The element and its scroller are in `plane`.

/// Looks closer by this when a button is pressed; a double tap does two of them.
pub const STEP: f64 = 1.5;
/// A seat as large as this is large enough, pixels.
const LARGEST_SEAT_PX: f64 = 64.0;
/// A finger needs a seat this large, pixels: 24 is the least of WCAG 2.2 (2.5.8).
const FINGER_SEAT_PX: f64 = 25.0;
/// Pixels that a turn of the wheel scrolls, for a change by a factor of e.
const WHEEL_PX: f64 = 420.0;

/// A rectangle in the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Box2 {
    /// From the left of the window.
    pub left: f64,
    /// From its top.
    pub top: f64,
    /// How wide.
    pub width: f64,
    /// How high.
    pub height: f64,
}

/// A point in the window.
pub type Point = (f64, f64);

impl Box2 {
    /// Its middle.
    #[must_use]
    pub fn middle(self) -> Point {
        (self.left + self.width / 2.0, self.top + self.height / 2.0)
    }
}

/// How much larger than the whole room, 1 at least; `seat_px` is the size of a seat in the whole room.
#[must_use]
pub fn clamped(zoom: f64, seat_px: f64) -> f64 {
    zoom.clamp(1.0, (LARGEST_SEAT_PX / seat_px.max(0.1)).max(1.0))
}

/// Where to begin: the whole room with a mouse, seats that can be hit with a finger.
#[must_use]
pub fn start(seat_px: f64, by_finger: bool) -> f64 {
    clamped(if by_finger { FINGER_SEAT_PX / seat_px.max(0.1) } else { 1.0 }, seat_px)
}

/// The factor that turning a wheel by so many pixels means; down is away.
#[must_use]
pub fn wheel_factor(delta_px: f64) -> f64 {
    (-delta_px / WHEEL_PX).clamp(-1.0, 1.0).exp()
}

/// How far the map has moved under `point` when it changed from one box to another: what must be scrolled
/// for that point of the map to lie there again.
#[must_use]
pub fn drift(before: Box2, after: Box2, point: Point) -> Point {
    let share = |at: f64, from: f64, length: f64| (at - from) / length.max(1.0);
    (
        after.left + share(point.0, before.left, before.width) * after.width - point.0,
        after.top + share(point.1, before.top, before.height) * after.height - point.1,
    )
}

/// The transform, about its own corner, that makes `now` look like `looks`.
#[must_use]
pub fn transform(now: Box2, looks: Box2) -> String {
    let (x, y) = (decimal(looks.left - now.left), decimal(looks.top - now.top));
    format!("translate({x}px, {y}px) scale({})", decimal(looks.width / now.width.max(1.0)))
}

/// A number with three digits after the point, as styles want it. Floats that write themselves cost the
/// browser half fifteen kilobytes.
#[must_use]
pub fn decimal(number: f64) -> String {
    let thousandths = (number * 1_000.0).round() as i64;
    let sign = if thousandths < 0 { "-" } else { "" };
    let thousandths = thousandths.unsigned_abs();
    format!("{sign}{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// Two fingers on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pinch {
    /// The map when they touched it.
    pub start: Box2,
    /// Between them then.
    middle: Point,
    distance: f64,
}

impl Pinch {
    /// Begins.
    #[must_use]
    pub fn new(start: Box2, one: Point, other: Point) -> Self {
        Self { start, middle: between(one, other), distance: distance(one, other) }
    }

    /// Where the map is to be seen while the fingers are there: the points they touched stay under them.
    /// `factor` may be held back by the limits.
    #[must_use]
    pub fn looks(self, one: Point, other: Point, limit: impl Fn(f64) -> f64) -> (f64, Box2) {
        let factor = limit(distance(one, other) / self.distance.max(1.0));
        let middle = between(one, other);
        let moved = |at: f64, corner: f64, now: f64| now + (corner - at) * factor;
        let looks = Box2 {
            left: moved(self.middle.0, self.start.left, middle.0),
            top: moved(self.middle.1, self.start.top, middle.1),
            width: self.start.width * factor,
            height: self.start.height * factor,
        };
        (factor, looks)
    }
}

fn between(one: Point, other: Point) -> Point {
    (f64::midpoint(one.0, other.0), f64::midpoint(one.1, other.1))
}

fn distance(one: Point, other: Point) -> f64 {
    (one.0 - other.0).hypot(one.1 - other.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Box2 = Box2 { left: 100.0, top: 50.0, width: 400.0, height: 200.0 };

    #[test]
    fn no_further_than_the_room_and_no_closer_than_a_large_seat() {
        assert_eq!((clamped(0.2, 16.0), clamped(2.0, 16.0), clamped(9.0, 16.0)), (1.0, 2.0, 4.0));
        assert_eq!(clamped(2.0, 100.0), 1.0, "seats of a tiny room are large enough at once");
        assert_eq!((start(12.5, true), start(12.5, false), start(40.0, true)), (2.0, 1.0, 1.0));
    }

    #[test]
    fn the_wheel_is_even_both_ways_and_never_wild() {
        assert!((wheel_factor(100.0) * wheel_factor(-100.0) - 1.0).abs() < 1e-9);
        assert!(wheel_factor(-100.0) > 1.0);
        assert_eq!(wheel_factor(1e9), wheel_factor(5_000.0));
    }

    #[test]
    fn the_point_one_looks_at_stays() {
        let twice = Box2 { width: 800.0, height: 400.0, ..ROOM };
        // A quarter of the way across: 100 px from the edge became 200.
        assert_eq!(drift(ROOM, twice, (200.0, 50.0)), (100.0, 0.0));
        assert_eq!(drift(ROOM, ROOM, (222.0, 111.0)), (0.0, 0.0));
    }

    #[test]
    fn a_transform_makes_one_box_look_like_another() {
        let half = Box2 { left: 120.0, top: 60.0, width: 200.0, height: 100.0 };
        assert_eq!(transform(ROOM, half), "translate(20.000px, 10.000px) scale(0.500)");
        assert_eq!([-0.5, -0.0004, 12.3456].map(decimal), ["-0.500", "0.000", "12.346"]);
    }

    #[test]
    fn fingers_keep_the_points_they_touched() {
        let pinch = Pinch::new(ROOM, (200.0, 100.0), (300.0, 100.0));
        let (factor, looks) = pinch.looks((150.0, 120.0), (350.0, 120.0), |factor| factor);
        assert_eq!(factor, 2.0);
        // The left finger touched the map 100 px from its edge: 200 now.
        assert_eq!((looks.left + 200.0, looks.top + 100.0), (150.0, 120.0));
        let (held_back, _) = pinch.looks((0.0, 0.0), (1_000.0, 0.0), |factor| factor.min(3.0));
        assert_eq!(held_back, 3.0);
        assert_eq!(pinch.start.middle(), (300.0, 150.0));
    }
}

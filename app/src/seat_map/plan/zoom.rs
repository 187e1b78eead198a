//! Zoom arithmetic: magnification limits, and the scroll offset that keeps a point in place.
//!
//! Pure geometry in CSS pixels of the window. The element and its scroller are in `plane`.

/// Factor of a zoom button. A double tap applies it twice.
pub const STEP: f64 = 1.5;
/// Largest size of a seat, pixels.
const LARGEST_SEAT_PX: f64 = 64.0;
/// Size of a seat after a tap on seats that are too small for a finger, pixels.
const FINGER_SEAT_PX: f64 = 40.0;
/// Wheel pixels for a factor of e.
const WHEEL_PX: f64 = 420.0;

/// A rectangle in the window, pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowRect {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A point in the window.
pub type WindowPoint = (f64, f64);

impl WindowRect {
    pub fn middle(self) -> WindowPoint {
        (self.left + self.width / 2.0, self.top + self.height / 2.0)
    }
}

/// Limits the magnification. It is at least 1; `seat_px` is the size of a seat at 1.
pub fn clamped(zoom: f64, seat_px: f64) -> f64 {
    zoom.clamp(1.0, (LARGEST_SEAT_PX / seat_px.max(0.1)).max(1.0))
}

/// The magnification at which seats are large enough for a finger.
pub fn for_fingers(seat_px: f64) -> f64 {
    clamped(FINGER_SEAT_PX / seat_px.max(0.1), seat_px)
}

/// The factor for a wheel movement in pixels. Down zooms out.
pub fn wheel_factor(delta_px: f64) -> f64 {
    (-delta_px / WHEEL_PX).clamp(-1.0, 1.0).exp()
}

/// The distance the map moved under `point` when its box changed: scroll by it to keep that point in place.
pub fn drift(before: WindowRect, after: WindowRect, point: WindowPoint) -> WindowPoint {
    let share = |at: f64, from: f64, length: f64| (at - from) / length.max(1.0);
    (
        after.left + share(point.0, before.left, before.width) * after.width - point.0,
        after.top + share(point.1, before.top, before.height) * after.height - point.1,
    )
}

/// The transform, with its origin at the corner, that makes `now` look like `looks`.
pub fn transform(now: WindowRect, looks: WindowRect) -> String {
    let (x, y) = (decimal(looks.left - now.left), decimal(looks.top - now.top));
    format!("translate({x}px, {y}px) scale({})", decimal(looks.width / now.width.max(1.0)))
}

/// A number with three decimals for CSS. Rust's float formatting would add fifteen kilobytes to the module.
pub fn decimal(number: f64) -> String {
    let thousandths = (number * 1_000.0).round() as i64;
    let sign = if thousandths < 0 { "-" } else { "" };
    let thousandths = thousandths.unsigned_abs();
    format!("{sign}{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// A pinch with two fingers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pinch {
    pub start: WindowRect,
    /// The middle between the fingers at the start.
    middle: WindowPoint,
    distance: f64,
}

impl Pinch {
    pub fn new(start: WindowRect, one: WindowPoint, other: WindowPoint) -> Self {
        Self { start, middle: between(one, other), distance: distance(one, other) }
    }

    /// The factor and the box of the map during the pinch: the touched points stay under the fingers. `limit` bounds
    /// the factor.
    pub fn looks(self, one: WindowPoint, other: WindowPoint, limit: impl Fn(f64) -> f64) -> (f64, WindowRect) {
        let factor = limit(distance(one, other) / self.distance.max(1.0));
        let middle = between(one, other);
        let moved = |at: f64, corner: f64, now: f64| now + (corner - at) * factor;
        let looks = WindowRect {
            left: moved(self.middle.0, self.start.left, middle.0),
            top: moved(self.middle.1, self.start.top, middle.1),
            width: self.start.width * factor,
            height: self.start.height * factor,
        };
        (factor, looks)
    }
}

fn between(one: WindowPoint, other: WindowPoint) -> WindowPoint {
    (f64::midpoint(one.0, other.0), f64::midpoint(one.1, other.1))
}

fn distance(one: WindowPoint, other: WindowPoint) -> f64 {
    (one.0 - other.0).hypot(one.1 - other.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: WindowRect = WindowRect { left: 100.0, top: 50.0, width: 400.0, height: 200.0 };

    #[test]
    fn magnification_is_limited_by_the_room_and_the_largest_seat() {
        assert_eq!((clamped(0.2, 16.0), clamped(2.0, 16.0), clamped(9.0, 16.0)), (1.0, 2.0, 4.0));
        assert_eq!(clamped(2.0, 100.0), 1.0, "seats of a tiny room are large enough at once");
        assert_eq!((for_fingers(20.0), for_fingers(50.0)), (2.0, 1.0));
    }

    #[test]
    fn the_wheel_is_symmetric_and_limited() {
        assert!((wheel_factor(100.0) * wheel_factor(-100.0) - 1.0).abs() < 1e-9);
        assert!(wheel_factor(-100.0) > 1.0);
        assert_eq!(wheel_factor(1e9), wheel_factor(5_000.0));
    }

    #[test]
    fn zooming_keeps_the_point_in_place() {
        let twice = WindowRect { width: 800.0, height: 400.0, ..ROOM };
        // A quarter of the width: 100 px from the edge became 200.
        assert_eq!(drift(ROOM, twice, (200.0, 50.0)), (100.0, 0.0));
        assert_eq!(drift(ROOM, ROOM, (222.0, 111.0)), (0.0, 0.0));
    }

    #[test]
    fn a_transform_makes_one_box_look_like_another() {
        let half = WindowRect { left: 120.0, top: 60.0, width: 200.0, height: 100.0 };
        assert_eq!(transform(ROOM, half), "translate(20.000px, 10.000px) scale(0.500)");
        assert_eq!([-0.5, -0.0004, 12.3456].map(decimal), ["-0.500", "0.000", "12.346"]);
    }

    #[test]
    fn a_pinch_keeps_the_touched_points_under_the_fingers() {
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

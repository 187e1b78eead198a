//! The line a row stands on: straight, or an arc of a circle. Plain geometry: y grows down the page, angles clockwise.

use super::Point;

/// The deepest bow, as a part of half the row's length: a half circle.
const MAX_BOW_SHARE: f64 = std::f64::consts::FRAC_2_PI;
/// Halvings of an interval until an angle is exact.
const HALVINGS: u32 = 50;
/// A bow below this part of half the row's length is none.
const STRAIGHT_BELOW: f64 = 1e-6;

/// The line of a row, in the row's own directions: along it to the right, and away from what people look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    /// Radius, negative where the ends fall back; `None` for a straight row.
    radius: Option<f64>,
}

impl Curve {
    /// A row that reaches `half` to each side, its ends `bow` in front of its middle. A bow deeper than a half circle
    /// is a half circle.
    pub fn new(bow: f64, half: f64) -> Self {
        if half <= 0.0 || bow.abs() <= half * STRAIGHT_BELOW {
            return Self { radius: None };
        }
        let share = (bow.abs() / half).min(MAX_BOW_SHARE);
        // (1 - cos a) / a grows from 0 up to a quarter turn; there is no closed form for a.
        let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if (1.0 - middle.cos()) / middle < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self { radius: Some((half / high).copysign(bow)) }
    }

    /// The arc through a middle and two ends that lie `half` to its sides and `bow` in front of it; with how far along
    /// it a point lies that is so far to the right.
    pub fn through(bow: f64, half: f64) -> (Self, impl Fn(f64) -> f64) {
        let radius = (bow.abs() > half * STRAIGHT_BELOW).then(|| (half * half + bow * bow) / (2.0 * bow));
        let along = move |x: f64| match radius {
            Some(radius) => radius.abs() * (x / radius.abs()).clamp(-1.0, 1.0).asin(),
            None => x,
        };
        (Self { radius }, along)
    }

    /// The point so far along.
    pub fn at(self, along: f64) -> Point {
        let Some(radius) = self.radius else { return [along, 0.0] };
        let angle = along / radius.abs();
        [radius.abs() * angle.sin(), -radius * (1.0 - angle.cos())]
    }
}

/// A way, turned by degrees clockwise.
pub(super) fn turned([x, y]: Point, degrees: f64) -> Point {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [x * cos - y * sin, x * sin + y * cos]
}

/// An angle from -180 up to 180, to a hundredth of a degree.
pub(super) fn even(degrees: f64) -> f64 {
    let rest = (degrees + 180.0).rem_euclid(360.0) - 180.0;
    (rest * 100.0).round() / 100.0
}

/// The sum of two ways.
pub(super) fn plus([x, y]: Point, [dx, dy]: Point) -> Point {
    [x + dx, y + dy]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_come_forward_by_the_bow_and_neighbours_stay_apart() {
        for (bow, half) in [(30.0, 100.0), (-12.0, 250.0), (60.0, 100.0), (0.5, 1_000.0)] {
            let curve = Curve::new(bow, half);
            assert_eq!(curve.at(0.0), [0.0, 0.0]);
            assert!((curve.at(half)[1] + bow).abs() < 1e-6 * half, "{bow} {half}");
            let ([ax, ay], [bx, by]) = (curve.at(40.0), curve.at(60.0));
            assert!(((bx - ax).hypot(by - ay) - 20.0).abs() < 0.5);
        }
        assert_eq!(Curve::new(0.0, 100.0).at(70.0), [70.0, 0.0]);
        assert_eq!(Curve::new(10.0, 0.0).at(0.0), [0.0, 0.0], "one seat has no bow");
        let [x, y] = Curve::new(1e9, 100.0).at(100.0);
        assert!(x > 0.0 && y < 0.0, "no deeper than a half circle");
    }

    #[test]
    fn an_arc_through_points_is_the_arc_of_its_length() {
        let (arc, along) = Curve::through(25.0, 90.0);
        let half = along(90.0);
        assert!((arc.at(half)[0] - 90.0).abs() < 1e-9 && (arc.at(half)[1] + 25.0).abs() < 1e-9);
        let again = Curve::new(25.0, half);
        assert!((again.at(half / 2.0)[1] - arc.at(half / 2.0)[1]).abs() < 1e-6);
    }

    #[test]
    fn angles_are_even() {
        assert_eq!([even(370.0), even(-190.0), even(90.004)], [10.0, 170.0, 90.0]);
        let [x, y] = turned([1.0, 0.0], 90.0);
        assert!(x.abs() < 1e-12 && (y - 1.0).abs() < 1e-12, "clockwise on the page");
    }
}

//! Line of a row: straight, or an arc of a circle. Coordinates: y grows down the page, angles are clockwise.

use super::DrawingPoint;

/// Maximum bow as a share of half the row's length: a half circle.
const MAX_BOW_SHARE: f64 = std::f64::consts::FRAC_2_PI;
/// Number of bisection steps to find an angle.
const BISECTION_STEPS: u32 = 50;
/// Bow as a share of half the row's length below which a row is straight.
const STRAIGHT_BELOW_SHARE: f64 = 1e-6;

/// Line of a row in coordinates of the row: x along the row to the right, y away from the focus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    /// Radius, negative if the ends are behind the middle; `None` for a straight row.
    radius: Option<f64>,
}

impl Curve {
    /// Creates the line of a row that extends `half` to each side, with its ends `bow` in front of its middle. A larger
    /// bow than a half circle is reduced to a half circle.
    pub fn new(bow: f64, half: f64) -> Self {
        if half <= 0.0 || bow.abs() <= half * STRAIGHT_BELOW_SHARE {
            return Self { radius: None };
        }
        let share = (bow.abs() / half).min(MAX_BOW_SHARE);
        // (1 - cos a) / a increases from 0 to a quarter turn. There is no closed form for a.
        let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
        for _ in 0..BISECTION_STEPS {
            let middle = f64::midpoint(low, high);
            if (1.0 - middle.cos()) / middle < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self { radius: Some((half / high).copysign(bow)) }
    }

    /// Creates the arc through a middle and two ends, which are `half` to its sides and `bow` in front of it. Also
    /// returns a function from the x coordinate of a point to its distance along the arc.
    pub fn through(bow: f64, half: f64) -> (Self, impl Fn(f64) -> f64) {
        let radius = (bow.abs() > half * STRAIGHT_BELOW_SHARE).then(|| (half * half + bow * bow) / (2.0 * bow));
        let along = move |x: f64| match radius {
            Some(radius) => radius.abs() * (x / radius.abs()).clamp(-1.0, 1.0).asin(),
            None => x,
        };
        (Self { radius }, along)
    }

    /// Returns the point at this distance along the line.
    pub fn at(self, along: f64) -> DrawingPoint {
        let Some(radius) = self.radius else { return [along, 0.0] };
        let angle = along / radius.abs();
        [radius.abs() * angle.sin(), -radius * (1.0 - angle.cos())]
    }
}

/// Rotates a vector by degrees clockwise.
pub(super) fn rotate([x, y]: DrawingPoint, degrees: f64) -> DrawingPoint {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [x * cos - y * sin, x * sin + y * cos]
}

/// Normalises an angle to -180 up to 180 degrees, rounded to hundredths.
pub(super) fn normalise_angle(degrees: f64) -> f64 {
    let rest = (degrees + 180.0).rem_euclid(360.0) - 180.0;
    (rest * 100.0).round() / 100.0
}

pub(super) fn add([x, y]: DrawingPoint, [dx, dy]: DrawingPoint) -> DrawingPoint {
    [x + dx, y + dy]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_in_front_by_the_bow_and_spacing_is_kept() {
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
    fn arc_through_points_equals_the_arc_of_its_length() {
        let (arc, along) = Curve::through(25.0, 90.0);
        let half = along(90.0);
        assert!((arc.at(half)[0] - 90.0).abs() < 1e-9 && (arc.at(half)[1] + 25.0).abs() < 1e-9);
        let again = Curve::new(25.0, half);
        assert!((again.at(half / 2.0)[1] - arc.at(half / 2.0)[1]).abs() < 1e-6);
    }

    #[test]
    fn angles_are_normalised_and_rotation_is_clockwise() {
        assert_eq!([normalise_angle(370.0), normalise_angle(-190.0), normalise_angle(90.004)], [10.0, 170.0, 90.0]);
        let [x, y] = rotate([1.0, 0.0], 90.0);
        assert!(x.abs() < 1e-12 && (y - 1.0).abs() < 1e-12, "clockwise on the page");
    }
}

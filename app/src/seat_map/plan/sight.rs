//! The view of the screen from a seat, computed from their places in the plan.
//!
//! A perspective drawing: the eye looks at the middle of the screen, whose far side is shorter than its near side. The
//! plan has no heights, so an even rise is assumed (see the constants). Pure.

/// Aspect ratio of a screen: "scope", the wider of the two usual formats.
const SCREEN_FORMAT: f64 = 2.39;
/// Rise of the floor per unit of depth: a cinema's usual 10 degrees.
const RAKE: f64 = 0.18;
/// Height of the screen's lower edge above the eyes of the first row, as a share of the screen's height.
const SILL: f64 = 0.22;
/// Smallest distance of a seat, plan units. It keeps drawings finite.
const CLOSEST: f64 = 30.0;
/// From this angle to the side on, degrees, a seat has a restricted view.
const RESTRICTED_DEGREES: f64 = 40.0;

/// Width of the drawing.
pub const WIDTH: f64 = 120.0;
/// Height of the drawing.
pub const HEIGHT: f64 = 68.0;
/// Half of the drawing's horizontal view, as the tangent of its angle: 50 degrees.
const HALF_VIEW: f64 = 1.19;

/// The screen as seen from a seat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewFromSeat {
    /// Its corners in the drawing: top left, top right, bottom right, bottom left. May be beyond the edge.
    pub corners: [(f64, f64); 4],
    /// Angle from straight ahead, degrees; negative for seats on the left.
    pub aside: f64,
    /// Horizontal angle that the screen fills, degrees.
    pub fills: f64,
}

/// The view of a screen at `focus` (centre x, y and width, plan units) from a seat. `first_row` is the y of the nearest
/// seats.
#[must_use]
pub fn from(seat: (i32, i32), focus: [i32; 3], first_row: i32) -> ViewFromSeat {
    let [x, y, width] = focus.map(f64::from);
    let (seat_x, seat_y) = (f64::from(seat.0), f64::from(seat.1));
    // The eye is at the origin, and the screen in front at distance "depth".
    let (aside, depth) = (x - seat_x, (seat_y - y).max(CLOSEST));
    let distance = aside.hypot(depth);
    let (ahead_x, ahead_y) = (aside / distance, depth / distance);
    let eye = RAKE * (seat_y - f64::from(first_row)).max(0.0);
    let height = width / SCREEN_FORMAT;
    let (low, high) = (SILL * height - eye, (1.0 + SILL) * height - eye);
    let edge = |side: f64| {
        let across = aside + side * width / 2.0;
        let away = (across * ahead_x + depth * ahead_y).max(CLOSEST / 2.0);
        ((across * ahead_y - depth * ahead_x) / away, away)
    };
    // The middle of the drawing shows the middle of the screen, slightly raised.
    let level = f64::midpoint(low, high) / distance;
    let place = |(right, away): (f64, f64), up: f64| {
        let scale = WIDTH / 2.0 / HALF_VIEW;
        (WIDTH / 2.0 + right * scale, HEIGHT * 0.44 - (up / away - level) * scale)
    };
    let (left, right) = (edge(-1.0), edge(1.0));
    ViewFromSeat {
        corners: [place(left, high), place(right, high), place(right, low), place(left, low)],
        aside: (-aside).atan2(depth).to_degrees(),
        fills: (right.0.atan() - left.0.atan()).to_degrees(),
    }
}

impl ViewFromSeat {
    /// Returns true if the seat is so far to the side that buyers must know before they pay.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.aside.abs() >= RESTRICTED_DEGREES
    }

    /// The corners as points of an SVG polygon.
    #[must_use]
    pub fn points(&self) -> String {
        let points = self.corners.map(|(x, y)| format!("{},{}", x.round() as i32, y.round() as i32));
        points.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A screen 400 wide at the top of a room whose rows start at 100.
    const FOCUS: [i32; 3] = [300, 20, 400];

    fn width_of(sight: &ViewFromSeat) -> f64 {
        sight.corners[1].0 - sight.corners[0].0
    }

    #[test]
    fn the_view_from_the_middle_is_straight_and_level() {
        let sight = from((300, 400), FOCUS, 100);
        let [top_left, top_right, bottom_right, bottom_left] = sight.corners;
        assert!(sight.aside.abs() < 1e-9 && !sight.is_restricted());
        assert!((top_left.1 - top_right.1).abs() < 1e-9 && (bottom_left.1 - bottom_right.1).abs() < 1e-9);
        assert!((top_left.0 + top_right.0 - WIDTH).abs() < 1e-9, "as far from the left as from the right");
        assert!(top_left.1 < bottom_left.1, "up is up");
    }

    #[test]
    fn the_screen_is_smaller_from_further_back() {
        let (near, far) = (from((300, 150), FOCUS, 100), from((300, 600), FOCUS, 100));
        assert!(width_of(&near) > 2.0 * width_of(&far));
        assert!(near.fills > far.fills && far.fills > 0.0);
    }

    #[test]
    fn the_near_edge_of_the_screen_is_taller_from_the_side() {
        let sight = from((60, 200), FOCUS, 100);
        let [top_left, top_right, bottom_right, bottom_left] = sight.corners;
        assert!(bottom_left.1 - top_left.1 > bottom_right.1 - top_right.1);
        assert!(sight.aside < 0.0, "the seat is on the left");
        assert!(sight.is_restricted(), "{}", sight.aside);
        let mirrored = from((540, 200), FOCUS, 100);
        assert!((mirrored.aside + sight.aside).abs() < 1e-9);
    }

    #[test]
    fn a_seat_beside_the_screen_has_a_finite_view() {
        let sight = from((300, -50), FOCUS, 100);
        assert!(sight.corners.iter().all(|(x, y)| x.is_finite() && y.is_finite()));
        assert!(!sight.points().contains("NaN"));
    }
}

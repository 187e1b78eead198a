//! The card of one seat: its place, kind and price, and the view of the screen from it.
//!
//! The view is a perspective drawing: the eye looks at the middle of the screen, whose far side is shorter than its near
//! side. The plan has no heights, so an even rise is assumed (see the constants). In the round every seat faces the
//! focus.

use domain::api::PlanView;
use domain::seats::SeatIndex;
use language::{Arg, current, money, say};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::drawing::escaped;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::room_plan::{RoomPlan, Seat, has_focus};
use crate::seat_map::session::MapSession;

/// Angles below this count as straight ahead, degrees.
const STRAIGHT_DEGREES: f64 = 6.0;

/// The view of the focus from a seat; `None` in a room without one.
pub fn sight_of(plan: &PlanView, seat: &Seat<'_>) -> Option<ViewFromSeat> {
    if !has_focus(plan) {
        return None;
    }
    if plan.is_round {
        return Some(view_in_the_round((seat.x, seat.y), plan.focus_at, plan.focus_depth));
    }
    // Sections of a large room have bounds; the nearest one has the first row.
    let first_row = plan.sections.iter().map(|section| section.bounds[1]).min().unwrap_or(0);
    Some(view_from((seat.x, seat.y), plan.focus_at, first_row))
}

/// The fixed part of a seat's name for screen readers: place, kind, price and view.
pub fn words_of(plan: &PlanView, seat: &Seat<'_>) -> String {
    with_view(plan, seat, seat.in_words())
}

/// Adds a restricted view to other words about the seat.
pub fn with_view(plan: &PlanView, seat: &Seat<'_>, words: String) -> String {
    let is_restricted = sight_of(plan, seat).is_some_and(|sight| sight.is_restricted());
    if is_restricted { say!("map.seat_at_the_side", seat = Arg::Ours(&words)) } else { words }
}

/// The card of the seat pointed at.
pub fn card_view(session: MapSession) -> impl IntoView {
    // A memo: free seats are counted far more often than this changes.
    let is_sold_out = Memo::new(move |_| session.is_sold_out() && session.cart.with(Cart::is_empty));
    view! {
        <div class="seat-card" data-testid="seat-card" aria-hidden="true"
            inner_html=move || card(session, session.pointed_seat.get(), is_sold_out.get())></div>
    }
}

/// The card as markup; without a seat, a hint.
fn card(session: MapSession, seat: Option<SeatIndex>, is_sold_out: bool) -> String {
    let found = session.room.with(|room| {
        let (room, seat) = (room.as_ref()?, seat?);
        Some(markup(room, &room.seat(seat)?, || is_takeable(session, seat)))
    });
    // A new element for each seat restarts the animation.
    format!("<div class=\"seat-card-face\">{}</div>", found.unwrap_or_else(|| hint(is_sold_out)))
}

/// Returns true if a tap takes the seat. Subscribes.
fn is_takeable(session: MapSession, seat: SeatIndex) -> bool {
    !session.is_read_only && session.appearance_signal(seat).get().state() == "available"
}

fn hint(is_sold_out: bool) -> String {
    let words = if is_sold_out { say!("map.sold_out") } else { say!("map.card_hint") };
    format!("<p class=\"seat-card-hint\">{}</p>", escaped(&words))
}

fn markup(room: &RoomPlan, seat: &Seat<'_>, is_takeable: impl FnOnce() -> bool) -> String {
    let sight = sight_of(room.plan(), seat);
    let place = match (seat.row.is_empty(), seat.section.is_empty()) {
        (true, _) => say!("map.card_seat", number = seat.number),
        (false, true) => say!("map.card_row", row = seat.row, number = seat.number),
        (false, false) => say!("map.card_part", part = seat.section, row = seat.row, number = seat.number),
    };
    let restricted = if sight.is_some_and(|sight| sight.is_restricted()) {
        let hint = if is_takeable() { say!("map.card_tap_again") } else { String::new() };
        let warning = say!("map.card_restricted");
        format!("<p class=\"seat-card-warning\">{warning}</p><p class=\"seat-card-tap\">{hint}</p>")
    } else {
        String::new()
    };
    let (drawing, view) = sight.map_or_else(Default::default, |sight| {
        let words = view_in_words(&sight, &room.plan().focus);
        (drawing_of(&sight), format!("<p class=\"seat-card-view\">{words}</p>"))
    });
    let (place, what) = (escaped(&place), escaped(&what_of(seat)));
    let (price, fees) = (escaped(&money(seat.category.price, current())), say!("map.card_fees"));
    format!(
        "{drawing}<div class=\"seat-card-words\"><p class=\"seat-card-place\">{place}</p><p><span class=\"seat-card-kind\">{what}</span> \
         <strong class=\"seat-card-price\">{price}</strong> <span class=\"seat-card-fees\">{fees}</span></p>{view}{restricted}</div>"
    )
}

/// The drawing of the focus as seen from a seat.
fn drawing_of(sight: &ViewFromSeat) -> String {
    let (points, width, height) = (sight.points(), WIDTH as i32, HEIGHT as i32);
    format!(
        "<svg class=\"sight\" viewBox=\"0 0 {width} {height}\" focusable=\"false\"><rect class=\"sight-dark\" width=\"{width}\" height=\"{height}\"/>\
         <polygon class=\"sight-glow\" points=\"{points}\"/><polygon class=\"sight-screen\" points=\"{points}\"/>\
         <path class=\"sight-heads\" d=\"M0 68v-6q5-7 10 0 4-9 11-1 5-8 11 0 4-7 11-1 5-8 11 0 4-8 12 0 4-8 11 0 5-8 11 0 5-7 11 1 5-8 11-1 4-7 10 1 4-6 10-1v8z\"/></svg>"
    )
}

fn what_of(seat: &Seat<'_>) -> String {
    let category = &seat.category.label;
    seat.category
        .kind
        .texts()
        .for_buyers
        .map_or_else(|| category.clone(), |texts| say!(texts.on_card, category = category))
}

fn view_in_words(sight: &ViewFromSeat, focus: &str) -> String {
    let (aside, fills) = (sight.aside.abs().round() as i64, sight.fills.round() as i64);
    let focus = Arg::Ours(focus);
    let side = if sight.aside < 0.0 { "left" } else { "right" };
    if sight.aside.abs() < STRAIGHT_DEGREES {
        say!("map.view_straight", focus = focus, degrees = fills)
    } else {
        say!("map.view_aside", aside = aside, side = Arg::Ours(side), focus = focus, degrees = fills)
    }
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn card_part(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || card_view(session)))
}

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

pub const WIDTH: f64 = 120.0;
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
fn view_from(seat: (i32, i32), focus: [i32; 3], first_row: i32) -> ViewFromSeat {
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

/// The view of a focus with seats all around: from the same distance, straight ahead. `focus` and `depth` are its centre,
/// width and depth. Seats at its ends see its depth as its width.
fn view_in_the_round(seat: (i32, i32), focus: [i32; 3], depth: i32) -> ViewFromSeat {
    let [x, y, width] = focus;
    let (dx, dy) = (f64::from(seat.0 - x), f64::from(seat.1 - y));
    let is_at_an_end = dx.abs() * f64::from(depth) > dy.abs() * f64::from(width);
    let (across, along) = if is_at_an_end { (depth, width) } else { (width, depth) };
    let distance = dx.hypot(dy).round() as i32;
    view_from((x, y + distance), [x, y, across.max(1)], y + along / 2)
}

impl ViewFromSeat {
    /// Returns true if the seat is so far to the side that buyers must know before they pay.
    pub fn is_restricted(&self) -> bool {
        self.aside.abs() >= RESTRICTED_DEGREES
    }

    /// The corners as points of an SVG polygon.
    pub fn points(&self) -> String {
        let points = self.corners.map(|(x, y)| format!("{},{}", x.round() as i32, y.round() as i32));
        points.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room_plan::tests::two_sections;

    #[test]
    fn a_card_has_place_kind_price_and_view() {
        let room = RoomPlan::new(two_sections());
        let seat = room.seat(1).expect("it is there");
        let text = markup(&room, &seat, || true);
        for part in ["row A, seat 2", &seat.category.price.to_string(), "all fees included", "of your view", "<polygon"]
        {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }

    #[test]
    fn a_free_seat_with_a_restricted_view_asks_for_another_tap() {
        let room = RoomPlan::new(two_sections());
        let seat = room.seat(0).expect("it is there");
        assert!(sight_of(room.plan(), &seat).is_some_and(|sight| sight.is_restricted()));
        let asks = |is_takeable: bool| markup(&room, &seat, || is_takeable).contains("Tap again");
        assert!(asks(true) && !asks(false));
    }

    #[test]
    fn the_hint_does_not_ask_for_a_tap_when_sold_out() {
        assert!(hint(false).contains("Tap a seat"));
        assert!(hint(true).contains("Sold out for now"));
        assert!(!hint(true).contains("Tap"));
    }

    #[test]
    fn the_view_is_described_by_angle_and_side() {
        let sight = |aside| ViewFromSeat { corners: [(0.0, 0.0); 4], aside, fills: 41.6 };
        assert_eq!(view_in_words(&sight(-2.0), "screen"), "Straight ahead; the screen fills 42° of your view");
        assert_eq!(view_in_words(&sight(-25.2), "stage"), "25° from the left; the stage fills 42° of your view");
    }

    /// A screen 400 wide at the top of a room whose rows start at 100.
    const FOCUS: [i32; 3] = [300, 20, 400];

    fn width_of(sight: &ViewFromSeat) -> f64 {
        sight.corners[1].0 - sight.corners[0].0
    }

    #[test]
    fn the_view_from_the_middle_is_straight_and_level() {
        let sight = view_from((300, 400), FOCUS, 100);
        let [top_left, top_right, bottom_right, bottom_left] = sight.corners;
        assert!(sight.aside.abs() < 1e-9 && !sight.is_restricted());
        assert!((top_left.1 - top_right.1).abs() < 1e-9 && (bottom_left.1 - bottom_right.1).abs() < 1e-9);
        assert!((top_left.0 + top_right.0 - WIDTH).abs() < 1e-9, "as far from the left as from the right");
        assert!(top_left.1 < bottom_left.1, "up is up");
    }

    #[test]
    fn a_room_without_a_focus_has_no_view() {
        let mut plan = two_sections();
        plan.focus = "none".to_owned();
        let room = RoomPlan::new(plan);
        let text = markup(&room, &room.seat(1).expect("it is there"), || true);
        assert!(text.contains("row A, seat 2") && !text.contains("of your view") && !text.contains("<svg"), "{text}");
    }

    #[test]
    fn in_the_round_seats_on_all_sides_face_the_focus() {
        // A field 400 wide and 200 deep, and seats 100 from each of its edges.
        let view = |seat| view_in_the_round(seat, [500, 500, 400], 200);
        let (below, above) = (view((500, 700)), view((500, 300)));
        assert_eq!(below, above);
        assert_eq!(view((800, 500)), view((200, 500)));
        for sight in [below, view((800, 500)), view((250, 350))] {
            assert!(sight.aside.abs() < 1e-9 && !sight.is_restricted(), "{}", sight.aside);
        }
        assert!(below.fills > view((800, 500)).fills, "a long side is wider than an end");
    }

    #[test]
    fn the_screen_is_smaller_from_further_back() {
        let (near, far) = (view_from((300, 150), FOCUS, 100), view_from((300, 600), FOCUS, 100));
        assert!(width_of(&near) > 2.0 * width_of(&far));
        assert!(near.fills > far.fills && far.fills > 0.0);
    }

    #[test]
    fn the_near_edge_of_the_screen_is_taller_from_the_side() {
        let sight = view_from((60, 200), FOCUS, 100);
        let [top_left, top_right, bottom_right, bottom_left] = sight.corners;
        assert!(bottom_left.1 - top_left.1 > bottom_right.1 - top_right.1);
        assert!(sight.aside < 0.0, "the seat is on the left");
        assert!(sight.is_restricted(), "{}", sight.aside);
        let mirrored = view_from((540, 200), FOCUS, 100);
        assert!((mirrored.aside + sight.aside).abs() < 1e-9);
    }

    #[test]
    fn a_seat_beside_the_screen_has_a_finite_view() {
        let sight = view_from((300, -50), FOCUS, 100);
        assert!(sight.corners.iter().all(|(x, y)| x.is_finite() && y.is_finite()));
        assert!(!sight.points().contains("NaN"));
    }
}

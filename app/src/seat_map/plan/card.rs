//! The card of one seat: its place, kind and price, and the view of the screen from it.

use domain::api::PlanView;
use domain::seats::SeatIndex;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::drawing::escaped;
use super::sight::{self, ViewFromSeat};
use crate::language::{Arg, current, money};
use crate::say;
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::room_plan::{RoomPlan, Seat};
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::deferred::{MountedPart, SplitLoaderError, mount_part};

/// Angles below this count as straight ahead, degrees.
const STRAIGHT_DEGREES: f64 = 6.0;

/// The view from a seat of this room.
pub fn sight_of(plan: &PlanView, seat: &Seat<'_>) -> ViewFromSeat {
    // Sections of a large room have bounds; the nearest one has the first row.
    let first_row = plan.sections.iter().map(|section| section.bounds[1]).min().unwrap_or(0);
    sight::from((seat.x, seat.y), plan.focus_at, first_row)
}

/// The fixed part of a seat's name for screen readers: place, kind, price and view.
pub fn words_of(plan: &PlanView, seat: &Seat<'_>) -> String {
    with_view(plan, seat, seat.in_words())
}

/// Adds a restricted view to other words about the seat.
pub fn with_view(plan: &PlanView, seat: &Seat<'_>, words: String) -> String {
    if sight_of(plan, seat).is_restricted() { say!("map.seat_at_the_side", seat = Arg::Ours(&words)) } else { words }
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
        let room = room.as_ref()?;
        Some(markup(room, &room.seat(seat?)?))
    });
    found.unwrap_or_else(|| hint(is_sold_out))
}

fn hint(is_sold_out: bool) -> String {
    let words = if is_sold_out { say!("map.sold_out") } else { say!("map.card_hint") };
    format!("<p class=\"seat-card-hint\">{}</p>", escaped(&words))
}

fn markup(room: &RoomPlan, seat: &Seat<'_>) -> String {
    let sight = sight_of(room.plan(), seat);
    let place = match (seat.row.is_empty(), seat.section.is_empty()) {
        (true, _) => say!("map.card_seat", number = seat.number),
        (false, true) => say!("map.card_row", row = seat.row, number = seat.number),
        (false, false) => say!("map.card_part", part = seat.section, row = seat.row, number = seat.number),
    };
    let restricted = if sight.is_restricted() {
        format!("<p class=\"seat-card-warning\">{}</p>", say!("map.card_restricted"))
    } else {
        String::new()
    };
    let (place, what) = (escaped(&place), escaped(&what_of(seat)));
    let (price, fees) = (escaped(&money(seat.category.price, current())), say!("map.card_fees"));
    let (points, view) = (sight.points(), view_in_words(&sight, &room.plan().focus));
    let (width, height) = (sight::WIDTH as i32, sight::HEIGHT as i32);
    format!(
        "<svg class=\"sight\" viewBox=\"0 0 {width} {height}\" focusable=\"false\"><rect class=\"sight-dark\" width=\"{width}\" height=\"{height}\"/>\
         <polygon class=\"sight-glow\" points=\"{points}\"/><polygon class=\"sight-screen\" points=\"{points}\"/>\
         <path class=\"sight-heads\" d=\"M0 68v-6q5-7 10 0 4-9 11-1 5-8 11 0 4-7 11-1 5-8 11 0 4-8 12 0 4-8 11 0 5-8 11 0 5-7 11 1 5-8 11-1 4-7 10 1 4-6 10-1v8z\"/></svg>\
         <div class=\"seat-card-words\"><p class=\"seat-card-place\">{place}</p><p><span class=\"seat-card-kind\">{what}</span> \
         <strong class=\"seat-card-price\">{price}</strong> <span class=\"seat-card-fees\">{fees}</span></p>\
         <p class=\"seat-card-view\">{view}</p>{restricted}</div>"
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

/// The card of the seat pointed at.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub(in crate::seat_map) fn card_part(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || card_view(session)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room_plan::tests::two_sections;

    #[test]
    fn a_card_has_place_kind_price_and_view() {
        let room = RoomPlan::new(two_sections());
        let seat = room.seat(1).expect("it is there");
        let text = markup(&room, &seat);
        for part in ["row A, seat 2", &seat.category.price.to_string(), "all fees included", "of your view", "<polygon"]
        {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
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
}

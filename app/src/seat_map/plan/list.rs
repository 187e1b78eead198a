//! The seats as a list of rows with a button per seat, for visitors who cannot use a map.
//!
//! Drawn once as markup, like the map; afterwards each seat's own signal repaints that seat.

use std::sync::Arc;

use domain::seats::SeatIndex;
use language::{current, money};
use leptos::ev::MouseEvent;
use leptos::html::Div;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use super::card::with_view;
use super::drawing::escaped;
use crate::browser;
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::own_seats::wishes;
use crate::seat_map::room_plan::{RoomPlan, row_in_words, seat_and_state};
use crate::seat_map::session::MapSession;

/// The seats of a section, or of the whole room.
pub fn list(session: MapSession, room: &Arc<RoomPlan>, section: Option<usize>) -> impl IntoView + use<> {
    let markup = markup(room, section);
    let seats: Vec<SeatIndex> = room.rows(section).flat_map(|(_, row)| (row.first..).take(row.numbers.len())).collect();
    let (drawn, element) = (Arc::clone(room), NodeRef::<Div>::new());
    let painters = StoredValue::new_local(Vec::new());
    Effect::new(move |_| {
        if element.get().is_some() {
            let keep = |seat: &SeatIndex| keep_painted(session, Arc::clone(&drawn), *seat);
            painters.set_value(seats.iter().filter_map(keep).collect());
            session.was_map_drawn.set(true);
        }
    });
    let tap = move |event: MouseEvent| {
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        let seat = target.and_then(|target| target.closest("[data-list-seat]").ok().flatten());
        if let Some(seat) = seat.and_then(|seat| seat.get_attribute("data-list-seat")?.parse().ok()) {
            wishes::tap_seat(session, seat);
        }
    };
    view! { <div class="seat-list" node_ref=element on:click=tap inner_html=markup></div> }
}

fn keep_painted(session: MapSession, room: Arc<RoomPlan>, seat: SeatIndex) -> Option<RenderEffect<()>> {
    let element = browser::element(&format!("list-seat-{seat}"))?;
    let look = session.appearance_signal(seat);
    Some(RenderEffect::new(move |_| {
        if let Some(facts) = room.seat(seat) {
            let look = look.get();
            // The view comes last, so that the visible text of the button is one piece of the name.
            let name = with_view(room.plan(), &facts, seat_and_state(&facts.in_words(), look));
            paint(&element, look, &name);
        }
    }))
}

fn paint(element: &Element, look: SeatAppearance, name: &str) {
    let set = |attribute: &str, value: &str| {
        // Fails only for invalid attribute names.
        let _ = element.set_attribute(attribute, value);
    };
    set("data-state", look.state());
    set("aria-pressed", if look.state() == "mine" { "true" } else { "false" });
    set("aria-label", name);
    if let Some(state) = element.last_element_child() {
        state.set_text_content(Some(&look.in_words()));
    }
}

fn markup(room: &RoomPlan, section: Option<usize>) -> String {
    let mut out = String::new();
    for (part, row) in room.rows(section) {
        let heading = row_in_words(part, &row.label);
        out.push_str(&format!("<section class=\"seat-list-row\"><h3>{}</h3><ul>", escaped(&heading)));
        for seat in (row.first..).take(row.numbers.len()) {
            if let Some(facts) = room.seat(seat) {
                let (number, category) = (escaped(facts.number), escaped(&facts.category.label));
                let price = escaped(&money(facts.category.price, current()));
                // Words and order in the document are those of the accessible name, for voice control.
                out.push_str(&format!(
                    "<li><button type=\"button\" id=\"list-seat-{seat}\" data-list-seat=\"{seat}\" class=\"list-seat cat-{}\">\
                     <span class=\"list-seat-number\">{number}</span> <span class=\"list-seat-category\">{category}</span> \
                     <span class=\"list-seat-price\">{price}</span> <span class=\"list-seat-state\"></span></button></li>",
                    facts.category_index % 8
                ));
            }
        }
        out.push_str("</ul></section>");
    }
    out
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn list_part(
    session: MapSession,
    room: Arc<RoomPlan>,
    section: Option<usize>,
    place: HtmlElement,
) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || list(session, &room, section)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room_plan::tests::two_sections;

    #[test]
    fn the_list_has_every_seat_of_the_map_by_section_and_row() {
        let room = RoomPlan::new(two_sections());
        let text = markup(&room, None);
        assert_eq!(text.matches("<button").count(), 10);
        assert_eq!(text.matches("<h3>").count(), 3);
        assert!(markup(&room, Some(1)).contains("id=\"list-seat-8\""));
        assert!(!markup(&room, Some(1)).contains("id=\"list-seat-0\""));
    }
}

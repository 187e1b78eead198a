//! Areas without numbered seats: places left and places wanted in each.

use std::fmt::Display;

use domain::api::AreaView;
use language::{current, number, say};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::{Element, HtmlElement};

use super::cart::Cart;
use crate::browser;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::own_seats::wishes;
use crate::seat_map::session::MapSession;

/// Beginning of the id of an area's card.
const CARD: &str = "area-";

/// Moves the focus to the card of an area, by its number.
pub fn focus_card(area: impl Display) {
    browser::focus(&format!("{CARD}{area}"));
}

/// The areas of the room with a stepper each; nothing in a room without areas.
pub fn areas(session: MapSession) -> impl IntoView {
    let areas = session.room.with(|room| room.as_ref().map(|room| room.plan().areas.clone()).unwrap_or_default());
    (!areas.is_empty()).then(|| {
        let cards = areas.into_iter().map(|area| card(session, area)).collect_view();
        view! { <ul class="areas" aria-label=say!("map.areas")>{cards}</ul> }
    })
}

fn card(session: MapSession, area: AreaView) -> impl IntoView {
    let AreaView { area, name, category_label, price, .. } = area;
    let left = Memo::new(move |_| session.places_left_in(area));
    let wanted = Memo::new(move |_| session.cart.with(|cart| cart.wanted_in(area)));
    // Places of our hold do not count as left.
    let may_add = Memo::new(move |_| {
        session.cart.with(|cart| {
            let to_be_granted = cart.wanted_in(area).saturating_sub(cart.held_in(area));
            !cart.is_paying() && cart.has_room_for(1) && left.get().is_some_and(|left| to_be_granted < left)
        })
    });
    let may_remove = Memo::new(move |_| wanted.get() > 0 && !session.cart.with(Cart::is_paying));
    let (fewer, more) = (say!("map.fewer_places", area = &name), say!("map.more_places", area = &name));
    view! {
        // A press on the area in the drawing moves the focus here.
        <li id=format!("{CARD}{area}") class="area" tabindex="-1" data-testid="area" data-area=area>
            <span class="area-name">{name}</span>
            <span class="area-facts">{say!("map.category_and_price", category = &category_label, price = price)}</span>
            <span class="area-left" data-testid="places-left">{move || left_in_words(left.get())}</span>
            {(!session.is_read_only).then(|| view! {
                <span class="stepper">
                    // Not disabled: a disabled button would lose the focus.
                    <button type="button" class="stepper-button" aria-label=fewer data-testid="fewer-places"
                        aria-disabled=move || disabled_unless(may_remove.get())
                        on:click=move |_| if may_remove.get_untracked() { wishes::change_places(session, area, false) }>"−"</button>
                    <output class="stepper-count" data-testid="wanted-places">{move || number(i64::from(wanted.get()), current())}</output>
                    <button type="button" class="stepper-button" aria-label=more data-testid="more-places"
                        aria-disabled=move || disabled_unless(may_add.get())
                        on:click=move |_| if may_add.get_untracked() { wishes::change_places(session, area, true) }>"+"</button>
                </span>
            })}
        </li>
    }
}

const fn disabled_unless(possible: bool) -> &'static str {
    if possible { "false" } else { "true" }
}

pub fn left_in_words(left: Option<u32>) -> String {
    left.map(|left| say!("map.places_left", places = left)).unwrap_or_default()
}

/// Writes the places left into the areas of a drawing. Subscribes.
pub fn write_places_left(session: MapSession, drawing: &Element) {
    session.places_left.with(|known| {
        for (area, left) in known {
            let text = drawing.query_selector(&format!("[data-area=\"{area}\"] .room-area-left"));
            if let Ok(Some(text)) = text {
                text.set_text_content(Some(&left_in_words(Some(*left))));
            }
        }
    });
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn areas_part(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || move || areas(session)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_left_are_worded_for_zero_one_and_many() {
        assert_eq!([Some(0), Some(1), Some(57)].map(left_in_words), ["none left", "1 place left", "57 places left"]);
        assert_eq!(left_in_words(None), "", "not known yet");
    }
}

//! The legend: categories with prices, states with shapes. A price is also a button that highlights its category.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::api::{CategoryView, SeatKind};
use language::{current, money, say};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use crate::seat_map::appearance::{CATEGORY_COLOURS, SeatAppearance, filter_bit, glyph, mark_of};
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::large_rooms::painting;
use crate::seat_map::room_plan::RoomPlan;
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::DrawnOnce;

/// The states explained, in the order in which a visitor meets them.
const STATES: [(SeatAppearance, &str); 5] = [
    (SeatAppearance::Mine, "map.legend_mine"),
    (SeatAppearance::Proposed, "map.legend_proposed"),
    (SeatAppearance::Locked, "map.legend_locked"),
    (SeatAppearance::Booked, "map.legend_booked"),
    (SeatAppearance::Blocked, "map.legend_blocked"),
];

/// The legend of a section or the whole room with the categories in it. The overview shows no single seats and no
/// states.
pub fn legend(session: MapSession, room: &RoomPlan, section: Option<usize>) -> impl IntoView + use<> {
    let seen: BTreeSet<u8> = room.rows(section).flat_map(|(_, row)| row.category.iter().copied()).collect();
    let all = seen.is_empty();
    let categories = (0..).zip(&room.plan().categories).filter(|(place, _)| all || seen.contains(place));
    let categories = categories.map(|(place, category)| entry(session, place, category)).drawn_once();
    let states = (!all).then(|| {
        let states = STATES.map(|(look, words)| {
            view! { <li class="legend-state" data-state=look.state()>{drawing(look, SeatKind::Standard, None)}<span>{say!(words)}</span></li> }
        });
        view! { <ul class="legend-states" aria-label=say!("map.legend_states")>{states.into_iter().drawn_once()}</ul> }
    });
    view! {
        <div class="legend">
            <ul class="legend-prices" aria-label=say!("map.legend_prices")>{categories}</ul>
            {states}
        </div>
    }
}

/// The numbers of the categories outside the filter, for the style. Empty without a filter, and in a room with more
/// categories than colours: see [`painting::toggle_category`].
pub fn hidden(session: MapSession) -> String {
    let only = session.category_filter.get();
    let count = session.room.with_untracked(|room| room.as_ref().map_or(0, |room| room.plan().categories.len()));
    let is_filtered = only != 0 && count <= usize::from(CATEGORY_COLOURS);
    let numbers = (0..CATEGORY_COLOURS).filter(|category| is_filtered && only & filter_bit(*category) == 0);
    numbers.map(|category| category.to_string()).collect::<Vec<_>>().join(" ")
}

fn entry(session: MapSession, place: u8, category: &CategoryView) -> impl IntoView + use<> {
    let bit = filter_bit(place);
    let pressed = move || if session.category_filter.get() & bit == 0 { "false" } else { "true" };
    view! {
        <li>
            <button type="button" class=format!("legend-price cat-{}", place % CATEGORY_COLOURS) data-state="available" data-testid="price-filter"
                aria-pressed=pressed on:click=move |_| painting::toggle_category(session, bit)>
                {drawing(SeatAppearance::Available, category.kind, Some(place))}
                <span class="legend-name">{category.label.clone()}</span>
                <span class="legend-amount">{money(category.price, current())}</span>
            </button>
        </li>
    }
}

fn drawing(look: SeatAppearance, kind: SeatKind, category: Option<u8>) -> impl IntoView {
    let mark = category.filter(|_| kind.rules().has_mark).map(|category| format!("#mark-{}", mark_of(category)));
    view! {
        <svg class="legend-drawing" viewBox="-11 -11 22 22" width="24" height="24" aria-hidden="true" focusable="false">
            <use href=glyph(look, kind)></use>
            <use class="seat-mark" href=mark.unwrap_or_default()></use>
        </svg>
    }
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn legend_part(
    session: MapSession,
    room: Arc<RoomPlan>,
    section: Option<usize>,
    place: HtmlElement,
) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || legend(session, &room, section)))
}

//! What the drawings mean: categories with their prices, states with their shapes. A price is also a button:
//! pressed, only seats of the prices pressed stand out.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::api::{CategoryView, SeatKind};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::drawing::has_mark;
use super::glyphs::glyph;
use crate::language::{current, money};
use crate::say;
use crate::seat_map::appearance::Look;
use crate::seat_map::large_rooms::painting;
use crate::seat_map::room::Room;
use crate::seat_map::session::Session;
use crate::seat_map::signals::later::{Mounted, SplitLoaderError, mounted};
use crate::seat_map::signals::once::DrawnOnce;

/// States worth explaining, in the order one meets them.
const STATES: [(Look, &str); 4] = [
    (Look::Mine, "map.legend_mine"),
    (Look::Locked, "map.legend_locked"),
    (Look::Booked, "map.legend_booked"),
    (Look::Blocked, "map.legend_blocked"),
];

/// The legend of a section, or of the whole room: the categories one sees there. An overview shows no
/// single seats, and so no states.
pub fn legend(session: Session, room: &Room, section: Option<usize>) -> impl IntoView + use<> {
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

/// The numbers of the categories that are not looked for, for the style; empty when all are.
pub fn hidden(session: Session) -> String {
    let only = session.category_filter.get();
    let numbers = (0..8_u8).filter(|category| only != 0 && only >> category & 1 == 0);
    numbers.map(|category| category.to_string()).collect::<Vec<_>>().join(" ")
}

fn entry(session: Session, place: u8, category: &CategoryView) -> impl IntoView + use<> {
    let bit = 1_u64 << (place % 8);
    let pressed = move || if session.category_filter.get() & bit == 0 { "false" } else { "true" };
    view! {
        <li>
            <button type="button" class=format!("legend-price cat-{}", place % 8) data-state="available" data-testid="price-filter"
                aria-pressed=pressed on:click=move |_| painting::toggle_category(session, bit)>
                {drawing(Look::Available, category.kind, Some(place))}
                <span class="legend-name">{category.label.clone()}</span>
                <span class="legend-amount">{money(category.price, current())}</span>
            </button>
        </li>
    }
}

fn drawing(look: Look, kind: SeatKind, category: Option<u8>) -> impl IntoView {
    let mark = category.filter(|_| has_mark(kind)).map(|category| format!("#mark-{}", category % 8));
    view! {
        <svg class="legend-drawing" viewBox="-11 -11 22 22" width="24" height="24" aria-hidden="true" focusable="false">
            <use href=glyph(look, kind)></use>
            <use class="seat-mark" href=mark.unwrap_or_default()></use>
        </svg>
    }
}

/// What the drawings mean.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub(in crate::seat_map) fn legend_part(
    session: Session,
    room: Arc<Room>,
    section: Option<usize>,
    place: HtmlElement,
) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || legend(session, &room, section)))
}

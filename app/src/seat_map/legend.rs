//! What the drawings mean: categories with their prices, states with their shapes.

use std::collections::BTreeSet;

use domain::api::{CategoryView, SeatKind};
use leptos::prelude::*;

use super::board::Look;
use super::glyphs::glyph;
use super::once::DrawnOnce;
use super::room::Room;

/// States worth explaining, in the order one meets them.
const STATES: [(Look, &str); 4] =
    [(Look::Mine, "Yours"), (Look::Locked, "Held by someone"), (Look::Booked, "Sold"), (Look::Blocked, "Not for sale")];

/// The legend of a section, or of the whole room: the categories one sees there.
pub fn legend(room: &Room, section: Option<usize>) -> impl IntoView + use<> {
    let seen: BTreeSet<u8> = room.rows(section).flat_map(|(_, row)| row.category.iter().copied()).collect();
    let categories = (0..).zip(&room.plan().categories).filter(|(place, _)| seen.contains(place));
    let categories = categories.map(|(place, category)| entry(place, category)).drawn_once();
    let states = STATES.map(|(look, words)| {
        view! { <li class="legend-state" data-state=look.state()>{drawing(look, SeatKind::Standard)}<span>{words}</span></li> }
    });
    view! {
        <div class="legend">
            <ul class="legend-prices" aria-label="Prices">{categories}</ul>
            <ul class="legend-states" aria-label="What the seats show">{states.into_iter().drawn_once()}</ul>
        </div>
    }
}

fn entry(place: u8, category: &CategoryView) -> impl IntoView + use<> {
    view! {
        <li class=format!("legend-price cat-{}", place % 8) data-state="available">
            {drawing(Look::Available, category.kind)}
            <span class="legend-name">{category.label.clone()}</span>
            <span class="legend-amount">{category.price.to_string()}</span>
        </li>
    }
}

fn drawing(look: Look, kind: SeatKind) -> impl IntoView {
    view! {
        <svg class="legend-drawing" viewBox="-11 -11 22 22" width="22" height="22" aria-hidden="true" focusable="false">
            <use href=glyph(look, kind)></use>
        </svg>
    }
}

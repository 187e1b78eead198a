//! A large room at a glance: every seat as a dot on a canvas, its sections with the seats left in each,
//! live; choosing one shows it.
//!
//! The choice is the address's fragment, so that the browser's Back button leads back here. Until the dots
//! are there, and wherever they cannot be had, sections are boxes.

use std::sync::Arc;

use domain::api::SectionView;
use leptos::html::Div;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::language::{current, money};
use crate::seat_map::large_rooms::painting;
use crate::seat_map::plan::{glyphs, legend};
use crate::seat_map::room::{Room, focus_in_words};
use crate::seat_map::session::Session;
use crate::seat_map::signals::later::{Mounted, SplitLoaderError, later, mounted};
use crate::seat_map::signals::once::DrawnOnce;
use crate::seat_map::signals::told::Told;
use crate::{browser, say};

/// Below this share of free seats, in percent, a section counts as nearly full.
const FEW_PERCENT: u32 = 10;

/// The map of boxes is this many letters wide.
const LETTERS_ACROSS: i32 = 44;
/// Boxes are drawn smaller by this part of their size on each side: one in…
const BOX_INSET: i32 = 9;

/// Fragment of a section's address.
#[must_use]
pub fn fragment_of(section: usize) -> String {
    format!("#section-{section}")
}

/// The section a fragment names.
#[must_use]
pub fn section_of(fragment: &str) -> Option<usize> {
    fragment.strip_prefix("section-")?.parse().ok()
}

/// The sections of a room.
pub fn overview(session: Session, room: &Arc<Room>) -> impl IntoView + use<> {
    let plan = room.plan();
    let size = plan.width / LETTERS_ACROSS;
    let boxes = (0..).zip(&plan.sections).map(|(place, section)| box_view(session, size, place, section)).drawn_once();
    let cards = (0..).zip(&plan.sections).map(|(place, section)| card(session, room, place, section)).drawn_once();
    let [x, y, width] = plan.focus_at;
    let label = focus_in_words(&plan.focus);
    let legend = Arc::clone(room);
    let legend = later(
        move || session.is_drawn(),
        "legend-coming",
        move |place| Box::pin(legend::legend_part(session, Arc::clone(&legend), None, place)),
    );
    let dots = NodeRef::<Div>::new();
    Effect::new(move |_| {
        session.appearance.track();
        if let Some(dots) = dots.get() {
            let dots: HtmlElement = (*dots).clone().unchecked_into();
            session.is_overview_drawn.set(true);
            focus_left_section(session);
            // Sections can be chosen without the dots, which are asked for once the sections stand there.
            request_animation_frame(move || request_animation_frame(move || painting::paint_dots(session, dots)));
        }
    });
    on_cleanup(move || painting::remove_canvas(session));
    view! {
        <div class="overview">
            // The legend's drawings refer to them.
            {glyphs::definitions()}
            {legend}
            <div class="overview-map" data-testid="overview-map" data-painted=move || if session.is_canvas_painted.get() { "true" } else { "false" }
                style=("--plan-aspect", format!("{} / {}", plan.width, plan.height))>
                <div class="later" node_ref=dots></div>
                <svg class="overview-boxes" viewBox=format!("0 0 {} {}", plan.width, plan.height) aria-hidden="true">
                    <rect class="overview-focus" x=x - width / 2 y=y - width / 12 width=width height=width / 6 rx=width / 24></rect>
                    <text class="overview-focus-label" x=x y=y font-size=(width / 9).max(12)>{label}</text>
                    {boxes}
                </svg>
            </div>
            <h2 class="overview-heading">{say!("map.choose_section")}</h2>
            <ul class="overview-sections">{cards}</ul>
        </div>
    }
}

/// Whoever comes back from a section stands where they left for it: the link they followed is gone with that.
fn focus_left_section(session: Session) {
    let left = session.left_section.update_value(Option::take);
    if let Some((section, by_keyboard)) = left.filter(|_| browser::has_no_focus()) {
        let card = format!(".section-card[data-section=\"{section}\"]");
        browser::focus_first_in_view(&card, by_keyboard);
    }
}

/// How full a section is, for its colour and its words.
fn level(free: u32, count: u32) -> &'static str {
    match free {
        0 => "none",
        free if free * 100 < count.saturating_mul(FEW_PERCENT) => "few",
        _ => "many",
    }
}

fn free_of(session: Session, place: usize) -> Told<u32> {
    session.free_seats.with_value(|free| free.get(place).copied()).unwrap_or_else(|| Told::new(0))
}

fn box_view(session: Session, size: i32, place: usize, section: &SectionView) -> impl IntoView + use<> {
    let [left, top, right, bottom] = section.bounds;
    // Blocks around an arena stand askew: their bounding boxes overlap, somewhat smaller ones hardly.
    let (inset_x, inset_y) = ((right - left) / BOX_INSET, (bottom - top) / BOX_INSET);
    let (x, y) = (left + inset_x, top + inset_y);
    let (width, height) = ((right - left - 2 * inset_x).max(1), (bottom - top - 2 * inset_y).max(1));
    let (free, count) = (free_of(session, place), section.count);
    // The part of the name that differs.
    let differs = if section.part.is_empty() { &section.name } else { &section.part };
    let short = differs.rsplit(' ').next().unwrap_or_default().to_owned();
    // Inside a <g>, so that <a> is the link of SVG and not of HTML.
    view! {
        <g>
        <a href=fragment_of(place) tabindex="-1">
            <rect class=format!("overview-box cat-{}", section.category % 8) data-level=move || level(free.get(), count)
                x=x y=y width=width height=height rx=width.min(height) / 8></rect>
            <text class="overview-box-label" x=x + width / 2 y=y + height / 2 font-size=size>{short}</text>
        </a>
        </g>
    }
}

/// Its name for people; with its rows where a part of the room is shown in several sections.
pub(in crate::seat_map) fn titled(place: usize, section: &SectionView) -> String {
    match (section.name.is_empty(), section.part.is_empty()) {
        (true, true) => say!("map.section", number = place + 1),
        (false, true) => section.name.clone(),
        (true, false) => section.part.clone(),
        (false, false) => format!("{} {}", section.name, section.part),
    }
}

fn card(session: Session, room: &Room, place: usize, section: &SectionView) -> impl IntoView + use<> {
    let (count, free) = (section.count, free_of(session, place));
    let from =
        room.plan().categories.get(usize::from(section.category)).map(|category| money(category.price, current()));
    let name = titled(place, section);
    let (left, shade) = (free, free);
    view! {
        <li>
            <a class=format!("section-card cat-{}", section.category % 8) href=fragment_of(place)
                data-section=place data-level=move || level(shade.get(), count)>
                <span class="section-name">{name}</span>
                <span class="section-price">{from}</span>
                <span class="section-left">{move || in_words(left.get())}</span>
            </a>
        </li>
    }
}

fn in_words(free: u32) -> String {
    say!("map.section_left", seats = free)
}

/// A large room at a glance.
#[wasm_split(overview, wasm_split_path = ::leptos::wasm_split, fallible)]
pub(in crate::seat_map) fn overview_part(
    session: Session,
    room: Arc<Room>,
    place: HtmlElement,
) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || overview(session, &room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_names_its_section_and_nothing_else_does() {
        assert_eq!(section_of(fragment_of(12).trim_start_matches('#')), Some(12));
        for other in ["", "sections", "section-", "section-x", "section--1"] {
            assert_eq!(section_of(other), None, "{other}");
        }
    }

    #[test]
    fn fullness_has_three_levels() {
        assert_eq!((level(0, 100), level(9, 100), level(10, 100)), ("none", "few", "many"));
    }
}

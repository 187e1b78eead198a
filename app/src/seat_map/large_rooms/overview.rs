//! The overview of a large room: every seat as a dot on a canvas, and its sections with the seats left, live.
//!
//! The chosen section is the address's fragment, so that the browser's Back button leads back here. Until the dots are
//! loaded, and if they cannot be, sections are boxes.

use std::sync::Arc;

use domain::api::SectionView;
use language::{current, money, say};
use leptos::html::Div;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::browser;
use crate::seat_map::appearance;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::large_rooms::painting;
use crate::seat_map::room_plan::{RoomPlan, focus_in_words};
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::{DrawnOnce, PageSignal};

/// Below this share of free seats, in percent, a section counts as nearly full.
const FEW_PERCENT: u32 = 10;

/// Width of the box map in letters of its labels.
const LETTERS_ACROSS: i32 = 44;
/// Boxes are smaller than their section on each side by one part in…
const BOX_INSET: i32 = 9;

/// The fragment of a section's address.
pub fn fragment_of(section: usize) -> String {
    format!("#section-{section}")
}

/// The section a fragment names.
pub fn section_of(fragment: &str) -> Option<usize> {
    fragment.strip_prefix("section-")?.parse().ok()
}

pub fn overview(session: MapSession, room: &Arc<RoomPlan>) -> impl IntoView + use<> {
    let plan = room.plan();
    let size = plan.width / LETTERS_ACROSS;
    let boxes = (0..).zip(&plan.sections).map(|(place, section)| box_view(session, size, place, section)).drawn_once();
    let cards = (0..).zip(&plan.sections).map(|(place, section)| card(session, room, place, section)).drawn_once();
    let [x, y, width] = plan.focus_at;
    let label = focus_in_words(&plan.focus);
    let dots = NodeRef::<Div>::new();
    Effect::new(move |_| {
        session.appearance.track();
        if let Some(dots) = dots.get() {
            let dots: HtmlElement = (*dots).clone().unchecked_into();
            session.is_overview_drawn.set(true);
            focus_left_section(session);
            // The dots load after the sections are drawn: sections can be chosen without them.
            request_animation_frame(move || request_animation_frame(move || painting::paint_dots(session, dots)));
        }
    });
    on_cleanup(move || painting::remove_canvas(session));
    view! {
        <div class="overview">
            // The legend refers to these symbols.
            {appearance::definitions()}
            <div class="overview-fit" style=("--plan-aspect", format!("{} / {}", plan.width, plan.height))>
                <div class="overview-map" data-testid="overview-map" data-painted=move || if session.is_canvas_painted.get() { "true" } else { "false" }>
                    <div class="later" node_ref=dots></div>
                    <svg class="overview-boxes" viewBox=format!("0 0 {} {}", plan.width, plan.height) aria-hidden="true">
                        <rect class="overview-focus" x=x - width / 2 y=y - width / 12 width=width height=width / 6 rx=width / 24></rect>
                        <text class="overview-focus-label" x=x y=y font-size=(width / 9).max(12)>{label}</text>
                        {boxes}
                    </svg>
                </div>
            </div>
            <div class="overview-choice">
                <h2 class="overview-heading">{say!("map.choose_section")}</h2>
                <ul class="overview-sections">{cards}</ul>
            </div>
        </div>
    }
}

/// Restores the focus after a return from a section: the followed link is gone.
fn focus_left_section(session: MapSession) {
    let left = session.left_section.update_value(Option::take);
    if let Some((section, by_keyboard)) = left.filter(|_| browser::has_no_focus()) {
        let card = format!(".section-card[data-section=\"{section}\"]");
        browser::focus_first_in_view(&card, by_keyboard);
    }
}

/// The fill level of a section, for its colour and text.
fn level(free: u32, count: u32) -> &'static str {
    match free {
        0 => "none",
        free if free * 100 < count.saturating_mul(FEW_PERCENT) => "few",
        _ => "many",
    }
}

fn free_of(session: MapSession, place: usize) -> PageSignal<u32> {
    session.free_seats.with_value(|free| free.get(place).copied()).unwrap_or_else(|| PageSignal::new(0))
}

fn box_view(session: MapSession, size: i32, place: usize, section: &SectionView) -> impl IntoView + use<> {
    let [left, top, right, bottom] = section.bounds;
    // Sections around an arena are rotated: their bounding boxes overlap, smaller ones hardly do.
    let (inset_x, inset_y) = ((right - left) / BOX_INSET, (bottom - top) / BOX_INSET);
    let (x, y) = (left + inset_x, top + inset_y);
    let (width, height) = ((right - left - 2 * inset_x).max(1), (bottom - top - 2 * inset_y).max(1));
    let (free, count) = (free_of(session, place), section.count);
    // The part of the name that differs.
    let differs = if section.part.is_empty() { &section.name } else { &section.part };
    let short = differs.rsplit(' ').next().unwrap_or_default().to_owned();
    // Inside a <g>, so that <a> is SVG's link and not HTML's.
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

/// The section's name for people, with its rows where a part of the room has several sections.
pub fn titled(place: usize, section: &SectionView) -> String {
    match (section.name.is_empty(), section.part.is_empty()) {
        (true, true) => say!("map.section", number = place + 1),
        (false, true) => section.name.clone(),
        (true, false) => section.part.clone(),
        (false, false) => format!("{} {}", section.name, section.part),
    }
}

fn card(session: MapSession, room: &RoomPlan, place: usize, section: &SectionView) -> impl IntoView + use<> {
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

#[wasm_split(overview, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn overview_part(
    session: MapSession,
    room: Arc<RoomPlan>,
    place: HtmlElement,
) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || overview(session, &room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_section_fragment_parses_as_section() {
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

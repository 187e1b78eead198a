//! A large room at a glance: its sections with the seats left in each, live; choosing one shows it.
//!
//! The choice is the address's fragment, so that the browser's Back button leads back here.

use std::sync::Arc;

use domain::api::SectionView;
use leptos::prelude::*;

use super::room::Room;
use super::session::Session;

/// Below this share of free seats, in percent, a section counts as nearly full.
const FEW_PERCENT: u32 = 10;

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
    let boxes = (0..).zip(&plan.sections).map(|(place, section)| box_view(session, place, section)).collect_view();
    let cards = (0..).zip(&plan.sections).map(|(place, section)| card(session, room, place, section)).collect_view();
    let [x, y, width] = plan.focus_at;
    let label = if plan.focus == "stage" { "Stage" } else { "Screen" };
    view! {
        <div class="overview">
            <svg class="overview-map" viewBox=format!("0 0 {} {}", plan.width, plan.height) aria-hidden="true">
                <rect class="overview-focus" x=x - width / 2 y=y - width / 12 width=width height=width / 6 rx=width / 24></rect>
                <text class="overview-focus-label" x=x y=y font-size=(width / 9).max(12)>{label}</text>
                {boxes}
            </svg>
            <h2 class="overview-heading">"Choose a section"</h2>
            <ul class="overview-sections">{cards}</ul>
        </div>
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

fn free_of(session: Session, place: usize) -> ArcRwSignal<u32> {
    session.free.with_value(|free| free.get(place).cloned()).unwrap_or_else(|| ArcRwSignal::new(0))
}

fn box_view(session: Session, place: usize, section: &SectionView) -> impl IntoView + use<> {
    let [left, top, right, bottom] = section.bounds;
    let (width, height) = ((right - left).max(1), (bottom - top).max(1));
    let (free, count) = (free_of(session, place), section.count);
    // The part of the name that differs, as large as fits.
    let short = section.name.rsplit(' ').next().unwrap_or_default().to_owned();
    let letters = i32::try_from(short.chars().count().max(2)).unwrap_or(2);
    let size = (height / 2).min(width * 3 / (2 * letters)).max(8);
    // Inside a <g>, so that <a> is the link of SVG and not of HTML.
    view! {
        <g>
        <a href=fragment_of(place) tabindex="-1">
            <rect class=format!("overview-box cat-{}", section.category % 8) data-level=move || level(free.get(), count)
                x=left y=top width=width height=height rx=width.min(height) / 8></rect>
            <text class="overview-box-label" x=left + width / 2 y=top + height / 2 font-size=size>{short}</text>
        </a>
        </g>
    }
}

fn card(session: Session, room: &Room, place: usize, section: &SectionView) -> impl IntoView + use<> {
    let (count, free) = (section.count, free_of(session, place));
    let from = room.plan().categories.get(usize::from(section.category)).map(|category| category.price.to_string());
    let name = if section.name.is_empty() { format!("Section {}", place + 1) } else { section.name.clone() };
    let (left, shade) = (free.clone(), free);
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
    match free {
        0 => "Sold out for now".to_owned(),
        1 => "1 seat left".to_owned(),
        free => format!("{free} seats left"),
    }
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

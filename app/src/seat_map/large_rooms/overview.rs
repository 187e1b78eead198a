//! The overview of a large room: every seat as a dot on a canvas, and its sections with the seats left, live.
//!
//! The chosen section is the address's fragment, so that the browser's Back button leads back here. Until the dots are
//! loaded, and if they cannot be, sections are boxes.

use std::cmp::Reverse;
use std::sync::Arc;

use domain::api::{PlanView, SectionView, ShapeView};
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
use crate::seat_map::own_seats::areas;
use crate::seat_map::plan::{annotations, grid};
use crate::seat_map::room_plan::{RoomPlan, area_of, focus_in_words, has_focus};
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::{DrawnOnce, PageSignal};

/// Below this share of free seats, in percent, a section counts as nearly full.
const FEW_PERCENT: u32 = 10;

/// Width of the map in letters of its labels: as wished, and where that has no space.
const LETTERS_ACROSS: [i32; 3] = [44, 60, 80];
/// Width of the map in letters of the name of the focus, at most.
const FOCUS_LETTERS_ACROSS: i32 = 30;
/// Width of a bold letter as a share of its size.
const LETTER_WIDTH_PERCENT: i32 = 70;
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

/// Returns true if a fragment names a section or the overview. Others name other parts of the page.
pub fn is_of_map(fragment: &str) -> bool {
    fragment.is_empty() || fragment.starts_with("section")
}

pub fn overview(session: MapSession, room: &Arc<RoomPlan>) -> impl IntoView + use<> {
    let plan = room.plan();
    let labels = labels_of(plan);
    let boxes = (0..).zip(&plan.sections).zip(labels);
    let boxes = boxes.map(|((place, section), label)| box_view(session, place, section, label)).drawn_once();
    let mut by_name: Vec<(usize, &SectionView)> = (0..).zip(&plan.sections).collect();
    by_name.sort_by_cached_key(|(place, section)| name_order(&titled(*place, section)));
    let cards = by_name.into_iter().map(|(place, section)| card(session, room, place, section)).drawn_once();
    let (shapes, focus) = (shapes_view(plan), focus_view(plan));
    let areas = plan.shapes.iter().filter_map(|shape| area_view(session, plan, shape)).drawn_once();
    let dots = NodeRef::<Div>::new();
    Effect::new(move |_| {
        session.appearance.track();
        if let Some(dots) = dots.get() {
            let dots: HtmlElement = (*dots).clone().unchecked_into();
            session.was_map_drawn.set(true);
            focus_left_section(session);
            // Dots and the code for seats load after the sections are drawn: sections can be chosen without them.
            request_animation_frame(move || {
                request_animation_frame(move || {
                    painting::paint_dots(session, dots);
                    grid::load_early(session);
                });
            });
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
                        {shapes}
                        {focus}
                        {areas}
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

/// The screen, stage or field, in the space that the seats leave.
fn focus_view(plan: &PlanView) -> Option<impl IntoView + use<>> {
    let [left, top, right, bottom] = focus_box(plan)?;
    let (width, depth) = (right - left, bottom - top);
    let words = focus_in_words(&plan.focus);
    let letters = i32::try_from(words.chars().count()).unwrap_or(i32::MAX).max(1);
    let size = (width / letters).min(depth * 2 / 3).min(plan.width / FOCUS_LETTERS_ACROSS);
    Some(view! {
        <rect class="overview-focus" x=left y=top width=width height=depth rx=depth / 4></rect>
        <text class="overview-focus-label" x=i32::midpoint(left, right) y=i32::midpoint(top, bottom) font-size=size>{words}</text>
    })
}

/// Left, top, right and bottom of the focus; `None` without one, or if seats leave no space for it.
fn focus_box(plan: &PlanView) -> Option<[i32; 4]> {
    let ([x, y, width], depth) = (plan.focus_at, plan.focus_depth);
    let focus = [x - width / 2, y - depth / 2, x + width / 2, y + depth / 2];
    (has_focus(plan) && width > 0 && depth > 0).then_some(focus)
}

/// Tables, bars and texts.
fn shapes_view(plan: &PlanView) -> impl IntoView + use<> {
    let drawings = plan.shapes.iter().filter(|shape| area_of(plan, shape).is_none());
    let outlines: String = drawings.map(annotations::outline).collect();
    view! { <g class="room-shape" inner_html=outlines></g> }
}

/// An area without numbered seats; `None` for other drawings. A press moves the focus to its card, where the keyboard
/// finds the same.
fn area_view(session: MapSession, plan: &PlanView, shape: &ShapeView) -> Option<impl IntoView + use<>> {
    let area = area_of(plan, shape)?;
    let (number, name, price) = (area.area, area.name.clone(), money(area.price, current()));
    let colour = annotations::area_colour(plan, area);
    let ([x, y], size) = annotations::area_text(plan, shape, area)?;
    let (above, below) = (y - size, y + size);
    let left = move || areas::left_in_words(session.places_left_in(number));
    Some(view! {
        <g class=format!("overview-area cat-{colour}") data-area=number on:click=move |_| areas::focus_card(number)>
            <g inner_html=annotations::outline(shape)></g>
            <text class="overview-box-label" x=x y=above font-size=size>{name}</text>
            <text class="overview-box-label" x=x y=y font-size=size>{price}</text>
            <text class="overview-box-label" x=x y=below font-size=size>{left}</text>
        </g>
    })
}

/// Left, top, right and bottom of the texts in an area.
fn area_label(plan: &PlanView, shape: &ShapeView) -> Option<[i32; 4]> {
    let area = area_of(plan, shape)?;
    let ([x, y], size) = annotations::area_text(plan, shape, area)?;
    let half_width = annotations::area_letters(area).saturating_mul(size * LETTER_WIDTH_PERCENT) / 200;
    Some([x - half_width, y - 3 * size / 2, x + half_width, y + 3 * size / 2])
}

/// The label of a section: its text, centre and letter size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SectionLabel {
    text: String,
    at: (i32, i32),
    size: i32,
}

/// Labels that are in the room and apart from one another, the areas and the focus, in the order of the sections. Large
/// sections choose first; the name is shortened or made smaller where it has no space, and left out where that does not
/// help.
fn labels_of(plan: &PlanView) -> Vec<Option<SectionLabel>> {
    let mut labels = vec![None; plan.sections.len()];
    let mut drawn: Vec<[i32; 4]> = focus_box(plan).into_iter().collect();
    drawn.extend(plan.shapes.iter().filter_map(|shape| area_label(plan, shape)));
    let mut by_size: Vec<(usize, &SectionView)> = (0..).zip(&plan.sections).collect();
    by_size.sort_by_key(|(place, section)| (Reverse(section.count), *place));
    for (place, section) in by_size {
        let [left, top, right, bottom] = section.bounds;
        let name = titled(place, section);
        // The part of the name that differs.
        let short = name.rsplit(' ').next().unwrap_or_default().to_owned();
        let candidates =
            LETTERS_ACROSS.into_iter().flat_map(|across| [(name.clone(), across), (short.clone(), across)]);
        for (text, across) in candidates {
            let size = plan.width / across;
            let letters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX / size.max(1));
            let (half_width, half_height) = (letters * size * LETTER_WIDTH_PERCENT / 200, size / 2);
            if half_width > plan.width / 2 || half_height > plan.height / 2 {
                continue;
            }
            let x = i32::midpoint(left, right).clamp(half_width, plan.width - half_width);
            let y = i32::midpoint(top, bottom).clamp(half_height, plan.height - half_height);
            let covered = [x - half_width, y - half_height, x + half_width, y + half_height];
            if drawn.iter().all(|other| !annotations::overlap(covered, *other)) {
                drawn.push(covered);
                labels[place] = Some(SectionLabel { text, at: (x, y), size });
                break;
            }
        }
    }
    labels
}

/// A key that sorts names as people do: `Block 2` before `Block 10`, without regard to capitals.
fn name_order(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0_u64)];
    let mut is_in_number = false;
    for letter in name.chars().flat_map(char::to_lowercase) {
        if let Some(digit) = letter.to_digit(10) {
            if let Some((_, number)) = parts.last_mut() {
                *number = number.saturating_mul(10).saturating_add(u64::from(digit));
            }
            is_in_number = true;
            continue;
        }
        if is_in_number {
            parts.push((String::new(), 0));
            is_in_number = false;
        }
        if let Some((text, _)) = parts.last_mut() {
            text.push(letter);
        }
    }
    parts
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

fn box_view(
    session: MapSession,
    place: usize,
    section: &SectionView,
    label: Option<SectionLabel>,
) -> impl IntoView + use<> {
    let [left, top, right, bottom] = section.bounds;
    // Sections around an arena are rotated: their bounding boxes overlap, smaller ones hardly do.
    let (inset_x, inset_y) = ((right - left) / BOX_INSET, (bottom - top) / BOX_INSET);
    let (x, y) = (left + inset_x, top + inset_y);
    let (width, height) = ((right - left - 2 * inset_x).max(1), (bottom - top - 2 * inset_y).max(1));
    let (free, count) = (free_of(session, place), section.count);
    let label = label.map(|SectionLabel { text, at: (x, y), size }| {
        view! { <text class="overview-box-label" x=x y=y font-size=size>{text}</text> }
    });
    // Inside a <g>, so that <a> is SVG's link and not HTML's.
    view! {
        <g>
        <a href=fragment_of(place) tabindex="-1">
            <rect class=format!("overview-box cat-{}", section.category % 8) data-level=move || level(free.get(), count)
                x=x y=y width=width height=height rx=width.min(height) / 8></rect>
            {label}
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
    use crate::seat_map::room_plan::tests::two_sections;
    use domain::api::AreaView;

    #[test]
    fn only_a_section_fragment_parses_as_section() {
        assert_eq!(section_of(fragment_of(12).trim_start_matches('#')), Some(12));
        for other in ["", "sections", "section-", "section-x", "section--1"] {
            assert_eq!(section_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_fragment_of_another_part_of_the_page_is_not_of_the_map() {
        assert!(["", "sections", "section-12"].into_iter().all(is_of_map));
        assert!(!is_of_map("main"));
    }

    fn room(names: &[(&str, [i32; 4])]) -> PlanView {
        let mut plan = two_sections();
        let section = plan.sections.remove(0);
        plan.sections = names
            .iter()
            .map(|(name, bounds)| SectionView { name: (*name).to_owned(), bounds: *bounds, ..section.clone() })
            .collect();
        PlanView { width: 4_400, height: 3_000, focus_at: [2_200, 100, 900], focus_depth: 150, ..plan }
    }

    #[test]
    fn labels_are_inside_the_room_and_do_not_collide() {
        let mut names = vec![("Stalls", [1_000, 500, 3_400, 1_500]), ("Under the stage", [2_000, 40, 2_400, 160])];
        names.extend([("North Terrace 1", [0, 200, 60, 900]), ("North Terrace 2", [30, 230, 90, 930])]);
        names.extend([("South Terrace 1", [4_300, 2_900, 4_390, 2_990]), ("Circle", [1_900, 950, 2_600, 1_060])]);
        let plan = room(&names);
        let labels = labels_of(&plan);
        let boxes: Vec<[i32; 4]> = labels
            .iter()
            .flatten()
            .map(|SectionLabel { text, at: (x, y), size }| {
                let half = i32::try_from(text.chars().count()).expect("short") * size * LETTER_WIDTH_PERCENT / 200;
                [x - half, y - size / 2, x + half, y + size / 2]
            })
            .collect();
        for (number, one) in boxes.iter().enumerate() {
            assert!(one[0] >= 0 && one[1] >= 0 && one[2] <= 4_400 && one[3] <= 3_000, "{one:?} is cut off");
            assert!(boxes[number + 1..].iter().all(|other| !annotations::overlap(*one, *other)), "{one:?}");
        }
        assert_eq!(labels[0].as_ref().map(|label| (label.text.as_str(), label.at)), Some(("Stalls", (2_200, 1_000))));
        assert_eq!(labels[1], None, "the stage is there");
        assert_eq!(labels[4].as_ref().map(|label| label.text.as_str()), Some("South Terrace 1"));
    }

    #[test]
    fn the_label_of_a_section_is_apart_from_the_texts_of_an_area() {
        let mut plan = room(&[("Stalls", [1_000, 500, 3_400, 1_500])]);
        let price = plan.categories[0].price;
        let (name, category) = ("Floor".to_owned(), plan.categories[0].name.clone());
        plan.areas = vec![AreaView { area: 0, name, category, category_label: String::new(), price, capacity: 9 }];
        let corners = vec![1_000, 600, 3_400, 600, 3_400, 1_500, 1_000, 1_500];
        plan.shapes = vec![ShapeView { at: [2_200, 1_050], corners, text: String::new(), area: Some(0) }];
        assert!(labels_of(&plan)[0].is_none(), "the area is in its middle");
        plan.shapes[0].at = [2_200, 2_000];
        assert!(labels_of(&plan)[0].is_some());
    }

    #[test]
    fn the_stage_is_as_deep_as_the_seats_leave_space() {
        let plan = room(&[]);
        assert_eq!(focus_box(&plan), Some([1_750, 25, 2_650, 175]));
        assert_eq!(focus_box(&PlanView { focus_depth: 0, ..plan.clone() }), None);
        assert_eq!(focus_box(&PlanView { focus: "none".to_owned(), ..plan }), None);
    }

    #[test]
    fn cards_are_in_the_order_of_their_names() {
        let mut names = ["Block 10", "block 9", "Block 2", "Балкон", "Block 2 A–K", "Block 2 L–Z", "12", "7"];
        names.sort_by_cached_key(|name| name_order(name));
        assert_eq!(names, ["7", "12", "Block 2", "Block 2 A–K", "Block 2 L–Z", "block 9", "Block 10", "Балкон"]);
    }

    #[test]
    fn fullness_has_three_levels() {
        assert_eq!((level(0, 100), level(9, 100), level(10, 100)), ("none", "few", "many"));
    }
}

//! The map as markup: every seat at its real position, row letters at both ends, and the light of the screen.
//!
//! Markup is parsed by the browser at once: a room has thousands of elements, and none ever moves. [`paint`] sets what
//! changes about a seat.

use std::fmt::Write;

use domain::api::{PlanView, RowView, SEAT_PITCH, SeatKind, ShapeView};
use web_sys::Element;

use crate::seat_map::appearance::{CATEGORY_COLOURS, SeatAppearance, glyph, mark_of};
use crate::seat_map::room_plan::{RoomPlan, focus_in_words, has_focus, row_in_words, seat_and_state};

/// Free space around the seats, plan units. It contains the row letters.
const MARGIN: i32 = 2 * SEAT_PITCH;
/// Distance of a row's letter from the row's end, plan units.
const LETTER_DISTANCE: f64 = 21.0;
/// Reach of the screen's light over the rows, plan units.
const LIGHT: i32 = 9 * SEAT_PITCH;

/// Rows with the name of their section.
pub type Rows<'a> = [(&'a str, &'a RowView)];

/// All seats of these rows, and the screen or stage if it is in the frame.
pub fn markup(room: &RoomPlan, rows: &Rows<'_>, frame: &PlanFrame, with_focus: bool) -> String {
    let mut out = String::with_capacity(rows.len() * 4_096);
    if with_focus {
        focus(&mut out, room.plan(), frame);
    }
    for (part, row) in rows {
        let name = row_in_words(part, &row.label);
        open(&mut out, "g role=\"row\" aria-label=\"", &escaped(&name));
        for (x, y) in letter_places(row) {
            let label = escaped(&row.label);
            push(
                &mut out,
                format_args!("<text class=\"row-letter\" x=\"{x}\" y=\"{y}\" aria-hidden=\"true\">{label}</text>"),
            );
        }
        for seat in (row.first..).take(row.numbers.len()) {
            if let Some(facts) = room.seat(seat) {
                let (x, y, category) = (facts.x, facts.y, facts.category_index % CATEGORY_COLOURS);
                let (mark, fading) = (mark_of(facts.category_index), fading(room.plan(), facts.category_index));
                // The chair turns, a tick or a cross does not: see `paint`.
                let (turn, rotation) = match facts.turn {
                    0 => Default::default(),
                    turn => (format!(" data-turn=\"{turn}\""), format!(" transform=\"rotate({turn})\"")),
                };
                push(
                    &mut out,
                    format_args!(
                        "<g id=\"seat-{seat}\" class=\"seat cat-{category}\" role=\"gridcell\" tabindex=\"-1\" data-seat=\"{seat}\"{turn}{fading} \
                     transform=\"translate({x} {y})\"><rect class=\"seat-target\" x=\"-10\" y=\"-10\" width=\"20\" height=\"20\" rx=\"6\"/><use/>"
                    ),
                );
                if facts.category.kind.rules().has_mark {
                    push(&mut out, format_args!("<use class=\"seat-mark\" href=\"#mark-{mark}\"{rotation}/>"));
                }
                out.push_str("</g>");
            }
        }
        out.push_str("</g>");
    }
    out
}

/// The attribute by which a seat fades outside the filter, in a room with more categories than colours.
fn fading(plan: &PlanView, category: u8) -> String {
    if plan.categories.len() <= usize::from(CATEGORY_COLOURS) {
        return String::new();
    }
    format!(" opacity=\"var({}, 1)\"", opacity_of(category))
}

/// The style property with the opacity of a category's seats.
pub fn opacity_of(category: u8) -> String {
    format!("--category-{category}")
}

/// Sets what differs between a seat's appearance and that `before`, on screen and for screen readers. `words` is the
/// fixed part of its name.
pub fn paint(element: &Element, before: Option<SeatAppearance>, look: SeatAppearance, kind: SeatKind, words: &str) {
    let set = |name: &str, value: &str| {
        // Fails only for invalid attribute names.
        let _ = element.set_attribute(name, value);
    };
    let differs = |of: fn(SeatAppearance) -> bool| before.map(of) != Some(of(look));
    if before.map(SeatAppearance::state) != Some(look.state()) {
        set("data-state", look.state());
    }
    if differs(|look| look.state() == "mine") {
        set("aria-selected", if look.state() == "mine" { "true" } else { "false" });
    }
    set("aria-label", &seat_and_state(words, look));
    if differs(SeatAppearance::is_out_of_reach) {
        if look.is_out_of_reach() {
            set("aria-disabled", "true");
        } else {
            let _ = element.remove_attribute("aria-disabled");
        }
    }
    if let Ok(Some(drawing)) = element.query_selector("use") {
        let _ = drawing.set_attribute("href", glyph(look, kind));
        if differs(SeatAppearance::is_chair)
            && let Some(turn) = element.get_attribute("data-turn")
        {
            let turn = if look.is_chair() { format!("rotate({turn})") } else { String::new() };
            let _ = drawing.set_attribute("transform", &turn);
        }
    }
}

/// The screen or stage: a wide arc, and its light that fades over the front rows. In the round it is a rectangle.
fn focus(out: &mut String, plan: &PlanView, frame: &PlanFrame) {
    if !has_focus(plan) {
        return;
    }
    let [x, y, width] = plan.focus_at;
    if plan.is_round {
        let (left, top, depth) = (x - width / 2, y - plan.focus_depth / 2, plan.focus_depth);
        let label = focus_in_words(&plan.focus);
        push(
            out,
            format_args!(
                "<g class=\"focus-mark\" aria-hidden=\"true\">\
                 <rect class=\"focus-arc\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{depth}\" rx=\"6\"/>\
                 <text class=\"focus-label\" x=\"{x}\" y=\"{y}\">{label}</text></g>"
            ),
        );
        return;
    }
    let (left, right, edge, crown) = (x - width / 2, x + width / 2, y + 10, y - 14);
    let spread = LIGHT / 2;
    let (wide_left, wide_right) = ((left - spread).max(frame.left), (right + spread).min(frame.left + frame.width));
    let label = focus_in_words(&plan.focus);
    let far = edge + LIGHT;
    push(
        out,
        format_args!(
            "<defs><linearGradient id=\"screen-light\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"1\"><stop class=\"light-near\" offset=\"0\"/>\
         <stop class=\"light-far\" offset=\"1\"/></linearGradient></defs>\
         <g class=\"focus-mark\" aria-hidden=\"true\">\
         <path class=\"focus-light\" d=\"M{left} {edge} Q{x} {crown} {right} {edge} L{wide_right} {far} Q{x} {} {wide_left} {far} Z\"/>\
         <path class=\"focus-halo\" d=\"M{left} {edge} Q{x} {crown} {right} {edge}\"/>\
         <path class=\"focus-arc\" d=\"M{left} {edge} Q{x} {crown} {right} {edge}\"/>\
         <text class=\"focus-label\" x=\"{x}\" y=\"{}\">{label}</text></g>",
            far + spread / 2,
            y + 26,
        ),
    );
}

pub(super) fn push(out: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = out.write_fmt(words);
}

fn open(out: &mut String, tag: &str, value: &str) {
    for part in ["<", tag, value, "\">"] {
        out.push_str(part);
    }
}

/// Escapes text for markup.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// The places of a row's letter: beyond both ends, in the direction of the row.
pub(super) fn letter_places(row: &RowView) -> Vec<(i32, i32)> {
    let points: Vec<(f64, f64)> = row.x.iter().zip(&row.y).map(|(x, y)| (f64::from(*x), f64::from(*y))).collect();
    let past = |end: (f64, f64), inner: (f64, f64)| {
        let (dx, dy) = (end.0 - inner.0, end.1 - inner.1);
        let length = dx.hypot(dy).max(1.0);
        (whole(end.0 + dx / length * LETTER_DISTANCE), whole(end.1 + dy / length * LETTER_DISTANCE))
    };
    match points.as_slice() {
        [] => Vec::new(),
        [only] => vec![past(*only, (only.0 + 1.0, only.1)), past(*only, (only.0 - 1.0, only.1))],
        [first, .., last] => vec![past(*first, points[1]), past(*last, points[points.len() - 2])],
    }
}

/// The part of the plan to show, plan units.
#[derive(Clone, Copy)]
pub struct PlanFrame {
    pub left: i32,
    pub top: i32,
    pub width: i32,
    pub height: i32,
}

impl PlanFrame {
    /// The frame around these rows, and around the screen or stage and the areas if wanted.
    pub fn around(plan: &PlanView, rows: &Rows<'_>, with_focus: bool) -> Self {
        let xs = || rows.iter().flat_map(|(_, row)| row.x.iter().copied());
        let ys = || rows.iter().flat_map(|(_, row)| row.y.iter().copied());
        let [focus_x, focus_y, focus_width] = plan.focus_at;
        let focus_x = with_focus.then_some([focus_x - focus_width / 2 + MARGIN, focus_x + focus_width / 2 - MARGIN]);
        let focus_y = with_focus.then_some(focus_y + SEAT_PITCH);
        // Areas far outside the room are cut off.
        let areas = |axis: usize, most: i32| {
            let areas = plan.shapes.iter().filter(move |shape| with_focus && shape.area.is_some());
            areas.flat_map(move |shape| corners(shape, axis)).map(move |at| at.min(most).max(0))
        };
        let (left, right) = bounds(xs().chain(focus_x.into_iter().flatten()).chain(areas(0, plan.width)));
        let (top, bottom) = bounds(ys().chain(focus_y).chain(areas(1, plan.height)));
        let has_names = with_focus && plan.sections.len() > 1;
        Self {
            left: left - MARGIN,
            top: top - MARGIN,
            width: right - left + 2 * MARGIN,
            // Below the last row there are no letters, but the name of its section.
            height: bottom - top + MARGIN + if has_names { MARGIN } else { SEAT_PITCH },
        }
    }

    /// True if a rectangle (left, top, right, bottom) is in the frame.
    pub(super) fn contains(self, [left, top, right, bottom]: [i32; 4]) -> bool {
        left >= self.left && top >= self.top && right <= self.left + self.width && bottom <= self.top + self.height
    }

    pub fn view_box(self) -> String {
        format!("{} {} {} {}", self.left, self.top, self.width, self.height)
    }
}

/// The corners of a shape along an axis.
pub(super) fn corners(shape: &ShapeView, axis: usize) -> impl Iterator<Item = i32> {
    shape.corners.iter().skip(axis).step_by(2).copied()
}

pub(super) fn bounds(numbers: impl Iterator<Item = i32>) -> (i32, i32) {
    let (low, high) = numbers.fold((i32::MAX, i32::MIN), |(low, high), number| (low.min(number), high.max(number)));
    if low <= high { (low, high) } else { (0, 0) }
}

/// Rounds: pixels, plan units and degrees all fit.
fn whole(number: f64) -> i32 {
    number.round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room_plan::tests::two_sections;

    #[test]
    fn letters_are_beyond_both_ends_of_a_row_in_its_direction() {
        let mut row = RowView {
            label: "A".to_owned(),
            first: 0,
            numbers: vec![String::new(); 3],
            x: vec![0, 20, 40],
            y: vec![5, 5, 5],
            category: vec![0; 3],
            turn: Vec::new(),
        };
        assert_eq!(letter_places(&row), [(-21, 5), (61, 5)]);
        std::mem::swap(&mut row.x, &mut row.y);
        assert_eq!(letter_places(&row), [(5, -21), (5, 61)]);
    }

    #[test]
    fn the_frame_contains_every_seat_and_the_letters() {
        let room = RoomPlan::new(two_sections());
        let rows: Vec<_> = room.rows(Some(1)).collect();
        assert_eq!(PlanFrame::around(room.plan(), &rows, false).view_box(), "-40 40 100 60");
    }

    #[test]
    fn the_frame_contains_areas_with_the_stage() {
        let mut plan = two_sections();
        let corners = vec![-9, 50, 95, 50, 95, 99, -9, 99];
        plan.shapes = vec![ShapeView { at: [40, 75], corners, text: "Lawn".to_owned(), area: Some(0) }];
        let room = RoomPlan::new(plan);
        let rows: Vec<_> = room.rows(None).collect();
        assert_eq!(PlanFrame::around(room.plan(), &rows, true).view_box(), "-40 -20 175 159");
        assert_eq!(PlanFrame::around(room.plan(), &rows, false).view_box(), "-40 -20 140 120");
    }

    #[test]
    fn chairs_keep_their_direction() {
        let mut plan = two_sections();
        plan.sections[1].rows[0].turn = vec![0, 90];
        let room = RoomPlan::new(plan);
        let rows: Vec<_> = room.rows(None).collect();
        let text = markup(&room, &rows, &PlanFrame::around(room.plan(), &rows, true), true);
        assert_eq!(text.matches("data-turn=\"90\"").count(), 1);
    }

    #[test]
    fn a_ninth_category_has_its_own_mark_and_fades_by_itself() {
        let mut plan = two_sections();
        plan.sections[1].rows[0].category = vec![8, 0];
        let drawn = |plan: &PlanView| {
            let room = RoomPlan::new(plan.clone());
            let rows: Vec<_> = room.rows(None).collect();
            markup(&room, &rows, &PlanFrame::around(room.plan(), &rows, false), false)
        };
        assert!(!drawn(&plan).contains("opacity"), "colours tell up to eight apart");
        plan.categories = vec![plan.categories[0].clone(); 9];
        let text = drawn(&plan);
        assert!(text.contains("class=\"seat cat-0\"") && !text.contains("cat-8"), "{text}");
        assert_eq!(text.matches("opacity=\"var(--category-8, 1)\"").count(), 1);
        assert_eq!((text.matches("#mark-1\"").count(), text.matches("#mark-0\"").count()), (1, 9));
    }

    #[test]
    fn the_focus_is_a_rectangle_in_the_round_and_absent_without_one() {
        let drawn = |focus: &str| {
            let plan = PlanView { focus: focus.to_owned(), is_round: true, ..two_sections() };
            let room = RoomPlan::new(plan);
            let rows: Vec<_> = room.rows(None).collect();
            markup(&room, &rows, &PlanFrame::around(room.plan(), &rows, true), true)
        };
        assert!(drawn("field").contains("<rect class=\"focus-arc\" x=\"10\" y=\"-5\" width=\"80\" height=\"10\""));
        assert!(!drawn("none").contains("focus-mark"));
    }

    #[test]
    fn the_markup_has_every_seat_once_and_escapes_names() {
        let mut plan = two_sections();
        plan.sections[1].name = "<b>\"Circle\" & more".to_owned();
        let room = RoomPlan::new(plan);
        let rows: Vec<_> = room.rows(None).collect();
        let text = markup(&room, &rows, &PlanFrame::around(room.plan(), &rows, true), true);
        assert_eq!(text.matches("role=\"gridcell\"").count(), 10);
        assert_eq!(text.matches("id=\"seat-9\"").count(), 1);
        assert_eq!(text.matches("class=\"focus-arc\"").count(), 1);
        assert!(text.contains("&lt;b>&quot;Circle&quot; &amp; more, row A"), "{text}");
        assert_eq!(text.matches("<g").count(), text.matches("</g>").count());
    }
}

//! The drawing around the seats, loaded after them: tables, bars, texts, and names of sections that have space.

use domain::api::{PlanView, SEAT_PITCH, ShapeView};

use super::drawing::{PlanFrame, Rows, escaped, push};
use crate::seat_map::room_plan::has_focus;

/// Distance of a section's name from its first or last row, plan units.
const NAME_DISTANCE: i32 = 20;
/// Width of a letter of that name, and half its height, plan units.
const NAME_LETTER: i32 = 7;
/// Height of the screen's arc, and depth of its label below it, plan units.
const FOCUS_ABOVE: i32 = 14;
const FOCUS_BELOW: i32 = 34;

/// Tables, bars and texts as markup; they belong below the seats.
pub fn shapes(plan: &PlanView) -> String {
    let mut out = String::new();
    for shape in &plan.shapes {
        let [x, y] = shape.at;
        let text = escaped(&shape.text);
        push(&mut out, format_args!("<g class=\"room-shape\" aria-hidden=\"true\">{}", outline(shape)));
        push(&mut out, format_args!("<text class=\"section-name\" x=\"{x}\" y=\"{y}\">{text}</text></g>"));
    }
    out
}

/// The outline of a shape as a polygon; empty for a text alone.
pub fn outline(shape: &ShapeView) -> String {
    if shape.corners.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = shape.corners.iter().map(ToString::to_string).collect();
    format!("<polygon points=\"{}\"/>", numbers.join(" "))
}

/// The names of sections, above their seats if there is space, else below. Where there is none, the seats' names have
/// them.
pub fn names(plan: &PlanView, rows: &Rows<'_>, frame: &PlanFrame) -> String {
    let mut out = String::new();
    let reach = SEAT_PITCH / 2;
    let seats = || rows.iter().flat_map(|(_, row)| row.x.iter().zip(&row.y));
    let seats: Vec<[i32; 4]> = seats().map(|(x, y)| [x - reach, y - reach, x + reach, y + reach]).collect();
    let mut drawn = vec![focus_area(plan)];
    drawn.extend(plan.shapes.iter().map(|shape| name_area(&shape.text, shape.at)));
    for section in plan.sections.iter().filter(|section| !section.name.is_empty()) {
        let [left, top, right, bottom] = section.bounds;
        let x = i32::midpoint(left, right);
        let place = |y: i32| name_area(&section.name, [x, y]);
        let is_free = |y: &i32| {
            let covers = |other: &[i32; 4]| overlap(place(*y), *other);
            frame.contains(place(*y)) && !seats.iter().any(covers) && !drawn.iter().any(covers)
        };
        let Some(y) = [top - NAME_DISTANCE, bottom + NAME_DISTANCE].into_iter().find(is_free) else { continue };
        drawn.push(place(y));
        let name = escaped(&section.name);
        push(
            &mut out,
            format_args!("<text class=\"section-name\" x=\"{x}\" y=\"{y}\" aria-hidden=\"true\">{name}</text>"),
        );
    }
    out
}

/// Left, top, right and bottom of a name.
fn name_area(name: &str, [x, y]: [i32; 2]) -> [i32; 4] {
    let letters = i32::try_from(name.chars().count()).unwrap_or(i32::MAX / NAME_LETTER);
    let half = letters * NAME_LETTER / 2;
    [x - half, y - NAME_LETTER, x + half, y + NAME_LETTER]
}

/// Left, top, right and bottom of the screen or stage with its label.
fn focus_area(plan: &PlanView) -> [i32; 4] {
    let ([x, y, width], half_depth) = (plan.focus_at, plan.focus_depth / 2);
    let (above, below) = if plan.is_round { (half_depth, half_depth) } else { (FOCUS_ABOVE, FOCUS_BELOW) };
    if has_focus(plan) { [x - width / 2, y - above, x + width / 2, y + below] } else { [x, y, x, y] }
}

/// True if two rectangles (left, top, right, bottom) have a common point inside.
pub fn overlap(one: [i32; 4], other: [i32; 4]) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room_plan::RoomPlan;
    use crate::seat_map::room_plan::tests::two_sections;

    #[test]
    fn section_names_are_drawn_where_no_seat_and_no_other_name_is() {
        let mut plan = two_sections();
        plan.sections[0].bounds = [0, 20, 60, 40];
        plan.sections[1].bounds = [0, 80, 20, 80];
        let names_of = |plan: PlanView| {
            let room = RoomPlan::new(plan);
            let rows: Vec<_> = room.rows(None).collect();
            names(room.plan(), &rows, &PlanFrame::around(room.plan(), &rows, true))
        };
        // The screen is above the stalls, and their name above the circle.
        let text = names_of(plan.clone());
        assert!(text.contains("x=\"30\" y=\"60\" aria-hidden=\"true\">Stalls<"), "{text}");
        assert!(text.contains("x=\"10\" y=\"100\" aria-hidden=\"true\">Circle<"), "{text}");
        // The circle directly behind the stalls leaves no space for theirs.
        plan.sections[1].bounds = [0, 60, 20, 60];
        plan.sections[1].rows[0].y = vec![60; 2];
        let text = names_of(plan);
        assert!(
            text.contains("x=\"10\" y=\"80\" aria-hidden=\"true\">Circle<") && !text.contains(">Stalls<"),
            "{text}"
        );
    }

    #[test]
    fn shapes_are_drawn_with_their_text() {
        let corners = vec![0, 50, 40, 50, 40, 60, 0, 60];
        let shape = ShapeView { at: [20, 55], corners, text: "Bar <1>".to_owned() };
        let text = shapes(&PlanView { shapes: vec![shape], ..two_sections() });
        assert!(text.contains("<polygon points=\"0 50 40 50 40 60 0 60\"/>") && text.contains("Bar &lt;1>"), "{text}");
    }
}

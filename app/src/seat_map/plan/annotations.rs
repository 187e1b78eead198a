//! The drawing around the seats, loaded after them: areas without numbered seats, tables, bars, texts, and names of
//! sections that have space.

use domain::api::{AreaView, PlanView, SEAT_PITCH, ShapeView};
use language::{current, money};

use super::drawing::{PlanFrame, Rows, bounds, corners, escaped, letter_places, push};
use crate::seat_map::appearance::CATEGORY_COLOURS;
use crate::seat_map::room_plan::{area_of, has_focus};

/// Distance of a section's name from its first or last row, plan units.
const NAME_DISTANCE: i32 = 20;
/// Width of a letter of that name, and half its height, plan units.
const NAME_LETTER: i32 = 7;
/// Height of the screen's arc, and depth of its label below it, plan units.
const FOCUS_ABOVE: i32 = 14;
const FOCUS_BELOW: i32 = 34;
/// Largest size of the letters in an area, plan units…
const AREA_LETTER: i32 = 14;
/// …and in a larger room, as the width of the room in such letters: a room without seats has the units of its file.
const AREA_LETTERS_ACROSS: i32 = 44;
/// Letters of the longest line in an area, at least: its places left.
const AREA_LETTERS: i32 = 16;

/// Areas, tables, bars and texts as markup; they belong below the seats.
pub fn shapes(plan: &PlanView) -> String {
    let mut out = String::new();
    for shape in &plan.shapes {
        if let Some(area) = area_of(plan, shape) {
            push_area(&mut out, plan, shape, area);
            continue;
        }
        let [x, y] = shape.at;
        let text = escaped(&shape.text);
        push(&mut out, format_args!("<g class=\"room-shape\" aria-hidden=\"true\">{}", outline(shape)));
        push(&mut out, format_args!("<text class=\"section-name\" x=\"{x}\" y=\"{y}\">{text}</text></g>"));
    }
    out
}

/// An area with its name, price and places left, which [`write_places_left`] fills in: a separate row in the grid of
/// seats. The first outline is its target, the second is seen.
///
/// [`write_places_left`]: crate::seat_map::own_seats::areas::write_places_left
fn push_area(out: &mut String, plan: &PlanView, shape: &ShapeView, area: &AreaView) {
    // Without a visible part it would be a tab stop that is not seen. Its card is left.
    let Some(([x, y], size)) = area_text(plan, shape, area) else { return };
    let (colour, number, outline) = (area_colour(plan, area), area.area, outline(shape));
    let (name, price) = (escaped(&area.name), escaped(&money(area.price, current())));
    let line = size * 5 / 4;
    push(
        out,
        format_args!(
            "<g role=\"row\"><g class=\"room-area cat-{colour}\" role=\"gridcell\" tabindex=\"0\" data-area=\"{number}\" font-size=\"{size}\">\
             {outline}{outline}<text class=\"room-area-name\" x=\"{x}\" y=\"{}\">{name}</text><text x=\"{x}\" y=\"{y}\">{price}</text>\
             <text class=\"room-area-left\" x=\"{x}\" y=\"{}\"></text></g></g>",
            y - line,
            y + line,
        ),
    );
}

/// The number of an area's colour, that of its category.
pub fn area_colour(plan: &PlanView, area: &AreaView) -> usize {
    let category = plan.categories.iter().position(|known| known.name == area.category);
    category.unwrap_or_default() % usize::from(CATEGORY_COLOURS)
}

/// The middle of the three lines in an area, and the size of their letters; `None` if all of it is outside the room.
pub fn area_text(plan: &PlanView, shape: &ShapeView, area: &AreaView) -> Option<([i32; 2], i32)> {
    let along = |axis: usize, most: i32| {
        let (low, high) = bounds(corners(shape, axis));
        // What is outside the room is not on screen.
        let (from, to) = (low.max(0), high.min(most));
        let is_cut = (from, to) != (low, high);
        (if is_cut { i32::midpoint(from, to) } else { shape.at[axis] }, to - from)
    };
    let ((x, width), (y, height)) = (along(0, plan.width), along(1, plan.height));
    let largest = AREA_LETTER.max(plan.width / AREA_LETTERS_ACROSS);
    // A letter is about two thirds as wide as high, and three lines need the height of four.
    let size = largest.min(height / 4).min(width * 3 / 2 / area_letters(area)).max(1);
    (width > 0 && height > 0).then_some(([x, y], size))
}

/// Letters of the longest line in an area.
pub fn area_letters(area: &AreaView) -> i32 {
    i32::try_from(area.name.chars().count()).unwrap_or(i32::MAX).max(AREA_LETTERS)
}

/// The outline of a shape as a polygon; empty for a text alone.
pub fn outline(shape: &ShapeView) -> String {
    if shape.corners.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = shape.corners.iter().map(ToString::to_string).collect();
    format!("<polygon points=\"{}\"/>", numbers.join(" "))
}

/// The names of sections, above their seats if there is space, else below, and never over a row's letter. Where there is
/// none, the seats' names have them.
pub fn names(plan: &PlanView, rows: &Rows<'_>, frame: &PlanFrame) -> String {
    let mut out = String::new();
    let reach = SEAT_PITCH / 2;
    let seats = || rows.iter().flat_map(|(_, row)| row.x.iter().zip(&row.y));
    let seats: Vec<[i32; 4]> = seats().map(|(x, y)| [x - reach, y - reach, x + reach, y + reach]).collect();
    let mut drawn = vec![focus_area(plan)];
    drawn.extend(plan.shapes.iter().map(|shape| {
        // In an area, the name of a section would seem to be the area's.
        if area_of(plan, shape).is_some() { outline_bounds(shape) } else { name_area(&shape.text, shape.at) }
    }));
    let lettered = rows.iter().filter(|(_, row)| !row.label.is_empty());
    drawn.extend(
        lettered.flat_map(|(_, row)| letter_places(row).into_iter().map(|(x, y)| name_area(&row.label, [x, y]))),
    );
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

/// Left, top, right and bottom of a shape with an outline.
fn outline_bounds(shape: &ShapeView) -> [i32; 4] {
    let [(left, right), (top, bottom)] = [0, 1].map(|axis| bounds(corners(shape, axis)));
    [left, top, right, bottom]
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

    fn area_named(plan: &PlanView, name: &str) -> AreaView {
        let (category, price) = (plan.categories[0].name.clone(), plan.categories[0].price);
        AreaView { area: 3, name: name.to_owned(), category, category_label: String::new(), price, capacity: 300 }
    }

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
        // An area is where the name of the stalls would be, with its own name beside that.
        let mut covered = plan.clone();
        covered.areas = vec![area_named(&plan, "F")];
        let corners = vec![0, 58, 60, 58, 60, 78, 0, 78];
        covered.shapes = vec![ShapeView { at: [55, 74], corners, text: "F".to_owned(), area: Some(3) }];
        let text = names_of(covered);
        assert!(text.contains(">Circle<") && !text.contains(">Stalls<"), "{text}");
        // The letter of a row that is a column is where the name of the stalls would be.
        let mut column = plan.clone();
        column.sections[0].rows[0].x = vec![30; 4];
        column.sections[0].rows[0].y = vec![10, 20, 30, 40];
        let text = names_of(column);
        assert!(text.contains(">Circle<") && !text.contains(">Stalls<"), "{text}");
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
        let shape = ShapeView { at: [20, 55], corners, text: "Bar <1>".to_owned(), area: None };
        let text = shapes(&PlanView { shapes: vec![shape], ..two_sections() });
        assert!(text.contains("<polygon points=\"0 50 40 50 40 60 0 60\"/>") && text.contains("Bar &lt;1>"), "{text}");
    }

    #[test]
    fn an_area_has_its_name_and_price_in_its_outline_and_a_tab_stop() {
        let mut plan = two_sections();
        plan.width = 300;
        plan.areas = vec![area_named(&plan, "Floor & bar")];
        let corners = vec![0, 50, 240, 50, 240, 90, 0, 90];
        plan.shapes = vec![ShapeView { at: [120, 70], corners, text: "Floor & bar".to_owned(), area: Some(3) }];
        let text = shapes(&plan);
        assert!(text.contains("role=\"gridcell\" tabindex=\"0\" data-area=\"3\" font-size=\"10\""), "{text}");
        assert!(text.contains("y=\"58\">Floor &amp; bar<") && text.contains("y=\"70\">€12.50<"), "{text}");
        // Without a price, as in an organiser's preview, it is only a drawing.
        plan.areas.clear();
        assert!(!shapes(&plan).contains("gridcell"));
    }

    #[test]
    fn the_text_of_an_area_is_in_its_visible_part_and_as_large_as_the_room_needs() {
        let plan = PlanView { width: 8_800, height: 4_000, ..two_sections() };
        let text_in = |[left, top, right, bottom]: [i32; 4], name: &str| {
            let corners = vec![left, top, right, top, right, bottom, left, bottom];
            let at = [i32::midpoint(left, right), i32::midpoint(top, bottom)];
            let shape = ShapeView { at, corners, text: name.to_owned(), area: Some(3) };
            area_text(&plan, &shape, &area_named(&plan, name))
        };
        assert_eq!(text_in([400, 200, 8_400, 2_200], "Lawn"), Some(([4_400, 1_200], 200)), "a room in millimetres");
        assert_eq!(text_in([400, 200, 560, 2_200], "Lawn"), Some(([480, 1_200], 15)), "as wide as the area");
        assert_eq!(text_in([-7_600, 200, 400, 2_200], "Lawn"), Some(([200, 1_200], 37)), "as wide as its visible part");
        assert_eq!(text_in([8_900, 200, 9_900, 2_200], "Lawn"), None, "outside the room");
    }
}

//! Rows and areas as markup. The drawing has a scale of its own, 20 units from seat to seat, whatever units the plan
//! was drawn in. Hidden from screen readers: the list beside it has the same.

use std::fmt::Write;

use domain::api::{SEAT_PITCH, SeatKind};
use domain::layout::editing::{DraftArea, DraftRow, Point};

use crate::seat_map::plan::drawing::escaped;

/// Half a seat, units of the drawing.
const HALF_SEAT: f64 = 8.0;
/// How far a row's letter stands from its last seat, units of the drawing.
const LETTER_DISTANCE: f64 = 19.0;
/// Categories share so many colours.
pub(super) const COLOURS: usize = 8;

/// How one seat looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SeatLook {
    /// Place of its category among the categories.
    pub colour: usize,
    /// What it is.
    pub kind: SeatKind,
    /// Whether it is sold in a show to come.
    pub is_sold: bool,
    /// Whether it is chosen.
    pub is_chosen: bool,
}

/// What units of the plan are multiplied with.
pub(super) fn scale(pitch: f64) -> f64 {
    f64::from(SEAT_PITCH) / pitch
}

/// A row: its seats, and its letter at both ends.
pub(super) fn row(row: &DraftRow, scale: f64, looks: &[SeatLook]) -> String {
    let points: Vec<Point> = row.points().into_iter().map(|[x, y]| [x * scale, y * scale]).collect();
    let mut out = String::with_capacity(points.len() * 160);
    let order = row.from_left();
    let before_last = order.len().checked_sub(2).and_then(|at| order.get(at));
    for (end, inner, is_left) in [(order.first(), order.get(1), true), (order.last(), before_last, false)] {
        let Some(end) = end else { continue };
        let [x, y] = letter_place(points[*end], inner.map(|inner| points[*inner]), is_left);
        push(&mut out, format_args!("<text class=\"layout-letter\" x=\"{}\" y=\"{}\">", tenth(x), tenth(y)));
        out.push_str(&escaped(&row.label));
        out.push_str("</text>");
    }
    for (number, ((seat, [x, y]), look)) in row.seats.iter().zip(&points).zip(looks).enumerate() {
        let round = if matches!(look.kind, SeatKind::Standard | SeatKind::Recliner) { 5 } else { 1 };
        push(
            &mut out,
            format_args!(
                "<rect class=\"layout-seat cat-{}{}{}\" data-seat=\"{number}\" x=\"{}\" y=\"{}\" width=\"16\" height=\"16\" rx=\"{round}\"/>\
                 <text class=\"layout-number\" x=\"{}\" y=\"{}\">",
                look.colour % COLOURS,
                if look.is_sold { " is-sold" } else { "" },
                if look.is_chosen { " is-chosen" } else { "" },
                tenth(x - HALF_SEAT),
                tenth(y - HALF_SEAT),
                tenth(*x),
                tenth(*y),
            ),
        );
        out.push_str(&escaped(&seat.number));
        out.push_str("</text>");
    }
    out
}

/// Past an end of a row, in the direction it runs there; beside a single seat.
fn letter_place([x, y]: Point, inner: Option<Point>, is_left: bool) -> Point {
    let [dx, dy] = inner.map_or([if is_left { -1.0 } else { 1.0 }, 0.0], |[from_x, from_y]| [x - from_x, y - from_y]);
    let length = dx.hypot(dy).max(1e-6);
    [x + dx / length * LETTER_DISTANCE, y + dy / length * LETTER_DISTANCE]
}

/// An area with its name and how many it holds; with corners to take hold of where it is the only thing chosen.
pub(super) fn area(area: &DraftArea, scale: f64, colour: usize, words: &str, has_handles: bool) -> String {
    let place = |[x, y]: Point| [(area.at[0] + x) * scale, (area.at[1] + y) * scale];
    let corners: Vec<Point> = area.outline.corners().into_iter().map(place).collect();
    let mut out = format!("<polygon class=\"layout-outline cat-{}\" points=\"", colour % COLOURS);
    for [x, y] in &corners {
        push(&mut out, format_args!("{},{} ", tenth(*x), tenth(*y)));
    }
    let [x, y] = place([0.0, 0.0]);
    push(&mut out, format_args!("\"/><text class=\"layout-words\" x=\"{}\" y=\"{}\">", tenth(x), tenth(y)));
    out.push_str(&escaped(words));
    out.push_str("</text>");
    if has_handles {
        for (number, [x, y]) in corners.iter().enumerate() {
            let (x, y) = (tenth(*x), tenth(*y));
            push(
                &mut out,
                format_args!(
                    "<circle class=\"layout-corner\" data-corner=\"{number}\" cx=\"{x}\" cy=\"{y}\" r=\"8\"/>"
                ),
            );
        }
    }
    out
}

/// Writing to a string never fails.
fn push(out: &mut String, words: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(words);
}

/// A number with one digit after the point.
pub(super) fn tenth(number: f64) -> String {
    let tenths = (number * 10.0).round() as i64;
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{}", tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10)
}

#[cfg(test)]
mod tests {
    use domain::layout::editing::{Command, Draft, NewRows, Numbering};

    use super::*;

    fn drawn() -> Draft {
        let draft = Draft::new("Saal", "gold");
        let wish = NewRows {
            section: draft.sections[0].key,
            category: draft.categories[0].key,
            at: [100.0, 50.0],
            turn: 0.0,
            bow: 0.0,
            rows: 1,
            seats: 3,
            label: "A".to_owned(),
            numbering: Numbering { first: "1".to_owned(), step: 1, from_right: false },
            gap: 24.0,
            aisles: Vec::new(),
        };
        draft.after(&Command::AddRows(wish)).expect("it is drawn")
    }

    #[test]
    fn a_row_has_its_letter_at_both_ends_and_each_seat_once() {
        let draft = drawn();
        let looks = [SeatLook { is_sold: true, ..SeatLook::default() }, SeatLook::default(), SeatLook::default()];
        let text = row(&draft.rows[0], 1.0, &looks);
        assert_eq!((text.matches("layout-seat").count(), text.matches("is-sold").count()), (3, 1));
        assert!(text.contains("x=\"61.0\" y=\"50.0\">A<") && text.contains("x=\"139.0\" y=\"50.0\">A<"), "{text}");
    }

    #[test]
    fn names_stay_text_and_small_numbers_keep_their_sign() {
        let draft = drawn();
        let named = draft.after(&Command::Relabel(vec![draft.rows[0].key], "<b>&".to_owned())).expect("a label");
        assert!(row(&named.rows[0], 1.0, &[SeatLook::default(); 3]).contains("&lt;b>&amp;"));
        assert_eq!([tenth(-0.26), tenth(-0.01), tenth(12.36)], ["-0.3", "0.0", "12.4"]);
    }
}

//! Rows and areas as markup. The drawing has its own scale, 20 units from seat to seat, independent of the units of the plan.
//! Hidden from screen readers, which use the list beside it.
//!
//! Writing to a string never fails.

use std::fmt::Write;

use domain::api::{SEAT_PITCH, SeatKind};
use domain::layout::editing::{DraftArea, DraftRow, DrawingPoint};

use crate::seat_map::plan::drawing::escaped;

/// Half the size of a seat, units of the drawing.
const HALF_SEAT: f64 = 8.0;
/// Distance of a row's letter from its last seat, units of the drawing.
const LETTER_DISTANCE: f64 = 19.0;
pub(super) const COLOURS: usize = 8;

/// The appearance of one seat.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SeatLook {
    /// Index of its category.
    pub colour: usize,
    pub kind: SeatKind,
    /// True if it is sold in an upcoming show.
    pub is_sold: bool,
    pub is_chosen: bool,
}

/// Factor from plan units to the drawing's units.
pub(super) fn scale(pitch: f64) -> f64 {
    f64::from(SEAT_PITCH) / pitch
}

/// A row: its seats, and its letter at both ends.
pub(super) fn row(row: &DraftRow, scale: f64, looks: &[SeatLook]) -> String {
    let points: Vec<DrawingPoint> = row.points().into_iter().map(|[x, y]| [x * scale, y * scale]).collect();
    let mut out = String::with_capacity(points.len() * 160);
    let order = row.from_left();
    let before_last = order.len().checked_sub(2).and_then(|at| order.get(at));
    for (end, inner, is_left) in [(order.first(), order.get(1), true), (order.last(), before_last, false)] {
        let Some(end) = end else { continue };
        let [x, y] = letter_place(points[*end], inner.map(|inner| points[*inner]), is_left);
        let (x, y, label) = (tenth(x), tenth(y), escaped(&row.label));
        let _ = write!(out, "<text class=\"layout-letter\" x=\"{x}\" y=\"{y}\">{label}</text>");
    }
    for (number, ((seat, [x, y]), look)) in row.seats.iter().zip(&points).zip(looks).enumerate() {
        let round = if look.kind.is_interchangeable() { 5 } else { 1 };
        let _ = write!(
            out,
            "<rect class=\"layout-seat cat-{}{}{}\" data-seat=\"{number}\" x=\"{}\" y=\"{}\" width=\"16\" height=\"16\" rx=\"{round}\"/>\
             <text class=\"layout-number\" x=\"{}\" y=\"{}\">{}</text>",
            look.colour % COLOURS,
            if look.is_sold { " is-sold" } else { "" },
            if look.is_chosen { " is-chosen" } else { "" },
            tenth(x - HALF_SEAT),
            tenth(y - HALF_SEAT),
            tenth(*x),
            tenth(*y),
            escaped(&seat.number),
        );
    }
    out
}

/// The place of a letter: beyond the row's end in its direction, or beside a single seat.
fn letter_place([x, y]: DrawingPoint, inner: Option<DrawingPoint>, is_left: bool) -> DrawingPoint {
    let [dx, dy] = inner.map_or([if is_left { -1.0 } else { 1.0 }, 0.0], |[from_x, from_y]| [x - from_x, y - from_y]);
    let length = dx.hypot(dy).max(1e-6);
    [x + dx / length * LETTER_DISTANCE, y + dy / length * LETTER_DISTANCE]
}

/// An area with its name and capacity, and with corner handles if it is the only selected part.
pub(super) fn area(area: &DraftArea, scale: f64, colour: usize, words: &str, has_handles: bool) -> String {
    let place = |[x, y]: DrawingPoint| [(area.at[0] + x) * scale, (area.at[1] + y) * scale];
    let corners: Vec<DrawingPoint> = area.outline.corners().into_iter().map(place).collect();
    let mut out = format!("<polygon class=\"layout-outline cat-{}\" points=\"", colour % COLOURS);
    for [x, y] in &corners {
        let _ = write!(out, "{},{} ", tenth(*x), tenth(*y));
    }
    let [x, y] = place([0.0, 0.0]);
    let (x, y, words) = (tenth(x), tenth(y), escaped(words));
    let _ = write!(out, "\"/><text class=\"layout-words\" x=\"{x}\" y=\"{y}\">{words}</text>");
    if has_handles {
        for (number, [x, y]) in corners.iter().enumerate() {
            let (x, y) = (tenth(*x), tenth(*y));
            let _ =
                write!(out, "<circle class=\"layout-corner\" data-corner=\"{number}\" cx=\"{x}\" cy=\"{y}\" r=\"8\"/>");
        }
    }
    out
}

/// A number with one decimal.
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
        let rows = NewRows {
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
        draft.apply(&Command::AddRows(rows)).expect("it is drawn")
    }

    #[test]
    fn a_row_has_letters_at_both_ends_and_each_seat_once() {
        let draft = drawn();
        let looks = [SeatLook { is_sold: true, ..SeatLook::default() }, SeatLook::default(), SeatLook::default()];
        let text = row(&draft.rows[0], 1.0, &looks);
        assert_eq!((text.matches("layout-seat").count(), text.matches("is-sold").count()), (3, 1));
        assert!(text.contains("x=\"61.0\" y=\"50.0\">A<") && text.contains("x=\"139.0\" y=\"50.0\">A<"), "{text}");
    }

    #[test]
    fn names_are_escaped_and_small_numbers_keep_their_sign() {
        let draft = drawn();
        let named = draft.apply(&Command::Relabel(vec![draft.rows[0].key], "<b>&".to_owned())).expect("a label");
        assert!(row(&named.rows[0], 1.0, &[SeatLook::default(); 3]).contains("&lt;b>&amp;"));
        assert_eq!([tenth(-0.26), tenth(-0.01), tenth(12.36)], ["-0.3", "0.0", "12.4"]);
    }
}

//! Row letters at the map's left edge, of rows whose own letter is out of view.
//!
//! They are a layer over the drawing that the browser keeps at the edge (`position: sticky`), in the frame that moves the
//! map. Text that moves within the drawing would lay all of it out anew in each frame.

use std::cell::Cell;

use domain::api::RowView;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use super::drawing::{PlanFrame, escaped, letter_places};

/// The part of the map in view, in percent: left, top, width, height.
type Part = [f64; 4];

/// Distance of a letter from the edge, plan units. The style has it too.
const FROM_EDGE: f64 = 10.0;

/// The letters of the rows on screen.
pub struct EdgeLetters {
    frame: PlanFrame,
    rows: Vec<LetteredRow>,
}

struct LetteredRow {
    /// Its letter at the edge.
    element: HtmlElement,
    seats: RowSeats,
    /// The height at which the letter is shown, plan units.
    shown_at: Cell<Option<i32>>,
}

struct RowSeats {
    /// The place of its letter in the drawing.
    letter: (i32, i32),
    seats: Vec<(i32, i32)>,
}

impl EdgeLetters {
    /// Adds the letters of these rows, hidden, to the plane with the drawing.
    pub fn new<'a>(plane: &Element, rows: impl Iterator<Item = &'a RowView>, frame: PlanFrame) -> Self {
        let rows: Vec<_> = rows.filter_map(|row| Some((row, RowSeats::of(row)?))).collect();
        let letter = |row: &RowView| format!("<span class=\"row-letter\" hidden>{}</span>", escaped(&row.label));
        let letters: String = rows.iter().map(|(row, _)| letter(row)).collect();
        // Fails only for invalid places.
        let _ = plane.insert_adjacent_html(
            "beforeend",
            &format!("<div class=\"row-letters\" aria-hidden=\"true\"><div>{letters}</div></div>"),
        );
        let column = plane.last_element_child().and_then(|layer| layer.first_element_child());
        let elements = column.map(|column| column.children());
        let lettered = (0..).zip(rows).filter_map(|(number, (_, seats))| {
            let element = elements.as_ref()?.item(number)?.unchecked_into();
            Some(LetteredRow { element, seats, shown_at: Cell::new(None) })
        });
        Self { frame, rows: lettered.collect() }
    }

    /// Shows the letters of rows whose left end is left of `part`, each at the height of its row at the edge.
    pub fn follow(&self, part: Option<Part>) {
        for row in &self.rows {
            let height = part.and_then(|part| row.seats.height_at_edge(self.frame, part));
            // It changes with the nearest seat, not with each frame.
            if row.shown_at.replace(height) != height {
                row.element.set_hidden(height.is_none());
                let down = height.unwrap_or_default() - self.frame.top;
                // Fails only for properties that do not exist.
                let _ = row.element.style().set_property("--down", &down.to_string());
            }
        }
    }
}

impl RowSeats {
    fn of(row: &RowView) -> Option<Self> {
        let seats = row.x.iter().copied().zip(row.y.iter().copied()).collect();
        Some(Self { letter: letter_places(row).into_iter().min()?, seats })
    }

    /// The height of the row at the left edge, plan units. `None` if its left end is in view, or all of it is out of view.
    fn height_at_edge(&self, frame: PlanFrame, [left, _, width, _]: Part) -> Option<i32> {
        let at = |percent: f64| f64::from(frame.left) + percent / 100.0 * f64::from(frame.width);
        let (edge, end) = (at(left) + FROM_EDGE, at(left + width));
        let is_in_view = |(x, _): &(i32, i32)| (edge..end).contains(&f64::from(*x));
        if f64::from(self.letter.0) >= edge || !self.seats.iter().any(is_in_view) {
            return None;
        }
        self.seats.iter().min_by_key(|(x, _)| (f64::from(*x) - edge).abs() as i64).map(|(_, y)| *y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The height of a letter at the edge of a map 400 units wide, of which half is in view from `left` percent on.
    fn height(seats: &[(i32, i32)], left: f64) -> Option<i32> {
        let row = RowSeats { letter: (seats[0].0 - 21, seats[0].1), seats: seats.to_vec() };
        row.height_at_edge(PlanFrame { left: 0, top: 0, width: 400, height: 200 }, [left, 0.0, 50.0, 50.0])
    }

    #[test]
    fn a_row_whose_left_end_is_in_view_has_no_letter_at_the_edge() {
        assert_eq!(height(&[(40, 20), (60, 22), (80, 20)], 0.0), None);
    }

    #[test]
    fn a_letter_at_the_edge_is_at_the_height_of_the_nearest_seat() {
        assert_eq!(height(&[(40, 20), (60, 22), (80, 26), (100, 30)], 17.5), Some(26));
    }

    #[test]
    fn a_row_out_of_view_has_no_letter_at_the_edge() {
        assert_eq!(height(&[(40, 20), (60, 22)], 30.0), None);
        assert_eq!(height(&[(390, 20), (399, 20)], 0.0), None);
    }
}

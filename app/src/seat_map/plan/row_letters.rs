//! The letter at the left end of each row, which stays at the map's left edge while the row is in view.
//!
//! The letters are a layer over the drawing, in which the browser keeps them in view (`position: sticky`) in the frame
//! that moves the map. Text that moves within the drawing would lay all of it out anew in each frame.

use domain::api::RowView;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use super::drawing::{PlanFrame, Rows, escaped, letter_places};
use super::zoom::decimal;
use crate::browser;

/// The part of the map in view, in percent: left, top, width, height.
type Part = [f64; 4];

/// Distance of a letter from the edge, plan units. The style has it too.
const FROM_EDGE: f64 = 10.0;

/// The id of a row's letter.
fn id_of(row: &RowView) -> String {
    format!("letter-{}", row.first)
}

/// Draws the letters into a layer that covers the drawing of these rows.
pub fn draw(layer: &Element, rows: &Rows<'_>, frame: PlanFrame) {
    let lettered: Vec<_> =
        rows.iter().filter_map(|(_, row)| Some((*row, letter_places(row).into_iter().min()?))).collect();
    let markup = lettered.iter().map(|(row, _)| {
        format!("<div><span class=\"row-letter\" id=\"{}\">{}</span></div>", id_of(row), escaped(&row.label))
    });
    layer.set_inner_html(&markup.collect::<String>());
    let children = layer.children();
    for (number, (row, (x, y))) in (0..).zip(lettered) {
        let Some(place) = children.item(number) else { continue };
        let end = row.x.iter().copied().max().unwrap_or(x);
        let (left, top, right) = (frame.across(x), frame.down(y), 100.0 - frame.across(end));
        // As a property, because markup may have no styles.
        let place: &HtmlElement = place.unchecked_ref();
        let (left, top, right) = (decimal(left), decimal(top), decimal(right));
        place.style().set_css_text(&format!("left:{left}%;top:{top}%;right:{right}%"));
    }
}

/// The rows that are not straight. At the edge, their letters are at the height of the seats there.
pub struct CurvedRows {
    frame: PlanFrame,
    rows: Vec<CurvedRow>,
}

struct CurvedRow {
    id: String,
    /// The place of its letter.
    letter: (i32, i32),
    seats: Vec<(i32, i32)>,
}

impl CurvedRows {
    /// Those of these rows that are not straight.
    pub fn new<'a>(rows: impl Iterator<Item = &'a RowView>, frame: PlanFrame) -> Self {
        let curved = rows.filter(|row| row.y.iter().any(|y| Some(y) != row.y.first())).filter_map(|row| {
            let seats = row.x.iter().copied().zip(row.y.iter().copied()).collect();
            Some(CurvedRow { id: id_of(row), letter: letter_places(row).into_iter().min()?, seats })
        });
        Self { frame, rows: curved.collect() }
    }

    /// Moves the letters of the rows in `part` to the height of their seats at its left edge.
    pub fn follow(&self, part: Option<Part>) {
        for row in &self.rows {
            let drop = part.map_or(Some(0.0), |part| self.drop_at_edge(row, part));
            let (Some(drop), Some(letter)) = (drop, browser::element(&row.id)) else { continue };
            // Fails only for properties that do not exist.
            let _ = letter.unchecked_ref::<HtmlElement>().style().set_property("--drop", &decimal(drop));
        }
    }

    /// How far below its letter a row is at the left edge, plan units. `None` for a row that is out of view above or
    /// below.
    fn drop_at_edge(&self, row: &CurvedRow, [left, top, _, height]: Part) -> Option<f64> {
        let is_in_view = |(_, y): &(i32, i32)| (top..=top + height).contains(&self.frame.down(*y));
        if !row.seats.iter().any(is_in_view) {
            return None;
        }
        let edge = f64::from(self.frame.left) + left / 100.0 * f64::from(self.frame.width) + FROM_EDGE;
        if f64::from(row.letter.0) >= edge {
            return Some(0.0);
        }
        let (_, y) = row.seats.iter().min_by_key(|(x, _)| (f64::from(*x) - edge).abs() as i64)?;
        Some(f64::from(y - row.letter.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drop of a letter at the edge of a map of 400 by 200 units, of which half is in view from here on, in percent.
    fn drop(seats: &[(i32, i32)], left: f64, top: f64) -> Option<f64> {
        let rows = CurvedRows { frame: PlanFrame { left: 0, top: 0, width: 400, height: 200 }, rows: Vec::new() };
        let letter = (seats[0].0 - 21, seats[0].1);
        let row = CurvedRow { id: String::new(), letter, seats: seats.to_vec() };
        rows.drop_at_edge(&row, [left, top, 50.0, 50.0])
    }

    #[test]
    fn a_letter_stays_at_its_row_while_it_is_in_view() {
        assert_eq!(drop(&[(40, 20), (60, 22), (80, 20)], 0.0, 0.0), Some(0.0));
    }

    #[test]
    fn a_letter_at_the_edge_is_at_the_height_of_the_nearest_seat() {
        assert_eq!(drop(&[(40, 20), (60, 22), (80, 26), (100, 30)], 17.5, 0.0), Some(6.0));
    }

    #[test]
    fn letters_of_rows_above_and_below_the_view_are_left_alone() {
        assert_eq!(drop(&[(40, 20), (60, 22)], 30.0, 50.0), None);
        assert_eq!(drop(&[(40, 180), (60, 182)], 30.0, 0.0), None);
    }
}

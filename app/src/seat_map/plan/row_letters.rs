//! Row letters that stay at the map's left edge while it moves.

use domain::api::RowView;
use domain::seats::SeatIndex;

use super::drawing::{PlanFrame, letter_places};
use super::zoom::decimal;
use crate::browser;

/// The part of the map in view, in percent: left, top, width, height.
type Part = [f64; 4];

/// Distance of a letter from the edge, plan units.
const FROM_EDGE: f64 = 10.0;

/// The left letters of the rows on screen.
pub struct RowLetters {
    frame: PlanFrame,
    rows: Vec<LetteredRow>,
}

struct LetteredRow {
    first: SeatIndex,
    /// The place of its left letter.
    letter: (i32, i32),
    seats: Vec<(i32, i32)>,
}

/// The id of a row's left letter.
pub fn id_of(first: SeatIndex) -> String {
    format!("letter-{first}")
}

impl RowLetters {
    /// The letters of these rows.
    pub fn new<'a>(rows: impl Iterator<Item = &'a RowView>, frame: PlanFrame) -> Self {
        let lettered = rows.filter_map(|row| {
            let seats = row.x.iter().copied().zip(row.y.iter().copied()).collect();
            let letter = letter_places(row).into_iter().min()?;
            Some(LetteredRow { first: row.first, letter, seats })
        });
        Self { frame, rows: lettered.collect() }
    }

    /// Moves the letters of rows whose left end is out of view to the edge of `part`.
    pub fn keep_in_view(&self, part: Option<Part>) {
        for row in &self.rows {
            let Some(letter) = browser::element(&id_of(row.first)) else { continue };
            // Fails only for invalid attribute names.
            let _ = match part.and_then(|part| self.place_at_edge(row, part)) {
                Some((x, y)) => {
                    let (dx, dy) = (decimal(x - f64::from(row.letter.0)), decimal(y - f64::from(row.letter.1)));
                    letter.set_attribute("transform", &format!("translate({dx} {dy})"))
                }
                None => letter.remove_attribute("transform"),
            };
        }
    }

    /// The place of a row's letter at the left edge, or `None` if the row's end is in view or all of it is out of view.
    fn place_at_edge(&self, row: &LetteredRow, [left, _, width, _]: Part) -> Option<(f64, f64)> {
        let at = |percent: f64| f64::from(self.frame.left) + percent / 100.0 * f64::from(self.frame.width);
        let (edge, end) = (at(left) + FROM_EDGE, at(left + width));
        let is_in_view = |(x, _): &(i32, i32)| (edge..end).contains(&f64::from(*x));
        if f64::from(row.letter.0) >= edge || !row.seats.iter().any(is_in_view) {
            return None;
        }
        let (_, y) = row.seats.iter().min_by_key(|(x, _)| (f64::from(*x) - edge).abs() as i64)?;
        Some((edge, f64::from(*y)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of a row's letter at the edge of a map 400 units wide, of which half is in view from `left` percent on.
    fn place(seats: &[(i32, i32)], left: f64) -> Option<(f64, f64)> {
        let letters = RowLetters { frame: PlanFrame { left: 0, top: 0, width: 400, height: 200 }, rows: Vec::new() };
        let row = LetteredRow { first: 0, letter: (seats[0].0 - 21, seats[0].1), seats: seats.to_vec() };
        letters.place_at_edge(&row, [left, 0.0, 50.0, 50.0])
    }

    #[test]
    fn a_letter_stays_at_its_row_while_it_is_in_view() {
        assert_eq!(place(&[(40, 20), (60, 22), (80, 20)], 0.0), None);
    }

    #[test]
    fn a_letter_moves_to_the_edge_at_the_height_of_the_nearest_seat() {
        assert_eq!(place(&[(40, 20), (60, 22), (80, 26), (100, 30)], 17.5), Some((80.0, 26.0)));
    }

    #[test]
    fn a_row_out_of_view_has_no_letter_at_the_edge() {
        assert_eq!(place(&[(40, 20), (60, 22)], 30.0), None);
        assert_eq!(place(&[(390, 20), (399, 20)], 0.0), None);
    }
}

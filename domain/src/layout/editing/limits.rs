//! Limits that commands may not exceed: counts, lengths and positions.

use super::super::areas::MAX_AREA_CAPACITY;
use super::super::error::{MAX_CATEGORIES, MAX_COORDINATE, MAX_NAME_CHARS};
use super::super::room::Focus;
use super::curve::add;
use super::{CommandError, Draft, DrawingPoint, MAX_EDITED_SEATS, Outline};
use crate::seats::MAX_AREAS_PER_SHOW;

/// Maximum number of sections.
const MAX_SECTIONS: usize = 200;
/// Maximum number of rows and areas together.
const MAX_OBJECTS: usize = 2_000;
/// Maximum number of corners of an area.
const MAX_CORNERS: usize = 64;

impl Draft {
    /// Checks the draft against the limits. An uploaded plan may already exceed a limit; it must not grow further.
    pub(super) fn check(&self, before: &Self) -> Result<(), CommandError> {
        if self.seat_count() > MAX_EDITED_SEATS {
            return Err(CommandError::TooManySeats);
        }
        let counts = |draft: &Self| {
            let (rows, areas) = (draft.rows.len(), draft.areas.len());
            [rows + areas, areas, draft.sections.len(), draft.categories.len()]
        };
        let most = [MAX_OBJECTS, MAX_AREAS_PER_SHOW, MAX_SECTIONS, MAX_CATEGORIES];
        if (0..most.len()).any(|of| counts(self)[of] > most[of].max(counts(before)[of])) {
            return Err(CommandError::TooMany);
        }
        let is_in_range = |value: f64| value.is_finite() && value.abs() <= MAX_COORDINATE;
        let is_place = |[x, y]: DrawingPoint| is_in_range(x) && is_in_range(y);
        let Focus { at, width, .. } = self.focus;
        let mut is_valid = is_place(at) && is_in_range(width) && width > 0.0;
        for row in &self.rows {
            let reach = row.half() + row.bow.abs();
            is_valid &=
                is_place(row.at) && row.turn.is_finite() && is_in_range(reach + row.at[0].abs().max(row.at[1].abs()));
        }
        for area in &self.areas {
            let corners = area.outline.corners();
            is_valid &= is_place(area.at) && corners.iter().all(|corner| is_place(add(area.at, *corner)));
            is_valid &= (3..=MAX_CORNERS).contains(&corners.len());
            if let Outline::Rectangle([width, depth]) = area.outline {
                is_valid &= width > 0.0 && depth > 0.0;
            }
            if !(1..=MAX_AREA_CAPACITY).contains(&area.capacity) {
                return Err(CommandError::Capacity);
            }
        }
        is_valid.then_some(()).ok_or(CommandError::OutOfBounds)
    }
}

/// Returns the name without surrounding white space, if it is valid.
pub(super) fn valid_name(text: &str) -> Result<String, CommandError> {
    let name = text.trim();
    let is_readable = !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.contains(char::is_control);
    is_readable.then(|| name.to_owned()).ok_or(CommandError::NoName)
}

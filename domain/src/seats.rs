//! Indices and states of seats and areas in a show, and the limits of a hold.

use serde::{Deserialize, Serialize};

use crate::time::{MINUTE_MS, SECOND_MS};

/// A seat of a show: its index in the dense numbering 0..N along the rows of the layout.
pub type SeatIndex = u32;

/// An area of a show: its index among the areas of the layout.
pub type AreaIndex = u16;

/// A number of places in an area without numbered seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Places {
    /// The area.
    pub area: AreaIndex,
    /// Number of places, at least 1.
    pub count: u32,
}

/// Maximum number of seats in a hold, and therefore in a booking.
pub const MAX_SEATS_PER_HOLD: usize = 10;
/// Maximum number of seats that one person may hold and own in one show.
pub const MAX_SEATS_PER_PERSON: usize = 10;
/// Maximum number of areas in a show.
pub const MAX_AREAS_PER_SHOW: usize = 64;
/// Maximum number of seats in a show. A seat index fits in 17 bits in every encoding.
pub const MAX_SEATS_PER_SHOW: usize = 100_000;

/// Default duration of a hold, milliseconds. The organiser of a show may change it.
pub const DEFAULT_HOLD_MS: i64 = 5 * MINUTE_MS;
/// Maximum total extension of a hold on the owner's request, milliseconds. It excludes the extension for a payment.
pub const HOLD_EXTENSION_MS: i64 = 3 * MINUTE_MS;
/// Duration of a hold in a flash sale, milliseconds. It cannot be extended.
pub const FLASH_HOLD_MS: i64 = 90 * SECOND_MS;

/// Current state of a seat: one byte in Redis, two bits in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[repr(u8)]
pub enum SeatState {
    /// Free.
    #[default]
    Available = 0,
    /// In a hold; free again when it ends.
    Locked = 1,
    /// Sold.
    Booked = 2,
    /// A house seat: not for sale.
    Blocked = 3,
}

impl SeatState {
    /// Parses a byte of the map; `None` for an undefined value.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Available,
            1 => Self::Locked,
            2 => Self::Booked,
            3 => Self::Blocked,
            _ => return None,
        })
    }
}

/// Sorts lines by seat number within each row, for display. Rows keep their order. [`SeatIndex`] follows the layout,
/// which numbers some rooms from the right: `C9, C8, C7`. `label` returns the display name of a line's seat.
pub fn sort_for_display<T>(lines: &mut [T], label: impl Fn(&T) -> &str) {
    for row in lines.chunk_by_mut(|one, other| row_and_number(label(one)).0 == row_and_number(label(other)).0) {
        row.sort_by_key(|line| row_and_number(label(line)).1);
    }
}

/// Splits a label: `C12` is seat 12 of row `C`. A label without a number at the end is a row by itself.
fn row_and_number(label: &str) -> (&str, u32) {
    let row = label.trim_end_matches(|c: char| c.is_ascii_digit());
    (row, label[row.len()..].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_read<'a>(labels: &[&'a str]) -> Vec<&'a str> {
        let mut labels = labels.to_vec();
        sort_for_display(&mut labels, |label| label);
        labels
    }

    #[test]
    fn seats_are_sorted_by_number_in_a_room_numbered_from_the_right() {
        assert_eq!(as_read(&["C10", "C9", "C8"]), ["C8", "C9", "C10"]);
        assert_eq!(as_read(&["C7", "C8"]), ["C7", "C8"]);
        assert_eq!(as_read(&["9-12", "9-3", "10-2", "10-1"]), ["9-3", "9-12", "10-1", "10-2"]);
    }

    #[test]
    fn rows_keep_their_order() {
        let room = ["Stalls Z2", "Stalls Z1", "Stalls AA2", "Stalls AA1", "Circle A4", "Circle A3", "Box"];
        let read = ["Stalls Z1", "Stalls Z2", "Stalls AA1", "Stalls AA2", "Circle A3", "Circle A4", "Box"];
        assert_eq!(as_read(&room), read);
    }
}

//! A seat inside a show, and what anyone may see of its state.

use serde::{Deserialize, Serialize};

use crate::time::{MINUTE_MS, SECOND_MS};

/// A seat of a show: its position in the dense numbering 0..N along the rows of the layout.
pub type SeatIndex = u32;

/// A general-admission area of a show: its position among the areas of the layout.
pub type AreaIndex = u16;

/// Places in an area where nobody has a seat of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Places {
    /// The area.
    pub area: AreaIndex,
    /// How many; at least one.
    pub count: u32,
}

/// The most seats one hold, and so one booking, may have.
pub const MAX_SEATS_PER_HOLD: usize = 10;
/// The most seats one person may hold and own in one show.
pub const MAX_SEATS_PER_PERSON: usize = 10;
/// The most areas a show may have.
pub const MAX_AREAS_PER_SHOW: usize = 64;
/// The most seats a show may have; a seat number fits in 17 bits on every wire.
pub const MAX_SEATS_PER_SHOW: usize = 100_000;

/// How long a hold lasts in a show whose organiser wants it no other way, milliseconds.
pub const USUAL_HOLD_MS: i64 = 5 * MINUTE_MS;
/// How much longer a hold may last when its owner asks, milliseconds, in all; payments aside.
pub const HOLD_EXTENSION_MS: i64 = 3 * MINUTE_MS;
/// How long a hold lasts in a flash sale, milliseconds; it cannot be extended.
pub const FLASH_HOLD_MS: i64 = 90 * SECOND_MS;

/// What a seat is doing right now: the byte in Redis, two bits in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[repr(u8)]
pub enum SeatState {
    /// Anyone may take it.
    #[default]
    Available = 0,
    /// In somebody's hold; back when that ends.
    Locked = 1,
    /// Sold.
    Booked = 2,
    /// A house seat: not for sale.
    Blocked = 3,
}

impl SeatState {
    /// The state a byte of the map stands for; `None` for a byte nobody should have written.
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

/// Puts what is listed of seats in the order in which a person reads it: row by row as they come, in each by the number of
/// the seat. It comes in the order of [`SeatIndex`], along the rows, which in some rooms is from the right: `C9, C8, C7`.
/// `label` is a seat's name for people.
pub fn put_as_read<T>(lines: &mut [T], label: impl Fn(&T) -> &str) {
    for row in lines.chunk_by_mut(|one, other| row_and_number(label(one)).0 == row_and_number(label(other)).0) {
        row.sort_by_key(|line| row_and_number(label(line)).1);
    }
}

/// `C12` is seat 12 of row `C`; a name without a number at its end is a row of its own.
fn row_and_number(label: &str) -> (&str, u32) {
    let row = label.trim_end_matches(|c: char| c.is_ascii_digit());
    (row, label[row.len()..].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_read<'a>(labels: &[&'a str]) -> Vec<&'a str> {
        let mut labels = labels.to_vec();
        put_as_read(&mut labels, |label| label);
        labels
    }

    #[test]
    fn seats_are_read_by_number_in_a_room_that_counts_from_the_right() {
        assert_eq!(as_read(&["C10", "C9", "C8"]), ["C8", "C9", "C10"]);
        assert_eq!(as_read(&["C7", "C8"]), ["C7", "C8"]);
        assert_eq!(as_read(&["9-12", "9-3", "10-2", "10-1"]), ["9-3", "9-12", "10-1", "10-2"]);
    }

    #[test]
    fn rows_stay_in_the_order_of_the_room() {
        let room = ["Stalls Z2", "Stalls Z1", "Stalls AA2", "Stalls AA1", "Circle A4", "Circle A3", "Box"];
        let read = ["Stalls Z1", "Stalls Z2", "Stalls AA1", "Stalls AA2", "Circle A3", "Circle A4", "Box"];
        assert_eq!(as_read(&room), read);
    }
}

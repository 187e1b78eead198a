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

//! Binary frames of the live seat map (`GET /api/v1/shows/{id}/live`).
//!
//! Every frame starts with a byte for its kind. Integers are LEB128 varints (seven bits per byte, low bits first).
//! `docs/api.md` describes the same encoding, and a test compares its examples with this code. [`ClientMessage`] is the only
//! message that clients send.
//!
//! Decoders treat input as hostile: every length is checked against the room before it is used.

mod client_message;
mod dots;
mod frame;
mod seat_map;

pub use client_message::{ClientMessage, MAX_SECTIONS_PER_READER};
pub use dots::{Dot, decode_dots, encode_dots};
pub use frame::{Frame, OwnHold};
pub use seat_map::{apply_changes, decode_map, encode_changes, encode_map};

use crate::seats::{SeatIndex, SeatState};

/// A new state of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatChange {
    /// The seat.
    pub seat: SeatIndex,
    /// Its new state.
    pub state: SeatState,
}

/// Maximum length of a client's message, bytes. The longest [`ClientMessage`] has one byte, and three for each section.
pub const MAX_INBOUND_FRAME_BYTES: usize = 64;

/// Reason why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The input is truncated.
    #[error("the frame is cut off")]
    CutOff,
    /// A varint has more than 64 bits.
    #[error("a number is too long")]
    NumberTooLong,
    /// The kind or encoding is undefined.
    #[error("unknown kind or encoding {0}")]
    Unknown(u8),
    /// A seat or count exceeds the room or the limit of a frame.
    #[error("a seat lies outside the room")]
    OutsideRoom,
    /// A list is not sorted or has duplicates.
    #[error("a list is out of order")]
    OutOfOrder,
    /// The input has bytes after its end.
    #[error("the frame has bytes after its end")]
    TooLong,
}

/// Appends `value`, seven bits per byte, low bits first. The high bit is set if more bytes follow.
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The unread rest of a frame.
struct Cursor<'a>(pub &'a [u8]);

impl Cursor<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        let (first, rest) = self.0.split_first().ok_or(WireError::CutOff)?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::CutOff)?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(WireError::NumberTooLong);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::NumberTooLong)
    }

    fn end(&self) -> Result<(), WireError> {
        if self.is_empty() { Ok(()) } else { Err(WireError::TooLong) }
    }
}

//! The binary frames of the live seat map (`GET /api/v1/shows/{id}/live`).
//!
//! Every frame starts with a byte for its kind; integers are LEB128 varints (seven bits a byte, low
//! bits first). docs/api.md describes the same bytes, and a test compares the examples there with
//! what this code writes. The one thing a client may say is [`Ask`].
//!
//! A reader treats input as hostile: every length is checked against the room before it is believed.

mod ask;
mod dots;
mod frame;
mod seat_map;
mod varint;

pub use ask::{Ask, MAX_SECTIONS_PER_READER};
pub use dots::{Dot, decode_dots, encode_dots};
pub use frame::{Frame, Mine};
pub use seat_map::{apply_changes, decode_map, encode_changes, encode_map};

use crate::seats::{SeatIndex, SeatState};

/// One seat's new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The seat.
    pub seat: SeatIndex,
    /// What it is now.
    pub state: SeatState,
}

/// A client never has anything to say that is longer than this, bytes: an [`Ask`] of the most sections
/// is a byte and three for each.
pub const MAX_INBOUND_FRAME_BYTES: usize = 64;

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end in the middle.
    #[error("the frame is cut off")]
    CutOff,
    /// A varint of more than 64 bits.
    #[error("a number is too long")]
    NumberTooLong,
    /// A kind or encoding nobody defined.
    #[error("unknown kind or encoding {0}")]
    Unknown(u8),
    /// A seat or count beyond the room, or beyond what a frame may carry.
    #[error("a seat lies outside the room")]
    OutsideRoom,
    /// A list that should be sorted, each once, is not.
    #[error("a list is out of order")]
    OutOfOrder,
    /// Bytes after the end.
    #[error("the frame has bytes after its end")]
    TooLong,
}

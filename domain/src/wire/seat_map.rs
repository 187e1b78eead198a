//! Encoding of a whole map and of changes to it.

use super::{Cursor, SeatChange, WireError, put};
use crate::seats::{MAX_SEATS_PER_SHOW, SeatIndex, SeatState};

/// Encoding with four seats per byte, the first in the lowest bits.
const PACKED: u8 = 0;
/// Encoding with runs of seats of the same state, each as `(length << 2 | state)`.
const RUNS: u8 = 1;

/// Appends a map in the shorter of the two encodings. Empty and sold-out rooms take a few bytes of runs; the worst case
/// is a quarter of a byte per seat.
pub fn encode_map(out: &mut Vec<u8>, map: &[SeatState]) {
    put(out, map.len() as u64);
    let start = out.len();
    out.push(RUNS);
    let packed_length = map.len().div_ceil(4);
    for run in map.chunk_by(|a, b| a == b) {
        put(out, (run.len() as u64) << 2 | run[0] as u64);
        if out.len() - start > packed_length {
            out.truncate(start);
            encode_packed(out, map);
            return;
        }
    }
}

fn encode_packed(out: &mut Vec<u8>, map: &[SeatState]) {
    out.push(PACKED);
    out.extend(
        map.chunks(4).map(|four| {
            four.iter().enumerate().fold(0_u8, |byte, (place, state)| byte | (*state as u8) << (2 * place))
        }),
    );
}

/// Decodes a map from the rest of a frame.
///
/// # Errors
/// [`WireError`] if the input is truncated or too long, or if its parts do not add up to its count.
pub fn decode_map(bytes: &[u8]) -> Result<Vec<SeatState>, WireError> {
    let mut cursor = Cursor(bytes);
    let count = usize::try_from(cursor.number()?).map_err(|_| WireError::OutsideRoom)?;
    if count > MAX_SEATS_PER_SHOW {
        return Err(WireError::OutsideRoom);
    }
    let mut map = Vec::with_capacity(count);
    match cursor.byte()? {
        PACKED => {
            for place in 0..count {
                let byte = *cursor.0.get(place / 4).ok_or(WireError::CutOff)?;
                map.push(state_of(u64::from(byte >> (2 * (place % 4)))));
            }
            if cursor.0.len() != count.div_ceil(4) {
                return Err(WireError::TooLong);
            }
        }
        RUNS => {
            while map.len() < count {
                let run = cursor.number()?;
                let length = usize::try_from(run >> 2).map_err(|_| WireError::OutsideRoom)?;
                if length == 0 || length > count - map.len() {
                    return Err(WireError::OutsideRoom);
                }
                map.resize(map.len() + length, state_of(run));
            }
            cursor.end()?;
        }
        other => return Err(WireError::Unknown(other)),
    }
    Ok(map)
}

/// Appends changes as `(gap << 2 | state)` each, where the gap is the number of unchanged seats since the last change.
/// `changes` must be sorted by seat, each seat once.
pub fn encode_changes(out: &mut Vec<u8>, changes: &[SeatChange]) {
    let mut next: SeatIndex = 0;
    for change in changes {
        debug_assert!(change.seat >= next, "changes are sorted, each seat once");
        put(out, u64::from(change.seat - next) << 2 | change.state as u64);
        next = change.seat + 1;
    }
}

/// Decodes changes from the rest of a frame and passes each to `apply`; `seats` is the size of the room.
///
/// # Errors
/// [`WireError`] at the first change that is truncated or outside the room. Earlier changes were applied, so the caller
/// must request a snapshot.
pub fn apply_changes(bytes: &[u8], seats: u32, mut apply: impl FnMut(SeatChange)) -> Result<(), WireError> {
    let mut cursor = Cursor(bytes);
    let mut next = 0_u64;
    while !cursor.is_empty() {
        let number = cursor.number()?;
        let seat = next.checked_add(number >> 2).ok_or(WireError::OutsideRoom)?;
        let index = SeatIndex::try_from(seat).map_err(|_| WireError::OutsideRoom)?;
        if index >= seats {
            return Err(WireError::OutsideRoom);
        }
        apply(SeatChange { seat: index, state: state_of(number) });
        next = seat + 1;
    }
    Ok(())
}

fn state_of(low_two_bits: u64) -> SeatState {
    match low_two_bits & 3 {
        0 => SeatState::Available,
        1 => SeatState::Locked,
        2 => SeatState::Booked,
        _ => SeatState::Blocked,
    }
}

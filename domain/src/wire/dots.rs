//! Positions of all seats in a large room, to draw it as a whole (`GET /shows/{id}/dots`).
//!
//! Rows have equal steps, so the encoding contains the step from seat to seat: two bytes per seat, which compress to a
//! tenth. Names and prices are not included; they are loaded per section.

use super::{Cursor, WireError, put};

/// A seat as a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dot {
    /// Centre, plan units from the left.
    pub x: i32,
    /// Centre, plan units from the top.
    pub y: i32,
    /// Index of its category.
    pub category: u8,
}

/// Encodes the dots of a room in seat order. The encoding is a sequence of runs of one category. A run is the category
/// as a byte, its length as a varint, and for each seat the steps right and down from the previous seat (the first from
/// the origin) as zigzag varints.
#[must_use]
pub fn encode_dots(dots: &[Dot]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * dots.len() + 16);
    let (mut x, mut y) = (0, 0);
    for run in dots.chunk_by(|one, next| one.category == next.category) {
        out.push(run[0].category);
        put(&mut out, run.len() as u64);
        for dot in run {
            put(&mut out, zigzag(dot.x - x));
            put(&mut out, zigzag(dot.y - y));
            (x, y) = (dot.x, dot.y);
        }
    }
    out
}

/// Decodes the dots of a room with `seats` seats.
///
/// # Errors
/// [`WireError`] if the number of dots differs or the input is truncated.
pub fn decode_dots(bytes: &[u8], seats: u32) -> Result<Vec<Dot>, WireError> {
    let mut cursor = Cursor(bytes);
    let mut dots = Vec::with_capacity(seats as usize);
    let (mut x, mut y) = (0_i32, 0_i32);
    while !cursor.is_empty() {
        let category = cursor.byte()?;
        let length = cursor.number()?;
        if length == 0 || length > u64::from(seats) - dots.len() as u64 {
            return Err(WireError::OutsideRoom);
        }
        for _ in 0..length {
            x = x.wrapping_add(step(&mut cursor)?);
            y = y.wrapping_add(step(&mut cursor)?);
            dots.push(Dot { x, y, category });
        }
    }
    if dots.len() == seats as usize { Ok(dots) } else { Err(WireError::CutOff) }
}

fn zigzag(step: i32) -> u64 {
    u64::from(((step << 1) ^ (step >> 31)) as u32)
}

fn step(cursor: &mut Cursor<'_>) -> Result<i32, WireError> {
    let number = u32::try_from(cursor.number()?).map_err(|_| WireError::NumberTooLong)?;
    Ok((number >> 1) as i32 ^ -((number & 1) as i32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_dot() -> impl Strategy<Value = Dot> {
        (-100_000..100_000, -100_000..100_000, 0..4_u8).prop_map(|(x, y, category)| Dot { x, y, category })
    }

    proptest! {
        #[test]
        fn round_trip(dots in proptest::collection::vec(any_dot(), 0..200)) {
            let seats = u32::try_from(dots.len()).expect("few");
            prop_assert_eq!(decode_dots(&encode_dots(&dots), seats), Ok(dots));
        }

        #[test]
        fn garbage_is_refused_or_has_the_right_length(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(dots) = decode_dots(&bytes, 20) {
                prop_assert_eq!(dots.len(), 20);
            }
        }
    }

    #[test]
    fn documented_example_matches() {
        let dots =
            [Dot { x: 40, y: 30, category: 0 }, Dot { x: 60, y: 30, category: 0 }, Dot { x: 40, y: 50, category: 2 }];
        assert_eq!(encode_dots(&dots), [0, 2, 80, 60, 40, 0, 2, 1, 39, 40]);
        assert!(include_str!("../../../docs/api.md").contains("`00 02 50 3c 28 00 02 01 27 28`"));
        assert_eq!(decode_dots(&[0, 2, 80, 60], 2), Err(WireError::CutOff));
        assert_eq!(decode_dots(&[0, 2, 80, 60, 40, 0], 3), Err(WireError::CutOff), "one is missing");
        assert_eq!(decode_dots(&[0, 2, 80, 60, 40, 0], 1), Err(WireError::OutsideRoom), "one too many");
    }
}

//! LEB128 varints and a cursor that cannot read past the end.

use super::WireError;

/// Appends `value`, seven bits per byte, low bits first. The high bit is set if more bytes follow.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The unread rest of a frame.
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl Cursor<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, WireError> {
        let (first, rest) = self.0.split_first().ok_or(WireError::CutOff)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::CutOff)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn number(&mut self) -> Result<u64, WireError> {
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

    pub(super) fn end(&self) -> Result<(), WireError> {
        if self.is_empty() { Ok(()) } else { Err(WireError::TooLong) }
    }
}

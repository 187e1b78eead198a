//! The binary frames of the live map, read as docs/api.md describes them.

/// A decoded frame header. The version counts changes; the epoch changes when the map was rebuilt. A delta has the changes
/// between two versions, encoded for [`changes`]. Other kinds are the reader's own holds, areas, queues, drain notices.
#[derive(Debug, PartialEq, Eq)]
pub enum LiveFrame<'a> {
    Snapshot { epoch: u64, version: u64, map: EncodedMap<'a> },
    Delta { from: u64, to: u64, changes: &'a [u8] },
    Other(u8),
}

/// The seat states of a snapshot frame, not yet decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct EncodedMap<'a> {
    seats: usize,
    encoding: u8,
    bytes: &'a [u8],
}

const MAX_SEATS: u64 = 100_000;

/// Decodes the header of a frame; `None` when it is malformed.
pub fn read(bytes: &[u8]) -> Option<LiveFrame<'_>> {
    let (kind, mut rest) = bytes.split_first()?;
    match kind {
        1 => {
            let (epoch, version, _now) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
            let seats = usize::try_from(number(&mut rest).filter(|seats| *seats <= MAX_SEATS)?).ok()?;
            let (encoding, bytes) = rest.split_first()?;
            Some(LiveFrame::Snapshot { epoch, version, map: EncodedMap { seats, encoding: *encoding, bytes } })
        }
        2 => Some(LiveFrame::Delta { from: number(&mut rest)?, to: number(&mut rest)?, changes: rest }),
        other => Some(LiveFrame::Other(*other)),
    }
}

impl EncodedMap<'_> {
    /// Decodes one byte per seat; `None` when the lengths do not match.
    pub fn decode(&self) -> Option<Vec<u8>> {
        let mut map = Vec::with_capacity(self.seats);
        let mut rest = self.bytes;
        match self.encoding {
            0 => {
                let fours = rest.iter().flat_map(|byte| [0, 2, 4, 6].map(|shift| byte >> shift & 3));
                map.extend(fours.take(self.seats));
                rest = rest.get(self.seats.div_ceil(4)..)?;
            }
            1 => {
                while map.len() < self.seats {
                    let run = number(&mut rest)?;
                    let length = usize::try_from(run >> 2).ok()?;
                    if length == 0 || length > self.seats - map.len() {
                        return None;
                    }
                    map.resize(map.len() + length, (run & 3) as u8);
                }
            }
            _ => return None,
        }
        (map.len() == self.seats && rest.is_empty()).then_some(map)
    }
}

/// Calls `each` with every change (seat, state) of a delta. Returns their number, or `None` when the
/// bytes are malformed.
pub fn changes(mut bytes: &[u8], mut each: impl FnMut(u32, u8)) -> Option<u64> {
    let (mut next, mut count) = (0_u64, 0);
    while !bytes.is_empty() {
        let word = number(&mut bytes)?;
        let seat = next.checked_add(word >> 2).filter(|seat| *seat < MAX_SEATS)?;
        each(seat as u32, (word & 3) as u8);
        next = seat + 1;
        count += 1;
    }
    Some(count)
}

/// Reads a LEB128 number: seven bits per byte, low bits first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of an example in docs/api.md, by the start of its description.
    fn example(description: &str) -> Vec<u8> {
        let document = include_str!("../../docs/api.md");
        let line =
            document.lines().find(|line| line.starts_with(&format!("| {description}"))).expect("the example is there");
        let hex = line.split('`').nth(1).expect("its bytes");
        hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
    }

    #[test]
    fn both_documented_snapshot_encodings_decode() {
        let decoded = |description: &str| match read(&example(description)) {
            Some(LiveFrame::Snapshot { epoch, version, map }) => (epoch, version, map.decode().expect("a map")),
            other => panic!("{other:?}"),
        };
        assert_eq!(decoded("SNAPSHOT epoch 7, version 300"), (7, 300, vec![0; 300]));
        assert_eq!(decoded("SNAPSHOT epoch 7, version 301"), (7, 301, vec![0, 1, 2, 3]));
    }

    #[test]
    fn the_documented_delta_decodes_to_its_changes() {
        let bytes = example("DELTA from 300 to 302");
        let Some(LiveFrame::Delta { from, to, changes: rest }) = read(&bytes) else { panic!("no delta") };
        let mut seen = Vec::new();
        assert_eq!(changes(rest, |seat, state| seen.push((seat, state))), Some(3));
        assert_eq!((from, to, seen), (300, 302, vec![(46, 1), (47, 0), (250, 2)]));
        assert_eq!(read(&example("MINE now 1000")), Some(LiveFrame::Other(3)));
        assert_eq!(read(&example("DRAIN")), Some(LiveFrame::Other(6)));
    }

    #[test]
    fn truncated_and_overlong_frames_are_rejected() {
        let whole = example("SNAPSHOT epoch 7, version 301");
        let map = |bytes: &[u8]| match read(bytes) {
            Some(LiveFrame::Snapshot { map, .. }) => map.decode(),
            _ => None,
        };
        for cut in 0..whole.len() {
            assert_eq!(map(&whole[..cut]), None, "after {cut} bytes");
        }
        assert_eq!(map(&[&whole[..], &[0]].concat()), None);
        assert_eq!(changes(&[0x80], |_, _| ()), None);
        assert_eq!(read(&[]), None);
    }
}

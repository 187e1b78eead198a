//! The messages of a live map: the server's binary frames, read as docs/api.md describes them, the JSON of the baseline in
//! `live`, and that of a peer.

use serde_json::Value;

const MAX_SEATS: u64 = 100_000;

/// A decoded message.
#[derive(Debug, PartialEq, Eq)]
pub enum MapMessage {
    /// The whole map, a byte per seat. The version counts changes; the epoch changes when the map was rebuilt.
    Snapshot { epoch: u64, version: u64, map: Vec<u8> },
    /// The changes (seat, state) from one version to another.
    Delta { from: u64, to: u64, changes: Vec<(u32, u8)> },
    /// Changes (seat, state) without a version.
    Event { changes: Vec<(u32, u8)> },
    /// Any other kind: the reader's own holds, areas, queues, drain notices.
    Other(u8),
}

impl MapMessage {
    /// Applies the message to a reader's map.
    pub fn apply(&self, map: &mut Vec<u8>) {
        match self {
            Self::Snapshot { map: whole, .. } => map.clone_from(whole),
            Self::Delta { changes, .. } | Self::Event { changes } => {
                for (seat, state) in changes {
                    if let Some(place) = map.get_mut(*seat as usize) {
                        *place = *state;
                    }
                }
            }
            Self::Other(_) => {}
        }
    }
}

/// A protocol of the live map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The server's binary frames.
    Frames,
    /// The baseline's JSON: first the map, then a text per change.
    Json,
    /// The JSON of the peer `seed-node`: a text per change, without a map and versions.
    SeedNode,
}

impl Protocol {
    /// Decodes a message; `None` when it is malformed.
    pub fn read(self, bytes: &[u8]) -> Option<MapMessage> {
        match self {
            Self::Frames => read_frame(bytes),
            Self::Json => read_json(bytes),
            Self::SeedNode => crate::peer::read_event(bytes),
        }
    }
}

fn read_frame(bytes: &[u8]) -> Option<MapMessage> {
    let (kind, mut rest) = bytes.split_first()?;
    match kind {
        1 => {
            let (epoch, version, _now) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
            let seats = usize::try_from(number(&mut rest).filter(|seats| *seats <= MAX_SEATS)?).ok()?;
            let (encoding, states) = rest.split_first()?;
            Some(MapMessage::Snapshot { epoch, version, map: decode_map(*encoding, states, seats)? })
        }
        2 => Some(MapMessage::Delta { from: number(&mut rest)?, to: number(&mut rest)?, changes: changes(rest)? }),
        other => Some(MapMessage::Other(*other)),
    }
}

fn read_json(bytes: &[u8]) -> Option<MapMessage> {
    let text: Value = serde_json::from_slice(bytes).ok()?;
    let version = text["version"].as_u64()?;
    if let Some(digits) = text["states"].as_str() {
        let map = digits.bytes().map(|digit| digit.wrapping_sub(b'0')).collect();
        return Some(MapMessage::Snapshot { epoch: 0, version, map });
    }
    let change = (text["seat"].as_u64()? as u32, text["state"].as_u64()? as u8);
    Some(MapMessage::Delta { from: version.checked_sub(1)?, to: version, changes: vec![change] })
}

/// Decodes one byte per seat; `None` when the lengths do not match.
fn decode_map(encoding: u8, mut bytes: &[u8], seats: usize) -> Option<Vec<u8>> {
    let mut map = Vec::with_capacity(seats);
    match encoding {
        0 => {
            let fours = bytes.iter().flat_map(|byte| [0, 2, 4, 6].map(|shift| byte >> shift & 3));
            map.extend(fours.take(seats));
            bytes = bytes.get(seats.div_ceil(4)..)?;
        }
        1 => {
            while map.len() < seats {
                let run = number(&mut bytes)?;
                let length = usize::try_from(run >> 2).ok()?;
                if length == 0 || length > seats - map.len() {
                    return None;
                }
                map.resize(map.len() + length, (run & 3) as u8);
            }
        }
        _ => return None,
    }
    (map.len() == seats && bytes.is_empty()).then_some(map)
}

/// Decodes the changes (seat, state) of a delta; `None` when the bytes are malformed.
fn changes(mut bytes: &[u8]) -> Option<Vec<(u32, u8)>> {
    let (mut next, mut changes) = (0_u64, Vec::new());
    while !bytes.is_empty() {
        let word = number(&mut bytes)?;
        let seat = next.checked_add(word >> 2).filter(|seat| *seat < MAX_SEATS)?;
        changes.push((seat as u32, (word & 3) as u8));
        next = seat + 1;
    }
    Some(changes)
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
        let decoded = |description: &str| Protocol::Frames.read(&example(description));
        let snapshot = |version, map| Some(MapMessage::Snapshot { epoch: 7, version, map });
        assert_eq!(decoded("SNAPSHOT epoch 7, version 300"), snapshot(300, vec![0; 300]));
        assert_eq!(decoded("SNAPSHOT epoch 7, version 301"), snapshot(301, vec![0, 1, 2, 3]));
    }

    #[test]
    fn the_documented_delta_decodes_to_its_changes() {
        let read = |description: &str| Protocol::Frames.read(&example(description));
        let Some(MapMessage::Delta { from, to, changes }) = read("DELTA from 300 to 302") else { panic!("no delta") };
        assert_eq!(changes.len(), 3);
        assert_eq!((from, to, changes), (300, 302, vec![(46, 1), (47, 0), (250, 2)]));
        assert_eq!(read("MINE now 1000"), Some(MapMessage::Other(3)));
        assert_eq!(read("DRAIN"), Some(MapMessage::Other(6)));
    }

    #[test]
    fn truncated_and_overlong_frames_are_rejected() {
        let whole = example("SNAPSHOT epoch 7, version 301");
        for cut in 0..whole.len() {
            assert_eq!(Protocol::Frames.read(&whole[..cut]), None, "after {cut} bytes");
        }
        assert_eq!(Protocol::Frames.read(&[&whole[..], &[0]].concat()), None);
        assert_eq!(changes(&[0x80]), None);
        assert_eq!(Protocol::Frames.read(&[]), None);
    }

    #[test]
    fn both_protocols_yield_the_same_map() {
        let json: [&[u8]; 3] = [
            br#"{"version":300,"states":"0000"}"#,
            br#"{"version":301,"seat":1,"state":1}"#,
            br#"{"version":302,"seat":3,"state":2}"#,
        ];
        // SNAPSHOT of four free seats at version 300, then a DELTA: seat 1 locked, seat 3 booked.
        let frames: [&[u8]; 2] = [&[1, 7, 0xac, 2, 0, 4, 1, 0x10], &[2, 0xac, 2, 0xae, 2, 1 << 2 | 1, 1 << 2 | 2]];
        let read = |protocol: Protocol, messages: &[&[u8]]| {
            let messages: Vec<_> = messages.iter().map(|bytes| protocol.read(bytes).expect("readable")).collect();
            let mut map = Vec::new();
            messages.iter().for_each(|message| message.apply(&mut map));
            let Some(MapMessage::Delta { from, to, .. }) = messages.last() else { panic!("no delta") };
            ((*from, *to), map)
        };
        assert_eq!(read(Protocol::Json, &json), ((301, 302), vec![0, 1, 0, 2]));
        assert_eq!(read(Protocol::Frames, &frames), ((300, 302), vec![0, 1, 0, 2]));
        assert_eq!(Protocol::Frames.read(&[3, 0]), Some(MapMessage::Other(3)));
        assert_eq!(Protocol::Json.read(b"{}"), None);
    }
}

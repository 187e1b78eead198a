//! The two protocols of a live map: the server's binary frames and the baseline's JSON.

use crate::frame::{self, LiveFrame};

/// A protocol of the live map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The server's binary frames.
    Frames,
    /// The baseline's JSON: first the map, then a text per change.
    Json,
}

/// The kind of a message, with its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Other,
    Snapshot { version: u64 },
    Delta { from: u64, to: u64 },
}

impl Protocol {
    /// Parses the kind of a message; `None` when it is malformed.
    pub fn kind(self, bytes: &[u8]) -> Option<MessageKind> {
        match self {
            Self::Frames => Some(match frame::read(bytes)? {
                LiveFrame::Snapshot { version, .. } => MessageKind::Snapshot { version },
                LiveFrame::Delta { from, to, .. } => MessageKind::Delta { from, to },
                LiveFrame::Other(_) => MessageKind::Other,
            }),
            Self::Json => {
                let text = serde_json::from_slice::<serde_json::Value>(bytes).ok()?;
                let version = text["version"].as_u64()?;
                if text["states"].is_string() {
                    return Some(MessageKind::Snapshot { version });
                }
                Some(MessageKind::Delta { from: version.checked_sub(1)?, to: version })
            }
        }
    }

    /// Calls `each` with every change (seat, state) of a message. A snapshot has none.
    pub fn changes(self, bytes: &[u8], mut each: impl FnMut(u32, u8)) {
        match self {
            Self::Frames => {
                if let Some(LiveFrame::Delta { changes, .. }) = frame::read(bytes) {
                    frame::changes(changes, each);
                }
            }
            Self::Json => {
                let (seat, state) =
                    (crate::http::number_after(bytes, "seat"), crate::http::number_after(bytes, "state"));
                if let Some((seat, state)) = seat.zip(state) {
                    each(seat as u32, state as u8);
                }
            }
        }
    }

    /// Applies a message to a reader's map; `None` when it is malformed.
    pub fn apply(self, bytes: &[u8], map: &mut Vec<u8>) -> Option<()> {
        match (self, self.kind(bytes)?) {
            (_, MessageKind::Other) => {}
            (Self::Frames, MessageKind::Snapshot { .. }) => {
                let LiveFrame::Snapshot { map: encoded, .. } = frame::read(bytes)? else { return None };
                *map = encoded.decode()?;
            }
            (Self::Json, MessageKind::Snapshot { .. }) => {
                let digits = crate::http::text_after(bytes, "states")?;
                *map = digits.bytes().map(|digit| digit.wrapping_sub(b'0')).collect();
            }
            (_, MessageKind::Delta { .. }) => {
                self.changes(bytes, |seat, state| {
                    if let Some(place) = map.get_mut(seat as usize) {
                        *place = state;
                    }
                });
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut map = Vec::new();
            messages.iter().for_each(|message| protocol.apply(message, &mut map).expect("readable"));
            (protocol.kind(messages.last().expect("some")), map)
        };
        assert_eq!(read(Protocol::Json, &json), (Some(MessageKind::Delta { from: 301, to: 302 }), vec![0, 1, 0, 2]));
        assert_eq!(
            read(Protocol::Frames, &frames),
            (Some(MessageKind::Delta { from: 300, to: 302 }), vec![0, 1, 0, 2])
        );
        assert_eq!(Protocol::Frames.kind(&[3, 0]), Some(MessageKind::Other));
        assert_eq!(Protocol::Json.kind(b"{}"), None);
    }
}

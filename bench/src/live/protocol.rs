//! The two languages a reader of the live map may be spoken to in.

use crate::frame::{self, Frame};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The server's binary frames.
    Frames,
    /// The baseline's JSON: a map first, then a text per change.
    Json,
}

/// What a message does to its reader's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing about seats.
    Nothing,
    /// The whole map at a version.
    Whole {
        /// That version.
        version: u64,
    },
    /// Changes from one version to another.
    Step {
        /// The version before.
        from: u64,
        /// The version after.
        to: u64,
    },
}

impl Protocol {
    /// What a message means; `None` when it cannot be read.
    pub fn meaning(self, bytes: &[u8]) -> Option<Meaning> {
        match self {
            Self::Frames => Some(match frame::read(bytes)? {
                Frame::Snapshot { version, .. } => Meaning::Whole { version },
                Frame::Delta { from, to, .. } => Meaning::Step { from, to },
                Frame::Other(_) => Meaning::Nothing,
            }),
            Self::Json => {
                let text = serde_json::from_slice::<serde_json::Value>(bytes).ok()?;
                let version = text["version"].as_u64()?;
                if text["states"].is_string() {
                    return Some(Meaning::Whole { version });
                }
                Some(Meaning::Step { from: version.checked_sub(1)?, to: version })
            }
        }
    }

    /// Hands every change (seat, state) of a message to `each`. A whole map has none.
    pub fn changes(self, bytes: &[u8], mut each: impl FnMut(u32, u8)) {
        match self {
            Self::Frames => {
                if let Some(Frame::Delta { changes, .. }) = frame::read(bytes) {
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

    /// Brings a reader's map up to date with a message; `None` when it cannot be read.
    pub fn apply(self, bytes: &[u8], map: &mut Vec<u8>) -> Option<()> {
        match (self, self.meaning(bytes)?) {
            (_, Meaning::Nothing) => {}
            (Self::Frames, Meaning::Whole { .. }) => {
                let Frame::Snapshot { map: encoded, .. } = frame::read(bytes)? else { return None };
                *map = encoded.decode()?;
            }
            (Self::Json, Meaning::Whole { .. }) => {
                let digits = crate::http::text_after(bytes, "states")?;
                *map = digits.bytes().map(|digit| digit.wrapping_sub(b'0')).collect();
            }
            (_, Meaning::Step { .. }) => {
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
    fn both_languages_tell_the_same_story() {
        let json: [&[u8]; 3] = [
            br#"{"version":300,"states":"0000"}"#,
            br#"{"version":301,"seat":1,"state":1}"#,
            br#"{"version":302,"seat":3,"state":2}"#,
        ];
        // SNAPSHOT of four free seats at version 300, DELTA from there: seat 1 locked, seat 3 booked.
        let frames: [&[u8]; 2] = [&[1, 7, 0xac, 2, 0, 4, 1, 0x10], &[2, 0xac, 2, 0xae, 2, 1 << 2 | 1, 1 << 2 | 2]];
        let read = |protocol: Protocol, messages: &[&[u8]]| {
            let mut map = Vec::new();
            messages.iter().for_each(|message| protocol.apply(message, &mut map).expect("readable"));
            (protocol.meaning(messages.last().expect("some")), map)
        };
        assert_eq!(read(Protocol::Json, &json), (Some(Meaning::Step { from: 301, to: 302 }), vec![0, 1, 0, 2]));
        assert_eq!(read(Protocol::Frames, &frames), (Some(Meaning::Step { from: 300, to: 302 }), vec![0, 1, 0, 2]));
        assert_eq!(Protocol::Frames.meaning(&[3, 0]), Some(Meaning::Nothing));
        assert_eq!(Protocol::Json.meaning(b"{}"), None);
    }
}

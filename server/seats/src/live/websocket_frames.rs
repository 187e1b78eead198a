//! Frames as they lie on the line, WebSocket header included: encoded once, then shared by all sockets.
//!
//! A server's frames carry no mask (RFC 6455, 5.1), so the same bytes are right for everyone.

use bytes::Bytes;
use domain::wire::Frame;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

/// One frame of ours, in a WebSocket frame.
pub(super) fn packed(frame: &Frame) -> Bytes {
    pack(OpCode::Data(Data::Binary), &frame.encode())
}

/// "Are you there?"
pub(super) fn ping() -> Bytes {
    pack(OpCode::Control(Control::Ping), &[])
}

/// The same question, and to somebody who has this version that nothing is new: the script of a page hears no ping, and
/// takes a line on which nothing comes for a dead one.
pub(super) fn beat(version: Option<u64>) -> Bytes {
    let nothing_new = |version| packed(&Frame::Delta { from: version, to: version, changes: Vec::new() });
    version.map_or_else(ping, |version| [ping(), nothing_new(version)].concat().into())
}

/// "Yes, I am": repeats what was asked, at most 125 bytes.
pub(super) fn pong(asked: &[u8]) -> Bytes {
    pack(OpCode::Control(Control::Pong), asked)
}

/// Goodbye, with a reason of at most 123 bytes.
pub(super) fn close(code: CloseCode, reason: &str) -> Bytes {
    let payload = [&u16::from(code).to_be_bytes()[..], reason.as_bytes()].concat();
    pack(OpCode::Control(Control::Close), &payload)
}

fn pack(opcode: OpCode, payload: &[u8]) -> Bytes {
    let header = FrameHeader { opcode, ..FrameHeader::default() };
    let length = payload.len() as u64;
    let mut out = Vec::with_capacity(header.len(length) + payload.len());
    header.format(length, &mut out).expect("a vector takes everything");
    out.extend_from_slice(payload);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_long_and_very_long_frames_say_their_length_as_the_standard_does() {
        let of = |length: usize| pack(OpCode::Data(Data::Binary), &vec![7; length]);
        assert_eq!(of(3)[..], [0x82, 3, 7, 7, 7]);
        assert_eq!(of(300)[..5], [0x82, 126, 1, 44, 7]);
        assert_eq!(of(70_000)[..11], [0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70, 7]);
    }

    #[test]
    fn control_frames_are_those_of_the_standard() {
        assert_eq!(ping()[..], [0x89, 0]);
        assert_eq!(beat(None), ping(), "to somebody who has no map yet");
        assert_eq!(pong(b"hi")[..], [0x8a, 2, b'h', b'i']);
        assert_eq!(close(CloseCode::Restart, "x")[..], [0x88, 3, 0x03, 0xf4, b'x']);
    }
}

//! WebSocket frames with header and payload: encoded once, then shared by all sockets.
//!
//! A server's frames carry no mask (RFC 6455, 5.1), so the same bytes serve every reader.

use bytes::Bytes;
use domain::wire::Frame;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

/// Encodes a frame of the live protocol as a binary WebSocket frame.
pub(super) fn encode(frame: &Frame) -> Bytes {
    with_header(OpCode::Data(Data::Binary), &frame.encode())
}

pub(super) fn ping() -> Bytes {
    with_header(OpCode::Control(Control::Ping), &[])
}

/// Encodes a ping, and for a reader with a map also an empty delta at its version. The script of a page does not see
/// pings, and treats a connection without messages as dead.
pub(super) fn heartbeat(version: Option<u64>) -> Bytes {
    let nothing_new = |version| encode(&Frame::Delta { from: version, to: version, changes: Vec::new() });
    version.map_or_else(ping, |version| [ping(), nothing_new(version)].concat().into())
}

/// Encodes a pong with the payload of the ping, at most 125 bytes.
pub(super) fn pong(asked: &[u8]) -> Bytes {
    with_header(OpCode::Control(Control::Pong), asked)
}

/// Encodes a close frame with a reason of at most 123 bytes.
pub(super) fn close(code: CloseCode, reason: &str) -> Bytes {
    let payload = [&u16::from(code).to_be_bytes()[..], reason.as_bytes()].concat();
    with_header(OpCode::Control(Control::Close), &payload)
}

fn with_header(opcode: OpCode, payload: &[u8]) -> Bytes {
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
    fn length_field_of_short_long_and_very_long_frames_follows_rfc_6455() {
        let of = |length: usize| with_header(OpCode::Data(Data::Binary), &vec![7; length]);
        assert_eq!(of(3)[..], [0x82, 3, 7, 7, 7]);
        assert_eq!(of(300)[..5], [0x82, 126, 1, 44, 7]);
        assert_eq!(of(70_000)[..11], [0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70, 7]);
    }

    #[test]
    fn control_frames_follow_rfc_6455() {
        assert_eq!(ping()[..], [0x89, 0]);
        assert_eq!(heartbeat(None), ping(), "a reader without a map gets the ping alone");
        assert_eq!(pong(b"hi")[..], [0x8a, 2, b'h', b'i']);
        assert_eq!(close(CloseCode::Restart, "x")[..], [0x88, 3, 0x03, 0xf4, b'x']);
    }
}

//! The server side of one WebSocket, made for ten thousand idle ones: it keeps no buffers.
//!
//! It writes shared bytes, one frame at a time. While the peer takes nothing, the state is that frame and
//! a position in it. It accepts messages of a few bytes and refuses longer ones. It also refuses fragmented messages:
//! no valid message of a reader needs two frames.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use domain::wire::MAX_INBOUND_FRAME_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

use super::websocket_frames;

/// Bytes per read, on the stack: more than the longest accepted message.
const READ_BYTES: usize = 512;
/// Maximum payload of a ping, pong or close frame, bytes (RFC 6455, 5.5).
const MAX_CONTROL_BYTES: u64 = 125;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConnectionEvent {
    /// Everything is written.
    Written,
    /// A ping or pong was received.
    PingOrPong,
    /// A message was received.
    Message(Vec<u8>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The connection is lost.
    Disconnected,
    /// The peer sent a close frame.
    Closed,
    /// The peer violated the protocol: code and reason of the close frame.
    ProtocolError(CloseCode, &'static str),
}

pub(super) struct LiveConnection<S> {
    stream: S,
    /// The unwritten rest of the current frame.
    out: Bytes,
    /// The pong, written between two frames. Only the last ping is answered, as RFC 6455 (5.5.3) allows, so this is
    /// one frame at most.
    pong: Bytes,
    /// The received beginning of a message.
    received: Vec<u8>,
    made_progress: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> LiveConnection<S> {
    /// Wraps a stream from which `received` was read already.
    pub(super) fn new(stream: S, received: &[u8]) -> Self {
        Self { stream, out: Bytes::new(), pong: Bytes::new(), received: received.to_vec(), made_progress: false }
    }

    pub(super) fn is_free(&self) -> bool {
        self.out.is_empty()
    }

    /// Starts to write a frame; requires [`Self::is_free`].
    pub(super) fn put(&mut self, frame: Bytes) {
        debug_assert!(self.is_free(), "one frame at a time");
        self.out = frame;
    }

    /// Returns true if bytes were written since the last call, and resets that.
    pub(super) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.made_progress)
    }

    /// Waits for the next event. Safe to cancel and call again.
    pub(super) async fn event(&mut self) -> Result<ConnectionEvent, ConnectionEnd> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Waits until everything is written and reads nothing; never returns if there is nothing to write. Safe to cancel
    /// and call again.
    pub(super) async fn written(&mut self) -> Result<ConnectionEvent, ConnectionEnd> {
        std::future::poll_fn(|cx| {
            if self.out.is_empty() && self.pong.is_empty() {
                return Poll::Pending;
            }
            ready!(self.poll_write(cx)).map_err(|_| ConnectionEnd::Disconnected)?;
            Poll::Ready(Ok(ConnectionEvent::Written))
        })
        .await
    }

    /// Writes the rest of the current frame and then `frames`, and shuts down the write side.
    pub(super) async fn finish(&mut self, frames: &[Bytes]) -> io::Result<()> {
        for frame in frames {
            std::future::poll_fn(|cx| self.poll_write(cx)).await?;
            self.put(frame.clone());
        }
        std::future::poll_fn(|cx| self.poll_write(cx)).await?;
        std::future::poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await
    }

    /// Reads until the peer closes: closing a socket with unread bytes would discard the close frame.
    pub(super) async fn drain(&mut self) {
        while matches!(std::future::poll_fn(|cx| self.poll_read(cx)).await, Ok(read) if read > 0) {
            self.received = Vec::new();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ConnectionEvent, ConnectionEnd>> {
        let had_frame = !self.out.is_empty();
        if (had_frame || !self.pong.is_empty())
            && let Poll::Ready(written) = self.poll_write(cx)
        {
            written.map_err(|_| ConnectionEnd::Disconnected)?;
            if had_frame {
                return Poll::Ready(Ok(ConnectionEvent::Written));
            }
        }
        loop {
            if let Some(event) = self.message()? {
                return Poll::Ready(Ok(event));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(ConnectionEnd::Disconnected)),
                Ok(_) => {}
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.out.is_empty() {
                if self.pong.is_empty() {
                    // The last frame is not kept: this may be the only reader that still refers to it.
                    self.out = Bytes::new();
                    return Poll::Ready(Ok(()));
                }
                self.out = std::mem::take(&mut self.pong);
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.out))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.advance(written);
            self.made_progress = true;
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [0; READ_BYTES];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        self.received.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Takes the first whole message from the received bytes.
    fn message(&mut self) -> Result<Option<ConnectionEvent>, ConnectionEnd> {
        let mut cursor = io::Cursor::new(&self.received);
        let protocol_error = |reason| ConnectionEnd::ProtocolError(CloseCode::Protocol, reason);
        let header = FrameHeader::parse(&mut cursor).map_err(|_| protocol_error("that was no WebSocket frame"))?;
        let Some((header, length)) = header else { return Ok(None) };
        let start = cursor.position() as usize;
        check(&header, length)?;
        let end = start + length as usize;
        let Some(payload) = self.received.get(start..end) else { return Ok(None) };
        let mask = header.mask.ok_or(protocol_error("frames of a client are masked"))?;
        let payload: Vec<u8> = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        // A new vector rather than a truncated one: usually nothing is left, and then no capacity is kept.
        self.received = self.received[end..].to_vec();
        match header.opcode {
            OpCode::Control(Control::Ping) => {
                self.pong = websocket_frames::pong(&payload);
                Ok(Some(ConnectionEvent::PingOrPong))
            }
            OpCode::Control(Control::Close) => Err(ConnectionEnd::Closed),
            OpCode::Data(_) => Ok(Some(ConnectionEvent::Message(payload))),
            OpCode::Control(_) => Ok(Some(ConnectionEvent::PingOrPong)),
        }
    }
}

/// Checks by its header that a frame is acceptable.
fn check(header: &FrameHeader, length: u64) -> Result<(), ConnectionEnd> {
    let protocol_error = |code, reason| Err(ConnectionEnd::ProtocolError(code, reason));
    if header.rsv1 || header.rsv2 || header.rsv3 {
        return protocol_error(CloseCode::Protocol, "no extension was agreed on");
    }
    match header.opcode {
        OpCode::Control(_) if !header.is_final || length > MAX_CONTROL_BYTES => {
            protocol_error(CloseCode::Protocol, "control frames are short and whole")
        }
        OpCode::Data(_) if length > MAX_INBOUND_FRAME_BYTES as u64 => {
            protocol_error(CloseCode::Size, "nothing a reader may say is that long")
        }
        OpCode::Data(Data::Binary) if header.is_final => Ok(()),
        OpCode::Data(_) => protocol_error(CloseCode::Unsupported, "only binary messages in one frame are understood"),
        OpCode::Control(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const MASK: [u8; 4] = [1, 2, 3, 4];

    /// A short frame as a client sends it.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("a short frame");
        let mut frame = vec![first, 0x80 | length];
        frame.extend(MASK);
        frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    fn connection() -> (LiveConnection<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(4_096);
        (LiveConnection::new(ours, &[]), theirs)
    }

    /// The event after receiving these bytes.
    async fn receive(bytes: &[u8]) -> Result<ConnectionEvent, ConnectionEnd> {
        let (mut connection, mut peer) = connection();
        peer.write_all(bytes).await.expect("there is room");
        connection.event().await
    }

    #[tokio::test]
    async fn a_message_arrives_byte_by_byte_or_with_the_handshake() {
        let (mut connection, mut peer) = connection();
        let bytes = masked(0x82, b"hello");
        for byte in &bytes[..bytes.len() - 1] {
            peer.write_all(&[*byte]).await.expect("there is room");
            tokio::select! {
                biased;
                event = connection.event() => panic!("{event:?} too early"),
                () = tokio::task::yield_now() => {}
            }
        }
        peer.write_all(&bytes[bytes.len() - 1..]).await.expect("there is room");
        assert_eq!(connection.event().await, Ok(ConnectionEvent::Message(b"hello".to_vec())));
        assert_eq!(connection.received.capacity(), 0, "no capacity is kept");
        let mut early = LiveConnection::new(duplex(16).0, &bytes);
        assert_eq!(early.event().await, Ok(ConnectionEvent::Message(b"hello".to_vec())));
    }

    #[tokio::test]
    async fn a_ping_is_answered_between_two_frames() {
        let (mut connection, mut peer) = connection();
        peer.write_all(&masked(0x89, b"you?")).await.expect("there is room");
        assert_eq!(connection.event().await, Ok(ConnectionEvent::PingOrPong));
        connection.put(websocket_frames::ping());
        assert_eq!(connection.event().await, Ok(ConnectionEvent::Written));
        let mut received = [0; 8];
        peer.read_exact(&mut received).await.expect("both frames");
        assert_eq!(received, [0x89, 0, 0x8a, 4, b'y', b'o', b'u', b'?']);
    }

    #[tokio::test]
    async fn invalid_frames_are_refused_with_a_code_and_a_reason() {
        let long = masked(0x82, &[0; MAX_INBOUND_FRAME_BYTES + 1]);
        let endless = [0x82, 0xff, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        for (bytes, code) in [
            (&masked(0x81, b"{}")[..], CloseCode::Unsupported),
            (&masked(0x02, b"half"), CloseCode::Unsupported),
            (&masked(0x80, b"rest"), CloseCode::Unsupported),
            (&long, CloseCode::Size),
            (&endless, CloseCode::Size),
            (&[0x82, 1, 7], CloseCode::Protocol),
            (&masked(0xc2, b"x"), CloseCode::Protocol),
            (&masked(0x09, b"x"), CloseCode::Protocol),
            (&masked(0x83, b"x"), CloseCode::Protocol),
        ] {
            let received = receive(bytes).await;
            assert!(
                matches!(&received, Err(ConnectionEnd::ProtocolError(with, reason)) if *with == code && !reason.is_empty()),
                "{received:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_close_frame_and_a_lost_connection_are_distinguished() {
        assert_eq!(receive(&masked(0x88, &1000_u16.to_be_bytes())).await, Err(ConnectionEnd::Closed));
        let (mut connection, peer) = connection();
        drop(peer);
        assert_eq!(connection.event().await, Err(ConnectionEnd::Disconnected));
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic_and_a_bounded_buffer(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut connection = LiveConnection::new(tokio::io::empty(), &bytes);
            while let Ok(Some(_)) = connection.message() {}
            prop_assert!(connection.received.len() <= bytes.len());
        }
    }
}

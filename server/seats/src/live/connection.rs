//! One WebSocket of ours, made for ten thousand quiet ones: it keeps no buffers.
//!
//! What it writes are shared bytes, one frame at a time; while the peer takes nothing, that frame and
//! a position in it are all there is. What it reads is a few bytes long, or refused. Messages in several
//! frames are refused as well: nothing a reader may say needs two.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use domain::wire::MAX_INBOUND_FRAME_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

use super::websocket_frames;

/// Read at once, on the stack, bytes: more than any message we accept.
const READ_BYTES: usize = 512;
/// Longest payload of a ping, pong or goodbye, bytes (RFC 6455, 5.5).
const MAX_CONTROL_BYTES: u64 = 125;

/// What happened on the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Everything was written.
    Written,
    /// A sign of life.
    Alive,
    /// A message.
    Said(Vec<u8>),
}

/// Why a line cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody is there any more.
    Gone,
    /// They say goodbye.
    Bye,
    /// They broke the rules: the code and reason to close with.
    Broken(CloseCode, &'static str),
}

pub(super) struct Line<S> {
    stream: S,
    /// What is left of the frame being written.
    out: Bytes,
    /// An answer to a ping, written between two frames. Only the last ping is answered, as the standard
    /// allows, so this is one frame at most.
    pong: Bytes,
    /// The beginning of a message whose end has not come yet.
    heard: Vec<u8>,
    has_moved: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    /// A line on which the peer has said `heard` already.
    pub(super) fn new(stream: S, heard: &[u8]) -> Self {
        Self { stream, out: Bytes::new(), pong: Bytes::new(), heard: heard.to_vec(), has_moved: false }
    }

    /// Whether a frame can be put.
    pub(super) fn is_free(&self) -> bool {
        self.out.is_empty()
    }

    /// Begins to write a frame. The line is free.
    pub(super) fn put(&mut self, frame: Bytes) {
        debug_assert!(self.is_free(), "one frame at a time");
        self.out = frame;
    }

    /// Whether the peer took anything since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// Waits for what happens next. May be dropped and called again.
    pub(super) async fn event(&mut self) -> Result<Event, Fault> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Waits until everything is written and reads nothing; for ever, when there is nothing to write. May be dropped and
    /// called again.
    pub(super) async fn written(&mut self) -> Result<Event, Fault> {
        std::future::poll_fn(|cx| {
            if self.out.is_empty() && self.pong.is_empty() {
                return Poll::Pending;
            }
            ready!(self.poll_write(cx)).map_err(|_| Fault::Gone)?;
            Poll::Ready(Ok(Event::Written))
        })
        .await
    }

    /// Writes what is left, and then `frames`, and says no more.
    pub(super) async fn finish(&mut self, frames: &[Bytes]) -> io::Result<()> {
        for frame in frames {
            std::future::poll_fn(|cx| self.poll_write(cx)).await?;
            self.put(frame.clone());
        }
        std::future::poll_fn(|cx| self.poll_write(cx)).await?;
        std::future::poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await
    }

    /// Hears out a peer who was told goodbye: closing with words unread would take it back.
    pub(super) async fn hear_out(&mut self) {
        while matches!(std::future::poll_fn(|cx| self.poll_read(cx)).await, Ok(read) if read > 0) {
            self.heard = Vec::new();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Fault>> {
        let had_something = !self.out.is_empty();
        if (had_something || !self.pong.is_empty())
            && let Poll::Ready(written) = self.poll_write(cx)
        {
            written.map_err(|_| Fault::Gone)?;
            if had_something {
                return Poll::Ready(Ok(Event::Written));
            }
        }
        loop {
            if let Some(event) = self.message()? {
                return Poll::Ready(Ok(event));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(Fault::Gone)),
                Ok(_) => {}
            }
        }
    }

    /// Writes until nothing is left.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.out.is_empty() {
                if self.pong.is_empty() {
                    // Not even the last frame is kept: it may be the only reader who still has it.
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
            self.has_moved = true;
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [0; READ_BYTES];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        self.heard.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Takes the first whole message off what was heard.
    fn message(&mut self) -> Result<Option<Event>, Fault> {
        let mut cursor = io::Cursor::new(&self.heard);
        let broken = |reason| Fault::Broken(CloseCode::Protocol, reason);
        let header = FrameHeader::parse(&mut cursor).map_err(|_| broken("that was no WebSocket frame"))?;
        let Some((header, length)) = header else { return Ok(None) };
        let start = cursor.position() as usize;
        check(&header, length)?;
        let end = start + length as usize;
        let Some(payload) = self.heard.get(start..end) else { return Ok(None) };
        let mask = header.mask.ok_or(broken("frames of a client are masked"))?;
        let payload: Vec<u8> = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        // A new vector rather than a shorter one: the usual rest is nothing, and nothing is kept.
        self.heard = self.heard[end..].to_vec();
        match header.opcode {
            OpCode::Control(Control::Ping) => {
                self.pong = websocket_frames::pong(&payload);
                Ok(Some(Event::Alive))
            }
            OpCode::Control(Control::Close) => Err(Fault::Bye),
            OpCode::Data(_) => Ok(Some(Event::Said(payload))),
            OpCode::Control(_) => Ok(Some(Event::Alive)),
        }
    }
}

/// Whether we read a frame at all, told by its header.
fn check(header: &FrameHeader, length: u64) -> Result<(), Fault> {
    let broken = |code, reason| Err(Fault::Broken(code, reason));
    if header.rsv1 || header.rsv2 || header.rsv3 {
        return broken(CloseCode::Protocol, "no extension was agreed on");
    }
    match header.opcode {
        OpCode::Control(_) if !header.is_final || length > MAX_CONTROL_BYTES => {
            broken(CloseCode::Protocol, "control frames are short and whole")
        }
        OpCode::Data(_) if length > MAX_INBOUND_FRAME_BYTES as u64 => {
            broken(CloseCode::Size, "nothing a reader may say is that long")
        }
        OpCode::Data(Data::Binary) if header.is_final => Ok(()),
        OpCode::Data(_) => broken(CloseCode::Unsupported, "only binary messages in one frame are understood"),
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

    fn line() -> (Line<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(4_096);
        (Line::new(ours, &[]), theirs)
    }

    /// What comes of these bytes.
    async fn hear(bytes: &[u8]) -> Result<Event, Fault> {
        let (mut line, mut peer) = line();
        peer.write_all(bytes).await.expect("there is room");
        line.event().await
    }

    #[tokio::test]
    async fn a_message_arrives_byte_by_byte_or_with_the_handshake() {
        let (mut line, mut peer) = line();
        let bytes = masked(0x82, b"hello");
        for byte in &bytes[..bytes.len() - 1] {
            peer.write_all(&[*byte]).await.expect("there is room");
            tokio::select! {
                biased;
                event = line.event() => panic!("{event:?} too early"),
                () = tokio::task::yield_now() => {}
            }
        }
        peer.write_all(&bytes[bytes.len() - 1..]).await.expect("there is room");
        assert_eq!(line.event().await, Ok(Event::Said(b"hello".to_vec())));
        assert_eq!(line.heard.capacity(), 0, "nothing is kept");
        let mut early = Line::new(duplex(16).0, &bytes);
        assert_eq!(early.event().await, Ok(Event::Said(b"hello".to_vec())));
    }

    #[tokio::test]
    async fn a_ping_is_answered_between_two_frames() {
        let (mut line, mut peer) = line();
        peer.write_all(&masked(0x89, b"you?")).await.expect("there is room");
        assert_eq!(line.event().await, Ok(Event::Alive));
        line.put(websocket_frames::ping());
        assert_eq!(line.event().await, Ok(Event::Written));
        let mut heard = [0; 8];
        peer.read_exact(&mut heard).await.expect("both frames");
        assert_eq!(heard, [0x89, 0, 0x8a, 4, b'y', b'o', b'u', b'?']);
    }

    #[tokio::test]
    async fn what_a_reader_may_not_say_is_refused_with_a_reason() {
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
            let heard = hear(bytes).await;
            assert!(
                matches!(&heard, Err(Fault::Broken(with, reason)) if *with == code && !reason.is_empty()),
                "{heard:?}"
            );
        }
    }

    #[tokio::test]
    async fn goodbye_and_a_cut_line_are_told_apart() {
        assert_eq!(hear(&masked(0x88, &1000_u16.to_be_bytes())).await, Err(Fault::Bye));
        let (mut line, peer) = line();
        drop(peer);
        assert_eq!(line.event().await, Err(Fault::Gone));
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_line_panic_or_keep_much(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut line = Line::new(tokio::io::empty(), &bytes);
            while let Ok(Some(_)) = line.message() {}
            prop_assert!(line.heard.len() <= bytes.len());
        }
    }
}

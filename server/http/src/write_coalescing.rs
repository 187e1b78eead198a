//! A connection that collects answers and writes them together.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};

/// Answers gathered on a connection at most, bytes; more leave at once.
const MAX_BUFFERED_BYTES: usize = 16 * 1024;
/// Polls after which the collected answers of a connection are written though the next one is not ready. Each poll is a turn
/// of the runtime; all together take far less than a millisecond.
const MAX_FLUSH_POLLS: u8 = 8;
/// Start of an answer after which the connection changes protocol.
const SWITCHING: &[u8] = b"HTTP/1.1 101";

/// A connection that buffers answers until no further request has arrived, or until the answers fill a few packets.
#[derive(Debug)]
pub struct CoalescedWrites<T> {
    inner: T,
    waiting: Vec<u8>,
    /// Polls since the buffer was filled.
    flush_polls: u8,
    /// The connection changes protocol: nothing is buffered any more.
    at_once: bool,
}

impl<T> CoalescedWrites<T> {
    /// Around a connection.
    #[must_use]
    pub const fn new(inner: T) -> Self {
        Self { inner, waiting: Vec::new(), flush_polls: 0, at_once: false }
    }

    /// The connection itself; `None` when something still waits to be sent.
    pub fn into_inner(self) -> Option<T> {
        self.waiting.is_empty().then_some(self.inner)
    }
}

impl<T: Write + Unpin> CoalescedWrites<T> {
    /// Sends what waits.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sent = 0;
        let outcome = loop {
            if sent == self.waiting.len() {
                break Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.inner).poll_write(cx, &self.waiting[sent..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(more)) => sent += more,
                Poll::Ready(Err(cause)) => break Poll::Ready(Err(cause)),
                Poll::Pending => break Poll::Pending,
            }
        };
        if sent == self.waiting.len() {
            // A connection that is idle keeps no buffer.
            self.waiting = Vec::new();
            self.flush_polls = 0;
        } else {
            self.waiting.drain(..sent);
        }
        outcome
    }
}

impl<T: Read + Write + Unpin> Read for CoalescedWrites<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if read.is_pending() && !self.waiting.is_empty() {
            // Everything that came is answered. What cannot be sent now wakes us when it can.
            if let Poll::Ready(Err(cause)) = self.poll_send(cx) {
                return Poll::Ready(Err(cause));
            }
        }
        read
    }
}

impl<T: Write + Unpin> Write for CoalescedWrites<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.at_once |= bytes.starts_with(SWITCHING);
        if self.waiting.len() + bytes.len() > MAX_BUFFERED_BYTES || self.at_once {
            ready!(self.poll_send(cx))?;
        }
        if bytes.len() > MAX_BUFFERED_BYTES || self.at_once {
            return Pin::new(&mut self.inner).poll_write(cx, bytes);
        }
        self.waiting.extend_from_slice(bytes);
        self.flush_polls = 0;
        Poll::Ready(Ok(bytes.len()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.at_once |= parts.first().is_some_and(|part| part.starts_with(SWITCHING));
        if self.waiting.len() + length > MAX_BUFFERED_BYTES || self.at_once {
            ready!(self.poll_send(cx))?;
        }
        if length > MAX_BUFFERED_BYTES || self.at_once {
            return Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        }
        parts.iter().for_each(|part| self.waiting.extend_from_slice(part));
        self.flush_polls = 0;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.is_empty() {
            return Pin::new(&mut self.inner).poll_flush(cx);
        }
        self.flush_polls += 1;
        if self.flush_polls < MAX_FLUSH_POLLS {
            // More may have come, and be answered at once. If not, the next reading sends.
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Records every write; accepts `room` bytes and then none until woken.
    #[derive(Debug, Default)]
    struct Wire {
        writes: Vec<Vec<u8>>,
        room: usize,
        flushes: usize,
    }

    impl Read for Wire {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl Write for Wire {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Poll::Pending;
            }
            self.room -= taken;
            self.writes.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn wire(room: usize) -> CoalescedWrites<Wire> {
        CoalescedWrites::new(Wire { room, ..Wire::default() })
    }

    fn write(to: &mut CoalescedWrites<Wire>, bytes: &[u8]) -> Poll<usize> {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(to).poll_write(&mut cx, bytes).map(|written| written.expect("it is taken"))
    }

    fn flush(to: &mut CoalescedWrites<Wire>) -> bool {
        Pin::new(to).poll_flush(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn read(from: &mut CoalescedWrites<Wire>) {
        let mut bytes = [std::mem::MaybeUninit::uninit(); 8];
        let mut buffer = hyper::rt::ReadBuf::uninit(&mut bytes);
        let read = Pin::new(from).poll_read(&mut Context::from_waker(Waker::noop()), buffer.unfilled());
        assert!(read.is_pending());
    }

    #[test]
    fn answers_are_written_together_when_no_request_is_left() {
        let mut connection = wire(1_000);
        for part in [&b"one "[..], b"two ", b"three"] {
            assert_eq!(write(&mut connection, part), Poll::Ready(part.len()));
            assert!(flush(&mut connection));
        }
        assert!(connection.inner.writes.is_empty());
        read(&mut connection);
        assert_eq!(connection.inner.writes, [b"one two three".to_vec()]);
        read(&mut connection);
        assert_eq!(connection.inner.writes.len(), 1, "nothing is left");
    }

    #[test]
    fn a_client_that_does_not_read_gets_its_answers_after_a_few_polls() {
        let mut connection = wire(1_000);
        let _ = write(&mut connection, b"answer");
        for poll in 1..=MAX_FLUSH_POLLS {
            assert!(connection.inner.writes.is_empty(), "before poll {poll}");
            assert!(flush(&mut connection));
        }
        assert_eq!((connection.inner.writes.len(), connection.inner.flushes), (1, 1));
        let _ = write(&mut connection, b"next");
        assert!(flush(&mut connection));
        assert_eq!(connection.inner.writes.len(), 1, "its own looks");
    }

    #[test]
    fn a_large_answer_is_written_in_order_and_a_full_socket_blocks_the_writer() {
        let mut connection = wire(3);
        assert_eq!(write(&mut connection, b"first"), Poll::Ready(5));
        let large = vec![b'x'; MAX_BUFFERED_BYTES];
        assert!(write(&mut connection, &large).is_pending(), "the wire is full");
        assert_eq!(connection.waiting, b"st");
        connection.inner.room = usize::MAX;
        assert_eq!(write(&mut connection, &large), Poll::Ready(large.len()));
        assert_eq!(connection.inner.writes, [b"fir".to_vec(), b"st".to_vec()]);
        let larger = vec![b'y'; MAX_BUFFERED_BYTES + 1];
        assert_eq!(write(&mut connection, &larger), Poll::Ready(larger.len()));
        assert_eq!(connection.inner.writes[2..], [large, larger]);
    }

    #[test]
    fn an_answer_that_switches_protocols_flushes_the_buffer() {
        let mut connection = wire(1_000);
        let _ = write(&mut connection, b"earlier");
        assert_eq!(write(&mut connection, b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), Poll::Ready(36));
        assert_eq!(connection.inner.writes.concat(), b"earlierHTTP/1.1 101 Switching Protocols\r\n\r\n");
        assert!(connection.waiting.is_empty());
        let _ = write(&mut connection, b"frame");
        assert_eq!(connection.inner.writes.last(), Some(&b"frame".to_vec()));
    }
}

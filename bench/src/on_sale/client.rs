//! One person's connections: keep-alive, to whichever replica answers, as behind a proxy that knows who is up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::http::Answer;

/// A replica that does not take a connection for so long is another's turn.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Longest wait for an answer: more than any of the server's own deadlines.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// An answer, as far as the crowd looks at it.
#[derive(Clone, Debug)]
pub struct Told {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Seconds after which to come back, if the answer says so.
    pub retry_after: Option<u64>,
}

/// Why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nobody took the connection: nothing was sent.
    NobodyThere,
    /// It was sent, and the connection ended: nobody knows what was done.
    CutOff,
}

/// Connections to all replicas; one request at a time.
pub struct Client<'a> {
    addresses: &'a [SocketAddr],
    streams: Vec<Option<TcpStream>>,
    /// The replica that is asked first.
    prefers: usize,
}

impl<'a> Client<'a> {
    pub fn new(addresses: &'a [SocketAddr], prefers: usize) -> Self {
        let streams = addresses.iter().map(|_| None).collect();
        Self { addresses, streams, prefers: prefers % addresses.len() }
    }

    /// Sends a request to the replica that answered last; after a loss to the next one.
    pub fn ask(&mut self, request: &[u8]) -> Result<Told, Lost> {
        let server = self.prefers;
        let asked = self.ask_at(server, request);
        if asked.is_err() {
            self.streams[server] = None;
            self.prefers = (server + 1) % self.addresses.len();
        }
        asked
    }

    fn ask_at(&mut self, server: usize, request: &[u8]) -> Result<Told, Lost> {
        // A kept connection may have been closed while nothing was on it; that is not an answer lost.
        if let Some(stream) = self.streams[server].take()
            && is_open(&stream)
        {
            return self.over(server, stream, request);
        }
        let stream = connect(self.addresses[server]).map_err(|_| Lost::NobodyThere)?;
        self.over(server, stream, request)
    }

    fn over(&mut self, server: usize, mut stream: TcpStream, request: &[u8]) -> Result<Told, Lost> {
        let (told, stays) = exchange(&mut stream, request).map_err(|_| Lost::CutOff)?;
        if stays {
            self.streams[server] = Some(stream);
        }
        Ok(told)
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    Ok(stream)
}

/// Whether nothing was heard on a connection that nothing was asked on: not even its end.
fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let quiet = stream.set_nonblocking(true).is_ok()
        && stream.peek(&mut byte).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    quiet && stream.set_nonblocking(false).is_ok()
}

/// The answer, and whether the connection stays.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> Result<(Told, bool)> {
    stream.write_all(request)?;
    let (mut bytes, mut chunk) = (Vec::new(), [0_u8; 16 * 1024]);
    loop {
        let read = stream.read(&mut chunk).context("no answer")?;
        ensure!(read > 0, "hung up");
        bytes.extend_from_slice(&chunk[..read]);
        if let Some((answer, _)) = Answer::parse(&bytes)? {
            let told = Told {
                status: answer.status,
                body: answer.body.to_vec(),
                retry_after: header(&bytes, "retry-after").and_then(|seconds| seconds.parse().ok()),
            };
            let closes = header(&bytes, "connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
            return Ok((told, !closes));
        }
    }
}

/// A header of an answer.
fn header<'a>(bytes: &'a [u8], name: &str) -> Option<&'a str> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let lines = std::str::from_utf8(&bytes[..end]).ok()?.lines();
    lines.skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_whatever_their_case_and_not_in_the_body() {
        let bytes = b"HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 14\r\n\r\nconnection: no";
        assert_eq!(header(bytes, "retry-after"), Some("2"));
        assert_eq!(header(bytes, "connection"), None);
    }

    #[test]
    fn the_next_replica_is_asked_when_one_is_gone() {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let there = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addresses = [gone, there.local_addr().expect("an address")];
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = there.accept().expect("somebody comes");
            let mut chunk = [0; 64];
            let _ = stream.read(&mut chunk);
            stream.write_all(b"HTTP/1.1 204 No Content\r\nRetry-After: 7\r\n\r\n").expect("it is said");
        });
        let mut client = Client::new(&addresses, 0);
        assert_eq!(client.ask(b"GET / HTTP/1.1\r\n\r\n").err(), Some(Lost::NobodyThere));
        let told = client.ask(b"GET / HTTP/1.1\r\n\r\n").expect("an answer");
        assert_eq!((told.status, told.retry_after), (204, Some(7)));
        serving.join().expect("it ends");
    }
}

//! The keep-alive connections of one worker, to any replica that answers, as behind a proxy with health checks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::http::HttpAnswer;

/// Timeout of a connection attempt; then the next replica is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of an answer: longer than any deadline of the server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The parts of an answer that the crowd uses.
#[derive(Clone, Debug)]
pub struct CrowdAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Seconds of the `Retry-After` header, if any.
    pub retry_after: Option<u64>,
}

/// The reason for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostAnswer {
    /// The connection failed: the request was not sent.
    NotConnected,
    /// The connection ended after the request was sent: the outcome is unknown.
    CutOff,
}

/// Connections to all replicas, for one request at a time.
pub struct CrowdClient<'a> {
    addresses: &'a [SocketAddr],
    streams: Vec<Option<TcpStream>>,
    /// Index of the replica to send to.
    preferred: usize,
}

impl<'a> CrowdClient<'a> {
    pub fn new(addresses: &'a [SocketAddr], preferred: usize) -> Self {
        let streams = addresses.iter().map(|_| None).collect();
        Self { addresses, streams, preferred: preferred % addresses.len() }
    }

    /// Sends a request to the preferred replica. After an error the next replica is preferred.
    pub fn send(&mut self, request: &[u8]) -> Result<CrowdAnswer, LostAnswer> {
        let server = self.preferred;
        let result = self.send_to(server, request);
        if result.is_err() {
            self.streams[server] = None;
            self.preferred = (server + 1) % self.addresses.len();
        }
        result
    }

    fn send_to(&mut self, server: usize, request: &[u8]) -> Result<CrowdAnswer, LostAnswer> {
        // The server may close an idle connection; that loses no answer.
        if let Some(stream) = self.streams[server].take()
            && is_open(&stream)
        {
            return self.send_over(server, stream, request);
        }
        let stream = connect(self.addresses[server]).map_err(|_| LostAnswer::NotConnected)?;
        self.send_over(server, stream, request)
    }

    fn send_over(&mut self, server: usize, mut stream: TcpStream, request: &[u8]) -> Result<CrowdAnswer, LostAnswer> {
        let (response, stays_open) = exchange(&mut stream, request).map_err(|_| LostAnswer::CutOff)?;
        if stays_open {
            self.streams[server] = Some(stream);
        }
        Ok(response)
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

/// Checks that an idle connection has neither bytes to read nor an end of stream.
fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let is_idle = stream.set_nonblocking(true).is_ok()
        && stream.peek(&mut byte).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    is_idle && stream.set_nonblocking(false).is_ok()
}

/// Sends a request. Returns the answer and whether the connection stays open.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> Result<(CrowdAnswer, bool)> {
    stream.write_all(request)?;
    let (mut bytes, mut chunk) = (Vec::new(), [0_u8; 16 * 1024]);
    loop {
        let read = stream.read(&mut chunk).context("no answer")?;
        ensure!(read > 0, "the server closed the connection");
        bytes.extend_from_slice(&chunk[..read]);
        if let Some((answer, _)) = HttpAnswer::parse(&bytes)? {
            let response = CrowdAnswer {
                status: answer.status,
                body: answer.body.to_vec(),
                retry_after: header(&bytes, "retry-after").and_then(|seconds| seconds.parse().ok()),
            };
            let closes = header(&bytes, "connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
            return Ok((response, !closes));
        }
    }
}

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
    fn headers_are_found_in_any_case_and_not_in_the_body() {
        let bytes = b"HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 14\r\n\r\nconnection: no";
        assert_eq!(header(bytes, "retry-after"), Some("2"));
        assert_eq!(header(bytes, "connection"), None);
    }

    #[test]
    fn the_next_replica_is_used_when_one_is_down() {
        let down = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let up = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addresses = [down, up.local_addr().expect("an address")];
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = up.accept().expect("a connection");
            let mut chunk = [0; 64];
            let _ = stream.read(&mut chunk);
            stream.write_all(b"HTTP/1.1 204 No Content\r\nRetry-After: 7\r\n\r\n").expect("written");
        });
        let mut client = CrowdClient::new(&addresses, 0);
        assert_eq!(client.send(b"GET / HTTP/1.1\r\n\r\n").err(), Some(LostAnswer::NotConnected));
        let response = client.send(b"GET / HTTP/1.1\r\n\r\n").expect("an answer");
        assert_eq!((response.status, response.retry_after), (204, Some(7)));
        serving.join().expect("the thread ends");
    }
}

//! A small HTTP/1.1 load client: keep-alive, one request in flight per connection, one thread.
//!
//! It shares two cores with the server under test, so it must be cheap: the load writes requests as
//! bytes, and answers are parsed for status, length and body only.
//! It does not support TLS, redirects or chunked answers, because the API uses none of them.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use uuid::Uuid;

const MAX_EVENTS: usize = 1_024;
/// Buffer of one read; every answer of the API fits.
const READ_BYTES: usize = 64 * 1024;
/// Longest wait for an event when no request is due.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Reconnections after which a run fails.
const MAX_RECONNECTS: usize = 1_000;

pub enum Next {
    /// The request is in the buffer; its answer carries this number.
    Send(u32),
    /// No request is due before this instant, nanoseconds from the start.
    At(u64),
    /// No request is due until an answer arrives.
    AfterAnswer,
    Done,
}

/// A source of requests that receives their answers. Instants are nanoseconds from the start.
pub trait Load {
    /// Writes the next request for the server with this number into `out`, if one is due.
    fn next(&mut self, server: usize, now: u64, out: &mut Vec<u8>) -> Next;
    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>);
    /// Handles a request without an answer: the server may have processed it or not.
    fn lost(&mut self, ticket: u32, now: u64, why: &str);
}

pub struct LoadLimits {
    pub connections: usize,
    pub timeout: Duration,
}

struct LoadConnection {
    stream: TcpStream,
    server: usize,
    ticket: Option<u32>,
    partial: Vec<u8>,
}

struct Engine<'a, L> {
    servers: &'a [SocketAddr],
    load: &'a mut L,
    poll: Poll,
    connections: Vec<LoadConnection>,
    /// Connections without a request in flight, by server.
    idle: Vec<Vec<usize>>,
    in_flight: usize,
    reconnects: usize,
    began: Instant,
    out: Vec<u8>,
    chunk: Vec<u8>,
}

/// Runs a load against some servers until it has no more requests and every answer has arrived.
///
/// # Errors
/// When a server cannot be reached, or the timeout expires.
pub fn run<L: Load>(servers: &[SocketAddr], limits: &LoadLimits, load: &mut L) -> Result<()> {
    let poll = Poll::new()?;
    let mut engine = Engine {
        servers,
        load,
        poll,
        connections: Vec::new(),
        idle: vec![Vec::new(); servers.len()],
        in_flight: 0,
        reconnects: 0,
        began: Instant::now(),
        out: Vec::with_capacity(1_024),
        chunk: vec![0; READ_BYTES],
    };
    for (server, address) in servers.iter().enumerate() {
        for _ in 0..limits.connections {
            let stream = connect(*address, &engine.poll, engine.connections.len())?;
            engine.idle[server].push(engine.connections.len());
            engine.connections.push(LoadConnection { stream, server, ticket: None, partial: Vec::new() });
        }
    }
    engine.began = Instant::now();
    engine.run_until_answered(limits.timeout)
}

impl<L: Load> Engine<'_, L> {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn run_until_answered(&mut self, timeout: Duration) -> Result<()> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        loop {
            let Some(wait) = self.send_due()? else { return Ok(()) };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled?,
            }
            for event in &events {
                self.receive(event.token().0)?;
            }
            if self.began.elapsed() > timeout {
                bail!("{} requests are unanswered after {} s", self.in_flight, timeout.as_secs());
            }
        }
    }

    /// Sends due requests on idle connections. Returns how long to wait for events; `None` when all are answered.
    fn send_due(&mut self) -> Result<Option<Duration>> {
        let mut wait = LONGEST_WAIT;
        let mut done = 0;
        for server in 0..self.servers.len() {
            while let Some(index) = self.idle[server].pop() {
                let now = self.now();
                self.out.clear();
                match self.load.next(server, now, &mut self.out) {
                    Next::Send(ticket) => {
                        self.send(index, ticket)?;
                        continue;
                    }
                    Next::At(instant) => wait = wait.min(Duration::from_nanos(instant.saturating_sub(now))),
                    Next::AfterAnswer => {}
                    Next::Done => done += 1,
                }
                self.idle[server].push(index);
                break;
            }
        }
        Ok((done < self.servers.len() || self.in_flight > 0).then_some(wait))
    }

    fn send(&mut self, index: usize, ticket: u32) -> Result<()> {
        let connection = &mut self.connections[index];
        connection.ticket = Some(ticket);
        self.in_flight += 1;
        // A request is smaller than any socket buffer, and the buffer is empty.
        match connection.stream.write(&self.out) {
            Ok(written) if written == self.out.len() => Ok(()),
            Ok(_) => self.replace_lost(index, "the request was sent in part"),
            Err(error) => self.replace_lost(index, &error.to_string()),
        }
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        loop {
            let connection = &mut self.connections[index];
            let read = match connection.stream.read(&mut self.chunk) {
                Ok(0) => return self.replace_lost(index, "the server closed the connection"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.replace_lost(index, &error.to_string()),
            };
            let now = self.began.elapsed().as_nanos() as u64;
            let whole = if connection.partial.is_empty() {
                &self.chunk[..read]
            } else {
                connection.partial.extend_from_slice(&self.chunk[..read]);
                &connection.partial
            };
            match HttpAnswer::parse(whole) {
                Ok(Some((answer, length))) if length == whole.len() && connection.ticket.is_some() => {
                    let ticket = connection.ticket.take().unwrap_or_default();
                    self.load.answered(ticket, now, &answer);
                    connection.partial.clear();
                    self.in_flight -= 1;
                    self.idle[connection.server].push(index);
                }
                Ok(Some(_)) => return self.replace_lost(index, "the server sent an unrequested answer"),
                Ok(None) if connection.partial.is_empty() => connection.partial.extend_from_slice(&self.chunk[..read]),
                Ok(None) => {}
                Err(error) => return self.replace_lost(index, &error.to_string()),
            }
            if read < READ_BYTES {
                // The socket is drained; later bytes raise a new event.
                return Ok(());
            }
        }
    }

    /// Replaces a broken connection and reports its request as lost.
    fn replace_lost(&mut self, index: usize, why: &str) -> Result<()> {
        let now = self.now();
        let server = self.connections[index].server;
        if let Some(ticket) = self.connections[index].ticket.take() {
            self.load.lost(ticket, now, why);
            self.in_flight -= 1;
            self.idle[server].push(index);
        }
        self.reconnects += 1;
        if self.reconnects > MAX_RECONNECTS {
            bail!("too many lost connections: {why}");
        }
        self.connections[index].stream = connect(self.servers[server], &self.poll, index)?;
        self.connections[index].partial.clear();
        Ok(())
    }
}

/// Opens a non-blocking connection that is registered at the poll. It blocks while it connects: before the clock of a
/// load starts, or after a lost connection.
pub fn connect(address: SocketAddr, poll: &Poll, token: usize) -> Result<TcpStream> {
    let stream = std::net::TcpStream::connect(address).with_context(|| format!("cannot reach {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut stream = TcpStream::from_std(stream);
    poll.registry().register(&mut stream, Token(token), Interest::READABLE)?;
    Ok(stream)
}

/// Unexpected answers of a load, counted by kind.
#[derive(Default)]
pub struct ErrorCounts(BTreeMap<String, u64>);

impl ErrorCounts {
    pub fn add(&mut self, kind: String) {
        *self.0.entry(kind).or_default() += 1;
    }

    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Describes the kinds, the most frequent first.
    pub fn lines(&self) -> Vec<String> {
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        kinds.into_iter().map(|(kind, count)| format!("{count} × {kind}")).collect()
    }
}

/// An answer with the headers that a client must respect.
#[derive(Clone, Debug)]
pub struct CompleteAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Seconds of the `Retry-After` header, if any.
    pub retry_after: Option<u64>,
    /// The server closes the connection.
    pub closes: bool,
}

/// Sends a request and waits for the answer.
pub fn exchange(stream: &mut std::net::TcpStream, request: &[u8]) -> Result<CompleteAnswer> {
    stream.write_all(request)?;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0_u8; READ_BYTES]);
    loop {
        let read = stream.read(&mut chunk).context("no answer")?;
        ensure!(read > 0, "the server closed the connection");
        bytes.extend_from_slice(&chunk[..read]);
        if let Some((answer, _)) = HttpAnswer::parse(&bytes)? {
            return Ok(CompleteAnswer {
                status: answer.status,
                body: answer.body.to_vec(),
                retry_after: header(&bytes, "retry-after").and_then(|seconds| seconds.parse().ok()),
                closes: header(&bytes, "connection").is_some_and(|word| word.eq_ignore_ascii_case("close")),
            });
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

/// Sends one request on a new connection; for requests that are not load.
pub fn ask(address: SocketAddr, request: &[u8]) -> Result<(u16, Vec<u8>)> {
    const TIMEOUT: Duration = Duration::from_secs(30);
    let mut stream = std::net::TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let answer = exchange(&mut stream, request).with_context(|| format!("at {address}"))?;
    Ok((answer.status, answer.body))
}

pub fn get(address: SocketAddr, path: &str) -> Result<(u16, Vec<u8>)> {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}

/// Status and body of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpAnswer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl<'a> HttpAnswer<'a> {
    /// Parses the answer at the start of `bytes` and returns it with its length in bytes; `None` while it is incomplete.
    ///
    /// # Errors
    /// When the answer is not HTTP/1.1 or has no `Content-Length`.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>> {
        let Some(first) = bytes.get(..12) else { return Ok(None) };
        if !first.starts_with(b"HTTP/1.1 ") {
            bail!("the answer begins with {:?}", String::from_utf8_lossy(first));
        }
        let status = first[9..].iter().fold(0, |number, digit| number * 10 + u16::from(digit.wrapping_sub(b'0')));
        let mut length = None;
        let mut at = 0;
        loop {
            let Some(line_length) = bytes[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
            let line = &bytes[at..at + line_length];
            at += line_length + 1;
            if line.len() <= 1 {
                break;
            }
            length = length.or_else(|| content_length(line));
        }
        // These statuses have no body and need no Content-Length.
        let length =
            if matches!(status, 204 | 304 | 100..200) { 0 } else { length.context("an answer of unknown length")? };
        let end = at + length;
        Ok(bytes.get(at..end).map(|body| (Self { status, body }, end)))
    }
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Returns the number of the first field `name` in a JSON text, without parsing the rest.
pub fn number_after(body: &[u8], name: &str) -> Option<u64> {
    let digits = &body[after(body, name)?..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Returns the minor units of the first amount field `name`.
pub fn amount_after(body: &[u8], name: &str) -> Option<u64> {
    number_after(&body[after(body, name)?..], "minor")
}

/// Returns the text of the first field `name` in a JSON text; for values without escapes.
pub fn text_after<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = body[after(body, name)?..].strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&text[..end]).ok()
}

pub fn id_of(body: &[u8]) -> Option<Uuid> {
    Uuid::parse_str(text_after(body, "id")?).ok()
}

fn after(body: &[u8], name: &str) -> Option<usize> {
    // `"name":` as serde_json writes it, without spaces.
    let name = name.as_bytes();
    let found = body.windows(name.len() + 3).position(|window| {
        window[0] == b'"' && window[name.len() + 1..] == *b"\":" && window[1..=name.len()] == *name
    })?;
    Some(found + name.len() + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nContent-Length: 27\r\n\r\n{\"id\":\"ab-12\",\"n\":77,\"x\":1}";

    #[test]
    fn an_answer_is_parsed_only_when_complete() {
        for cut in 0..ANSWER.len() {
            assert_eq!(HttpAnswer::parse(&ANSWER[..cut]).expect("readable"), None, "after {cut} bytes");
        }
        let mut two = ANSWER.to_vec();
        two.extend_from_slice(b"HTTP/1.1 204");
        let (answer, length) = HttpAnswer::parse(&two).expect("readable").expect("whole");
        assert_eq!((answer.status, length), (201, ANSWER.len()));
        assert_eq!(text_after(answer.body, "id"), Some("ab-12"));
        assert_eq!(number_after(answer.body, "n"), Some(77));
        assert_eq!(number_after(answer.body, "missing"), None);
    }

    #[test]
    fn an_answer_without_body_is_parsed_and_unsupported_ones_are_errors() {
        let none = HttpAnswer { status: 204, body: b"" };
        assert_eq!(HttpAnswer::parse(b"HTTP/1.1 204 No Content\r\n\r\n").expect("readable"), Some((none, 27)));
        assert!(HttpAnswer::parse(b"HTTP/1.0 200 OK\r\n\r\n").is_err());
        assert!(HttpAnswer::parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn headers_are_found_in_any_case_and_not_in_the_body() {
        let bytes = b"HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 14\r\n\r\nconnection: no";
        assert_eq!(header(bytes, "retry-after"), Some("2"));
        assert_eq!(header(bytes, "connection"), None);
    }
}

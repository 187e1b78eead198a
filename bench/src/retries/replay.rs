//! The load: connections that repeat requests, several in the air on each, the next as soon as one is
//! answered. Answers come in the order of their requests (RFC 9112, 9.3.2).

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::checker::Findings;
use crate::histogram::Histogram;
use crate::http::Answer;

/// Connections looked at per turn.
const MAX_EVENTS: usize = 1_024;
/// One reading: all that is in the air on a connection fits.
const READ_BYTES: usize = 128 * 1024;
/// Answers may take so long after the last request was sent.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for an event before looking at the clock.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A request, and the only answer to it.
pub struct Expected {
    /// What is sent.
    pub request: Vec<u8>,
    /// The status of the answer.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

/// How the load is applied.
pub struct Shape {
    /// Connections to each server.
    pub connections: usize,
    /// Requests in the air on each.
    pub in_flight: usize,
    /// How long; without it, until each request was sent once to each server.
    pub time: Option<Duration>,
}

/// What came of it.
pub struct Replay {
    /// From the sending of a request to the last byte of its answer.
    pub latencies: Histogram,
    /// From the first request to the last answer.
    pub took: Duration,
    /// Answers that were not the first one.
    pub found: Findings,
    answers: u64,
}

struct Connection {
    stream: TcpStream,
    server: usize,
    /// Which requests are in the air, and since when (nanoseconds from the start).
    in_the_air: VecDeque<(usize, u64)>,
    /// The part of an answer that has arrived.
    partial: Vec<u8>,
}

struct Engine<'a> {
    expected: &'a [Expected],
    shape: &'a Shape,
    connections: Vec<Connection>,
    /// The next request for each server.
    next: Vec<usize>,
    began: Instant,
    replay: Replay,
    out: Vec<u8>,
    chunk: Vec<u8>,
}

impl Replay {
    /// Repeats `expected` at all servers.
    ///
    /// # Errors
    /// When a server cannot be reached, hangs up, or answers what cannot be read.
    pub fn run(servers: &[SocketAddr], shape: &Shape, expected: &[Expected]) -> Result<Self> {
        ensure!(!expected.is_empty(), "there is nothing to repeat");
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for (server, address) in servers.iter().enumerate() {
            for _ in 0..shape.connections {
                let stream = connect(*address, &poll, connections.len())?;
                connections.push(Connection { stream, server, in_the_air: VecDeque::new(), partial: Vec::new() });
            }
        }
        let replay =
            Self { latencies: Histogram::default(), took: Duration::ZERO, found: Findings::default(), answers: 0 };
        let mut engine = Engine {
            expected,
            shape,
            connections,
            next: vec![0; servers.len()],
            began: Instant::now(),
            replay,
            out: Vec::new(),
            chunk: vec![0; READ_BYTES],
        };
        engine.work(poll)?;
        engine.replay.took = engine.began.elapsed();
        Ok(engine.replay)
    }

    /// Answers counted.
    pub const fn latencies_count(&self) -> u64 {
        self.answers
    }
}

fn connect(address: SocketAddr, poll: &Poll, token: usize) -> Result<TcpStream> {
    let stream = std::net::TcpStream::connect(address).with_context(|| format!("cannot reach {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut stream = TcpStream::from_std(stream);
    poll.registry().register(&mut stream, Token(token), Interest::READABLE)?;
    Ok(stream)
}

impl Engine<'_> {
    fn work(&mut self, mut poll: Poll) -> Result<()> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        for place in 0..self.connections.len() {
            self.send(place, self.shape.in_flight)?;
        }
        let patience = self.shape.time.unwrap_or_default() + PATIENCE;
        while self.connections.iter().any(|connection| !connection.in_the_air.is_empty()) {
            match poll.poll(&mut events, Some(LONGEST_WAIT)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled?,
            }
            for event in &events {
                let answered = self.receive(event.token().0)?;
                self.send(event.token().0, answered)?;
            }
            ensure!(self.began.elapsed() < patience, "repeats are unanswered after {} s", patience.as_secs());
        }
        Ok(())
    }

    /// The request a connection sends next, if there is one.
    fn next(&mut self, server: usize) -> Option<usize> {
        let next = self.next[server];
        let goes_on = match self.shape.time {
            Some(time) => self.began.elapsed() < time,
            None => next < self.expected.len(),
        };
        self.next[server] += 1;
        goes_on.then_some(next % self.expected.len())
    }

    /// Sends up to so many requests in one go.
    fn send(&mut self, place: usize, count: usize) -> Result<()> {
        self.out.clear();
        for _ in 0..count {
            let Some(next) = self.next(self.connections[place].server) else { break };
            self.out.extend_from_slice(&self.expected[next].request);
            let now = self.began.elapsed().as_nanos() as u64;
            self.connections[place].in_the_air.push_back((next, now));
        }
        if self.out.is_empty() {
            return Ok(());
        }
        // What is in the air on a connection is far less than its buffer.
        let written = self.connections[place].stream.write(&self.out)?;
        ensure!(written == self.out.len(), "requests went out in part");
        Ok(())
    }

    /// Reads what has come; how many answers were whole.
    fn receive(&mut self, place: usize) -> Result<usize> {
        let mut answered = 0;
        loop {
            let connection = &mut self.connections[place];
            let read = match connection.stream.read(&mut self.chunk) {
                Ok(0) => bail!("a server closed a connection"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(answered),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let now = self.began.elapsed().as_nanos() as u64;
            let mut joined = std::mem::take(&mut connection.partial);
            let bytes = if joined.is_empty() {
                &self.chunk[..read]
            } else {
                joined.extend_from_slice(&self.chunk[..read]);
                &joined
            };
            let mut at = 0;
            while let Some((answer, length)) = Answer::parse(&bytes[at..])? {
                let (which, sent) = connection.in_the_air.pop_front().context("an answer nobody asked for")?;
                self.replay.judge(&self.expected[which], &answer);
                self.replay.latencies.record(now - sent);
                self.replay.answers += 1;
                answered += 1;
                at += length;
            }
            connection.partial = bytes[at..].to_vec();
            if read < READ_BYTES {
                return Ok(answered);
            }
        }
    }
}

impl Replay {
    fn judge(&mut self, expected: &Expected, answer: &Answer<'_>) {
        if answer.status != expected.status || answer.body != expected.body {
            self.found.add(|| {
                let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
                format!(
                    "a repeat is answered {} {}, and the first was {} {}",
                    answer.status,
                    text(answer.body),
                    expected.status,
                    text(&expected.body)
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;

    /// A server that answers every request with its path, `broken` ones with something else.
    fn echo() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                std::thread::spawn(move || {
                    let reader = std::io::BufReader::new(stream.try_clone().expect("a copy"));
                    for line in reader.lines().map_while(Result::ok) {
                        let Some(path) = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()) else {
                            continue;
                        };
                        let body = if path == "/broken" { "?" } else { path };
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                        stream.write_all(answer.as_bytes()).expect("it is read");
                    }
                });
            }
        });
        address
    }

    fn expected(path: &str) -> Expected {
        let request = format!("GET {path} HTTP/1.1\r\n\r\n").into_bytes();
        Expected { request, status: 200, body: path.as_bytes().to_vec() }
    }

    #[test]
    fn every_request_is_sent_once_to_each_server_and_compared() {
        let servers = [echo(), echo()];
        let all: Vec<Expected> = ["/a", "/bb", "/broken", "/dddd", "/e"].map(expected).into();
        let shape = Shape { connections: 2, in_flight: 3, time: None };
        let replay = Replay::run(&servers, &shape, &all).expect("it runs");
        assert_eq!(replay.latencies_count(), 10);
        assert_eq!(replay.found.count(), 2, "one for each server");
    }

    #[test]
    fn a_timed_run_repeats_them_and_ends() {
        let servers = [echo()];
        let shape = Shape { connections: 1, in_flight: 2, time: Some(Duration::from_millis(50)) };
        let replay = Replay::run(&servers, &shape, &[expected("/a"), expected("/b")]).expect("it runs");
        assert!(replay.latencies_count() > 2);
        assert_eq!(replay.found.count(), 0);
    }
}

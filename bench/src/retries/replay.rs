//! The replay load (a closed loop): connections with several requests in flight, each of which sends the
//! next request when one is answered. Answers arrive in the order of their requests (RFC 9112, 9.3.2).

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Poll};

use crate::checker::Findings;
use crate::histogram::Histogram;
use crate::http::{self, HttpAnswer};

const MAX_EVENTS: usize = 1_024;
/// Buffer of one read, bytes: all answers in flight on a connection fit.
const READ_BYTES: usize = 128 * 1024;
/// Timeout of the answers after the last request was sent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest wait for an event before the clock is read.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A request and its expected answer.
pub struct Expected {
    pub request: Vec<u8>,
    pub status: u16,
    pub body: Vec<u8>,
}

pub struct LoadShape {
    pub connections: usize,
    pub in_flight: usize,
    /// Duration; `None` sends each request once to each server.
    pub duration: Option<Duration>,
}

pub struct Replay {
    /// From the sending of a request to the last byte of its answer.
    pub latencies: Histogram,
    /// From the first request to the last answer.
    pub took: Duration,
    /// Answers that differ from the first one.
    pub found: Findings,
    pub answers: u64,
}

struct ReplayConnection {
    stream: TcpStream,
    server: usize,
    /// Requests in flight and when each was sent (nanoseconds from the start).
    in_flight_since: VecDeque<(usize, u64)>,
    /// The received part of an answer.
    partial: Vec<u8>,
}

struct Engine<'a> {
    expected: &'a [Expected],
    shape: &'a LoadShape,
    connections: Vec<ReplayConnection>,
    /// The next request for each server.
    next: Vec<usize>,
    began: Instant,
    replay: Replay,
    out: Vec<u8>,
    chunk: Vec<u8>,
}

impl Replay {
    /// Replays `expected` at all servers.
    ///
    /// # Errors
    /// When a server cannot be reached, closes a connection, or sends an invalid answer.
    pub fn run(servers: &[SocketAddr], shape: &LoadShape, expected: &[Expected]) -> Result<Self> {
        ensure!(!expected.is_empty(), "there are no requests to replay");
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for (server, address) in servers.iter().enumerate() {
            for _ in 0..shape.connections {
                let stream = http::connect(*address, &poll, connections.len())?;
                let (in_flight_since, partial) = (VecDeque::new(), Vec::new());
                connections.push(ReplayConnection { stream, server, in_flight_since, partial });
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
        engine.run_until_answered(poll)?;
        engine.replay.took = engine.began.elapsed();
        Ok(engine.replay)
    }

    fn compare(&mut self, expected: &Expected, answer: &HttpAnswer<'_>) {
        if answer.status != expected.status || answer.body != expected.body {
            self.found.add(|| {
                let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
                let (now, first) = (text(answer.body), text(&expected.body));
                format!("a replay is answered {} {now}, and the first was {} {first}", answer.status, expected.status)
            });
        }
    }
}

impl Engine<'_> {
    fn run_until_answered(&mut self, mut poll: Poll) -> Result<()> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        for index in 0..self.connections.len() {
            self.send(index, self.shape.in_flight)?;
        }
        let timeout = self.shape.duration.unwrap_or_default() + ANSWER_TIMEOUT;
        while self.connections.iter().any(|connection| !connection.in_flight_since.is_empty()) {
            match poll.poll(&mut events, Some(LONGEST_WAIT)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled?,
            }
            for event in &events {
                let answered = self.receive(event.token().0)?;
                self.send(event.token().0, answered)?;
            }
            ensure!(self.began.elapsed() < timeout, "replays are unanswered after {} s", timeout.as_secs());
        }
        Ok(())
    }

    fn next(&mut self, server: usize) -> Option<usize> {
        let next = self.next[server];
        let is_due = match self.shape.duration {
            Some(duration) => self.began.elapsed() < duration,
            None => next < self.expected.len(),
        };
        self.next[server] += 1;
        is_due.then_some(next % self.expected.len())
    }

    /// Sends up to `count` requests in one write.
    fn send(&mut self, index: usize, count: usize) -> Result<()> {
        self.out.clear();
        for _ in 0..count {
            let Some(next) = self.next(self.connections[index].server) else { break };
            self.out.extend_from_slice(&self.expected[next].request);
            let now = self.began.elapsed().as_nanos() as u64;
            self.connections[index].in_flight_since.push_back((next, now));
        }
        if self.out.is_empty() {
            return Ok(());
        }
        // The requests in flight on a connection are far smaller than its send buffer.
        let written = self.connections[index].stream.write(&self.out)?;
        ensure!(written == self.out.len(), "requests were sent in part");
        Ok(())
    }

    /// Reads and compares answers. Returns the number of complete ones.
    fn receive(&mut self, index: usize) -> Result<usize> {
        let mut answered = 0;
        loop {
            let connection = &mut self.connections[index];
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
            while let Some((answer, length)) = HttpAnswer::parse(&bytes[at..])? {
                let (which, sent) = connection.in_flight_since.pop_front().context("an answer without a request")?;
                self.replay.compare(&self.expected[which], &answer);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;

    /// Starts a server that answers every request with its path, and `/broken` with a different body.
    fn start_echo_server() -> SocketAddr {
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
                        stream.write_all(answer.as_bytes()).expect("written");
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
    fn without_a_duration_each_request_is_sent_once_to_each_server() {
        let servers = [start_echo_server(), start_echo_server()];
        let all: Vec<Expected> = ["/a", "/bb", "/broken", "/dddd", "/e"].map(expected).into();
        let shape = LoadShape { connections: 2, in_flight: 3, duration: None };
        let replay = Replay::run(&servers, &shape, &all).expect("the replay ends");
        assert_eq!(replay.answers, 10);
        assert_eq!(replay.found.count(), 2, "one for each server");
    }

    #[test]
    fn with_a_duration_requests_repeat_until_it_ends() {
        let servers = [start_echo_server()];
        let shape = LoadShape { connections: 1, in_flight: 2, duration: Some(Duration::from_millis(50)) };
        let replay = Replay::run(&servers, &shape, &[expected("/a"), expected("/b")]).expect("the replay ends");
        assert!(replay.answers > 2);
        assert_eq!(replay.found.count(), 0);
    }
}

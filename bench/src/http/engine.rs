//! The event loop that sends requests and receives answers.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::{HttpAnswer, Load, Next};

/// Events taken per poll.
const MAX_EVENTS: usize = 1_024;
/// Buffer of one read; every answer of the API fits.
const READ_BYTES: usize = 64 * 1024;
/// Longest wait for an event when no request is due.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Reconnections after which a run fails.
const MAX_RECONNECTS: usize = 1_000;

/// Limits of a run.
pub struct LoadLimits {
    /// Connections to each server.
    pub connections: usize,
    /// Duration of the whole run.
    pub timeout: Duration,
}

struct LoadConnection {
    stream: TcpStream,
    server: usize,
    /// The request in flight.
    ticket: Option<u32>,
    /// The received part of its answer.
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
    for server in 0..servers.len() {
        for _ in 0..limits.connections {
            let stream = engine.connect(server, engine.connections.len())?;
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

    fn connect(&self, server: usize, token: usize) -> Result<TcpStream> {
        let address = self.servers[server];
        // A blocking connect is fine here: it happens before the clock starts, or after a lost connection.
        let stream = std::net::TcpStream::connect(address).with_context(|| format!("cannot reach {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        self.poll.registry().register(&mut stream, Token(token), Interest::READABLE)?;
        Ok(stream)
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
        let stream = self.connect(server, index)?;
        self.connections[index].stream = stream;
        self.connections[index].partial.clear();
        Ok(())
    }
}

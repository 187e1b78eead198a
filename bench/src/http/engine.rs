//! The loop that sends and receives.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::{Answer, Load, Next};

/// Connections looked at per turn.
const MAX_EVENTS: usize = 1_024;
/// One reading; every answer of the API fits.
const READ_BYTES: usize = 64 * 1024;
/// How long to wait for an event when nothing is due.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Connections may be lost and made again this often before the run is given up.
const MAX_RECONNECTS: usize = 1_000;

/// What a run may take.
pub struct Limits {
    /// Connections to each server.
    pub connections: usize,
    /// The whole run.
    pub patience: Duration,
}

struct Connection {
    stream: TcpStream,
    server: usize,
    /// The request in the air.
    ticket: Option<u32>,
    /// The part of its answer that has arrived.
    partial: Vec<u8>,
}

struct Engine<'a, L> {
    servers: &'a [SocketAddr],
    load: &'a mut L,
    poll: Poll,
    connections: Vec<Connection>,
    /// Connections without a request in the air, by server.
    idle: Vec<Vec<usize>>,
    in_the_air: usize,
    reconnects: usize,
    began: Instant,
    out: Vec<u8>,
    chunk: Vec<u8>,
}

/// Runs a load against some servers until it has nothing more to send and every answer has come.
///
/// # Errors
/// When a server cannot be reached, or the patience is over.
pub fn run<L: Load>(servers: &[SocketAddr], limits: &Limits, load: &mut L) -> Result<()> {
    let poll = Poll::new()?;
    let mut engine = Engine {
        servers,
        load,
        poll,
        connections: Vec::new(),
        idle: vec![Vec::new(); servers.len()],
        in_the_air: 0,
        reconnects: 0,
        began: Instant::now(),
        out: Vec::with_capacity(1_024),
        chunk: vec![0; READ_BYTES],
    };
    for server in 0..servers.len() {
        for _ in 0..limits.connections {
            let stream = engine.connect(server, engine.connections.len())?;
            engine.idle[server].push(engine.connections.len());
            engine.connections.push(Connection { stream, server, ticket: None, partial: Vec::new() });
        }
    }
    engine.began = Instant::now();
    engine.work(limits.patience)
}

impl<L: Load> Engine<'_, L> {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn connect(&self, server: usize, token: usize) -> Result<TcpStream> {
        let address = self.servers[server];
        // Waiting for the handshake is fine: it happens before the clock starts, or after a loss.
        let stream = std::net::TcpStream::connect(address).with_context(|| format!("cannot reach {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        self.poll.registry().register(&mut stream, Token(token), Interest::READABLE)?;
        Ok(stream)
    }

    fn work(&mut self, patience: Duration) -> Result<()> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        loop {
            let Some(wait) = self.hand_out()? else { return Ok(()) };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled?,
            }
            for event in &events {
                self.receive(event.token().0)?;
            }
            if self.began.elapsed() > patience {
                bail!("{} requests are unanswered after {} s", self.in_the_air, patience.as_secs());
            }
        }
    }

    /// Sends whatever is due on connections that are free. How long to wait then; `None`: all is done.
    fn hand_out(&mut self) -> Result<Option<Duration>> {
        let mut wait = LONGEST_WAIT;
        let mut done = 0;
        for server in 0..self.servers.len() {
            while let Some(place) = self.idle[server].pop() {
                let now = self.now();
                self.out.clear();
                match self.load.next(server, now, &mut self.out) {
                    Next::Send(ticket) => {
                        self.send(place, ticket)?;
                        continue;
                    }
                    Next::At(instant) => wait = wait.min(Duration::from_nanos(instant.saturating_sub(now))),
                    Next::AfterAnswer => {}
                    Next::Done => done += 1,
                }
                self.idle[server].push(place);
                break;
            }
        }
        Ok((done < self.servers.len() || self.in_the_air > 0).then_some(wait))
    }

    fn send(&mut self, place: usize, ticket: u32) -> Result<()> {
        let connection = &mut self.connections[place];
        connection.ticket = Some(ticket);
        self.in_the_air += 1;
        // A request is smaller than any socket's buffer, and nothing else is in it.
        match connection.stream.write(&self.out) {
            Ok(written) if written == self.out.len() => Ok(()),
            Ok(_) => self.lose(place, "the request went out in part"),
            Err(error) => self.lose(place, &error.to_string()),
        }
    }

    fn receive(&mut self, place: usize) -> Result<()> {
        loop {
            let connection = &mut self.connections[place];
            let read = match connection.stream.read(&mut self.chunk) {
                Ok(0) => return self.lose(place, "the server closed the connection"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.lose(place, &error.to_string()),
            };
            let now = self.began.elapsed().as_nanos() as u64;
            let whole = if connection.partial.is_empty() {
                &self.chunk[..read]
            } else {
                connection.partial.extend_from_slice(&self.chunk[..read]);
                &connection.partial
            };
            match Answer::parse(whole) {
                Ok(Some((answer, length))) if length == whole.len() && connection.ticket.is_some() => {
                    let ticket = connection.ticket.take().unwrap_or_default();
                    self.load.answered(ticket, now, &answer);
                    connection.partial.clear();
                    self.in_the_air -= 1;
                    self.idle[connection.server].push(place);
                }
                Ok(Some(_)) => return self.lose(place, "the server said more than it was asked"),
                Ok(None) if connection.partial.is_empty() => connection.partial.extend_from_slice(&self.chunk[..read]),
                Ok(None) => {}
                Err(error) => return self.lose(place, &error.to_string()),
            }
            if read < READ_BYTES {
                // The socket is empty; what comes later is a new event.
                return Ok(());
            }
        }
    }

    /// A connection is of no more use: its request counts as lost, and another takes its place.
    fn lose(&mut self, place: usize, why: &str) -> Result<()> {
        let now = self.now();
        let server = self.connections[place].server;
        if let Some(ticket) = self.connections[place].ticket.take() {
            self.load.lost(ticket, now, why);
            self.in_the_air -= 1;
            self.idle[server].push(place);
        }
        self.reconnects += 1;
        if self.reconnects > MAX_RECONNECTS {
            bail!("connections break again and again: {why}");
        }
        let stream = self.connect(server, place)?;
        self.connections[place].stream = stream;
        self.connections[place].partial.clear();
        Ok(())
    }
}

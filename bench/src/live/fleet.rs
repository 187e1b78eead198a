//! Many readers of one live map in one thread, cheap enough to share the machine with the server.
//!
//! During a measurement a reader does three things with a message: it checks that the message follows
//! the previous one, looks up whether these bytes are known, and logs their number. A distinct message is decoded
//! once, and each change is timed at a sample of readers. The checker replays the messages afterwards to get every
//! reader's final map.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::frame::{MapMessage, Protocol};
use crate::histogram::Histogram;
use crate::socket::{self, BINARY, CLOSE, PING, PONG, TEXT};

/// Longest interval at which the thread reads the shared state.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Timeout for all readers of a fleet to have their first map.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_EVENTS: usize = 2_048;
const READ_BYTES: usize = 64 * 1024;
/// One reader in this many is timed.
const SAMPLE: usize = 16;
/// Number of recent messages compared before the hash lookup: readers in step get the same ones.
const RECENT: usize = 4;

/// State shared by the main thread and the reader thread.
pub struct SharedState {
    began: Instant,
    measuring: AtomicBool,
    stalled: AtomicBool,
    stop: AtomicBool,
    /// Intended instant of the last change of each seat, nanoseconds from `began`; 0 without a change.
    due: Vec<AtomicU64>,
    /// The version that [`Fleet::wait_for`] waits for; 0 when it does not wait.
    target: AtomicU64,
    /// Number of readers that have the target version.
    arrived: AtomicU64,
}

impl SharedState {
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Sets the intended instant of a seat's last change.
    pub fn set_due(&self, seat: u32, due: u64) {
        self.due[seat as usize].store(due, Ordering::Relaxed);
    }

    pub fn set_measuring(&self, on: bool) {
        self.measuring.store(on, Ordering::Relaxed);
    }

    /// Stops or resumes reading at the stallable readers.
    pub fn set_stalled(&self, on: bool) {
        self.stalled.store(on, Ordering::Relaxed);
    }
}

/// Options of a fleet.
#[derive(Clone, Copy)]
pub struct FleetOptions {
    pub protocol: Protocol,
    pub sockets: usize,
    /// Number of readers that can stop reading.
    pub stallable: usize,
}

/// Connected readers in their thread.
pub struct Fleet {
    pub state: Arc<SharedState>,
    thread: JoinHandle<Result<FleetLog>>,
    sockets: usize,
}

/// Open sockets: the stream, the bytes received after the handshake, and whether it can stall.
type Sockets = Vec<(std::net::TcpStream, Vec<u8>, bool)>;

struct MapReader {
    stream: TcpStream,
    partial: Vec<u8>,
    stallable: bool,
    log: ReaderLog,
}

/// The messages a reader received, by number.
#[derive(Default)]
pub struct ReaderLog {
    /// The version of the reader's map; without versions, the number of messages.
    pub version: u64,
    /// Messages in order, as indexes into [`FleetLog::messages`].
    pub received: Vec<u32>,
    /// Number of messages received before the reader resumed after a stall.
    pub resumed_at: Option<usize>,
    pub error: Option<String>,
}

/// The result of the reader thread.
#[derive(Default)]
pub struct FleetLog {
    /// Every distinct message.
    pub messages: Vec<MapMessage>,
    pub readers: Vec<ReaderLog>,
    /// Changes that reached a reader's map during the measurement.
    pub delivered: u64,
    /// From the intended instant of a change to its arrival, at a sample of readers that never stall.
    pub latencies: Histogram,
}

impl Fleet {
    /// Opens all sockets and waits until each has its first message, if its protocol has one.
    pub fn open(address: SocketAddr, path: &str, seats: u32, options: FleetOptions) -> Result<Self> {
        let state = Arc::new(SharedState {
            began: Instant::now(),
            measuring: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            due: (0..seats).map(|_| AtomicU64::new(0)).collect(),
            target: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
        });
        let mut sockets = Vec::new();
        for number in 0..options.sockets {
            let stallable = number < options.stallable;
            let (stream, rest) = socket::connect(address, path, stallable)?;
            sockets.push((stream, rest, stallable));
        }
        let own_state = Arc::clone(&state);
        let thread = std::thread::spawn(move || ReaderThread::new(own_state, options.protocol, sockets)?.run());
        let fleet = Self { state, thread, sockets: options.sockets };
        // A reader of the peer gets no map.
        if options.protocol != Protocol::SeedNode {
            let arrived = fleet.wait_for(1, FIRST_MESSAGE_TIMEOUT);
            anyhow::ensure!(arrived == options.sockets as u64, "{arrived} of {} readers have a map", options.sockets);
        }
        Ok(fleet)
    }

    /// Waits until every reader has this version. Returns how many have it at the end of the timeout.
    pub fn wait_for(&self, version: u64, timeout: Duration) -> u64 {
        self.state.arrived.store(0, Ordering::Relaxed);
        self.state.target.store(version, Ordering::Relaxed);
        let began = Instant::now();
        let arrived = loop {
            let arrived = self.state.arrived.load(Ordering::Relaxed);
            if arrived >= self.sockets as u64 || began.elapsed() > timeout {
                break arrived;
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        self.state.target.store(0, Ordering::Relaxed);
        arrived
    }

    pub fn close(self) -> Result<FleetLog> {
        self.state.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the reading thread panicked"))?
    }
}

struct ReaderThread {
    state: Arc<SharedState>,
    counted_at: Instant,
    protocol: Protocol,
    poll: Poll,
    readers: Vec<MapReader>,
    log: FleetLog,
    /// The bytes of every distinct message.
    bytes: Vec<Vec<u8>>,
    /// Numbers of messages by the hash of their bytes.
    known: HashMap<u64, Vec<u32>>,
    recent: [u32; RECENT],
    hasher: RandomState,
}

impl ReaderThread {
    fn new(state: Arc<SharedState>, protocol: Protocol, sockets: Sockets) -> Result<Self> {
        let poll = Poll::new()?;
        let mut readers = Vec::new();
        for (index, (stream, partial, stallable)) in sockets.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            readers.push(MapReader { stream, partial, stallable, log: ReaderLog::default() });
        }
        let (log, hasher) = (FleetLog::default(), RandomState::new());
        let (bytes, known, recent) = (Vec::new(), HashMap::new(), [u32::MAX; RECENT]);
        let counted_at = state.began;
        Ok(Self { state, counted_at, protocol, poll, readers, log, bytes, known, recent, hasher })
    }

    fn run(mut self) -> Result<FleetLog> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        let mut chunk = vec![0; READ_BYTES];
        let mut was_stalled = false;
        // Bytes received with the handshake raise no event.
        for index in 0..self.readers.len() {
            self.read(index, &mut chunk);
        }
        while !self.state.stop.load(Ordering::Relaxed) {
            match self.poll.poll(&mut events, Some(POLL_INTERVAL)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled?,
            }
            let stalled = self.state.stalled.load(Ordering::Relaxed);
            for event in &events {
                let index = event.token().0;
                if !(stalled && self.readers[index].stallable) {
                    self.read(index, &mut chunk);
                }
            }
            if was_stalled && !stalled {
                for index in 0..self.readers.len() {
                    if self.readers[index].stallable {
                        self.readers[index].log.resumed_at = Some(self.readers[index].log.received.len());
                        self.read(index, &mut chunk);
                    }
                }
            }
            was_stalled = stalled;
            self.count_arrived();
        }
        self.log.readers = self.readers.into_iter().map(|reader| reader.log).collect();
        Ok(self.log)
    }

    /// Publishes how many readers have the target version; not at every poll, there may be thousands of readers.
    fn count_arrived(&mut self) {
        let target = self.state.target.load(Ordering::Relaxed);
        if target == 0 || self.counted_at.elapsed() < POLL_INTERVAL {
            return;
        }
        self.counted_at = Instant::now();
        let arrived = self.readers.iter().filter(|reader| reader.log.version >= target).count();
        self.state.arrived.store(arrived as u64, Ordering::Relaxed);
    }

    fn read(&mut self, index: usize, chunk: &mut [u8]) {
        if self.readers[index].log.error.is_none()
            && let Err(error) = self.try_read(index, chunk)
        {
            self.readers[index].log.error = Some(error.to_string());
        }
    }

    fn try_read(&mut self, index: usize, chunk: &mut [u8]) -> Result<()> {
        self.handle_frames(index, &[])?;
        loop {
            let read = match self.readers[index].stream.read(chunk) {
                Ok(0) => bail!("the server closed the socket"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.handle_frames(index, &chunk[..read])?;
            if read < chunk.len() {
                return Ok(());
            }
        }
    }

    /// Handles all complete frames of the buffered and the new bytes.
    fn handle_frames(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        let mut partial = std::mem::take(&mut self.readers[index].partial);
        let joined = !partial.is_empty();
        if joined {
            partial.extend_from_slice(bytes);
        }
        let all: &[u8] = if joined { &partial } else { bytes };
        let mut at = 0;
        while let Some((kind, payload, length)) = socket::frame(&all[at..])? {
            match kind {
                TEXT | BINARY => self.message(index, payload)?,
                PING => {
                    // A pong that does not fit into the send buffer may be dropped.
                    let _ = self.readers[index].stream.write(&PONG);
                }
                CLOSE => bail!("the server sent a close frame"),
                _ => {}
            }
            at += length;
        }
        let rest = all[at..].to_vec();
        self.readers[index].partial = rest;
        Ok(())
    }

    fn message(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        let number = self.number_of(bytes)?;
        let log = &mut self.readers[index].log;
        let before = log.version;
        match &self.log.messages[number as usize] {
            MapMessage::Other(_) => return Ok(()),
            MapMessage::Snapshot { version, .. } => log.version = *version,
            MapMessage::Event { .. } => log.version = before + 1,
            MapMessage::Delta { from, to, .. } if *from == before => log.version = *to,
            MapMessage::Delta { from, to, .. } => bail!("a step from {from} to {to} reached a reader at {before}"),
        }
        log.received.push(number);
        if self.state.measuring.load(Ordering::Relaxed) {
            self.log.delivered += self.readers[index].log.version.saturating_sub(before);
            if index.is_multiple_of(SAMPLE) && !self.readers[index].stallable {
                self.record_latencies(number);
            }
        }
        Ok(())
    }

    /// Records the latency of every change of a message.
    fn record_latencies(&mut self, number: u32) {
        let now = self.state.now();
        let (MapMessage::Delta { changes, .. } | MapMessage::Event { changes }) = &self.log.messages[number as usize]
        else {
            return;
        };
        let dues = changes.iter().filter_map(|(seat, _)| self.state.due.get(*seat as usize));
        for due in dues.map(|due| due.load(Ordering::Relaxed)).filter(|due| *due > 0) {
            self.log.latencies.record(now.saturating_sub(due));
        }
    }

    /// Returns the number of a message: a new one for unknown bytes.
    fn number_of(&mut self, bytes: &[u8]) -> Result<u32> {
        let is = |number: &u32| self.bytes.get(*number as usize).is_some_and(|known| known == bytes);
        if let Some(number) = self.recent.iter().copied().find(is) {
            return Ok(number);
        }
        let hash = self.hasher.hash_one(bytes);
        let number = match self.known.get(&hash).and_then(|numbers| numbers.iter().copied().find(|number| is(number))) {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.bytes.len())?;
                self.log.messages.push(self.protocol.read(bytes).context("a message cannot be parsed")?);
                self.bytes.push(bytes.to_vec());
                self.known.entry(hash).or_default().push(number);
                number
            }
        };
        self.recent.rotate_right(1);
        self.recent[0] = number;
        Ok(number)
    }
}

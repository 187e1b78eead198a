//! Many readers of one live map, in few threads, cheap enough to share the machine with the server.
//!
//! While the clock runs a reader does three things with a message: sees that it follows the one before,
//! looks up whether these bytes came before, and notes their number. What the messages say is read only
//! for a sample of readers (to time each change), and for all of them afterwards, when the checker wants
//! every reader's final map.

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

use super::protocol::{Meaning, Protocol};
use crate::histogram::Histogram;
use crate::socket::{self, BINARY, CLOSE, PING, PONG, TEXT};

/// How often a thread looks whether it is told something.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Until all readers of a fleet have their first map.
const FIRST_MESSAGE: Duration = Duration::from_secs(60);
/// Events taken at once.
const MAX_EVENTS: usize = 2_048;
/// One reading.
const READ_BYTES: usize = 64 * 1024;
/// Of so many readers one is timed.
const SAMPLE: usize = 16;
/// The last messages seen: in step, all readers get the same.
const RECENT: usize = 4;

/// What the main thread tells the readers, and they tell it.
pub struct Board {
    began: Instant,
    measuring: AtomicBool,
    stalled: AtomicBool,
    stop: AtomicBool,
    /// When the last change of each seat was meant to happen, nanoseconds from `began`.
    due: Vec<AtomicU64>,
    /// The version a reader must have to be up to date; 0 until it is known.
    target: AtomicU64,
    /// Readers of each thread who have it.
    arrived: Vec<AtomicU64>,
}

impl Board {
    /// Nanoseconds from the beginning.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// A change of this seat was meant to happen at that instant.
    pub fn note(&self, seat: u32, due: u64) {
        self.due[seat as usize].store(due, Ordering::Relaxed);
    }

    /// Counts from now on, or no longer.
    pub fn measure(&self, on: bool) {
        self.measuring.store(on, Ordering::Relaxed);
    }

    /// Those who can stop reading, or go on.
    pub fn stall(&self, on: bool) {
        self.stalled.store(on, Ordering::Relaxed);
    }
}

/// What to open.
#[derive(Clone, Copy)]
pub struct Plan {
    /// What the server speaks.
    pub protocol: Protocol,
    /// Readers.
    pub sockets: usize,
    /// How many of them can be told to stop reading.
    pub stallable: usize,
    /// Threads to read with.
    pub threads: usize,
}

/// Readers under way.
pub struct Fleet {
    /// The board.
    pub board: Arc<Board>,
    threads: Vec<JoinHandle<Result<Sheet>>>,
    sockets: usize,
}

/// Open sockets for a thread: the stream, what came with the handshake, whether it can stall.
type Crew = Vec<(std::net::TcpStream, Vec<u8>, bool)>;

/// One reader.
struct Reader {
    stream: TcpStream,
    partial: Vec<u8>,
    stallable: bool,
    log: Log,
}

/// What a reader has seen, by numbers of messages.
#[derive(Default)]
pub struct Log {
    /// The version it is at.
    pub version: u64,
    /// Messages in order, as numbers into [`Sheet::messages`].
    pub path: Vec<u32>,
    /// How many it had got when it went on reading after a stall.
    pub woke_at: Option<usize>,
    /// What went wrong, if anything did.
    pub broken: Option<String>,
}

/// What a thread brings home.
#[derive(Default)]
pub struct Sheet {
    /// Every message, once.
    pub messages: Vec<Vec<u8>>,
    /// Every reader.
    pub logs: Vec<Log>,
    /// Changes of the source that came to be reflected in a view, while measuring.
    pub delivered: u64,
    /// From the intended instant of a change to its arrival, at a sample of readers who never stall.
    pub latencies: Histogram,
}

impl Fleet {
    /// Opens all sockets, and waits until each has its first message.
    pub fn open(address: SocketAddr, path: &str, seats: u32, plan: Plan) -> Result<Self> {
        let board = Arc::new(Board {
            began: Instant::now(),
            measuring: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            due: (0..seats).map(|_| AtomicU64::new(0)).collect(),
            target: AtomicU64::new(0),
            arrived: (0..plan.threads).map(|_| AtomicU64::new(0)).collect(),
        });
        let mut crews: Vec<Crew> = (0..plan.threads).map(|_| Vec::new()).collect();
        for number in 0..plan.sockets {
            let stallable = number < plan.stallable;
            let (stream, rest) = socket::connect(address, path, stallable)?;
            crews[number % plan.threads].push((stream, rest, stallable));
        }
        let mut threads = Vec::new();
        for (place, crew) in crews.into_iter().enumerate() {
            let board = Arc::clone(&board);
            threads.push(std::thread::spawn(move || Thread::new(board, place, plan.protocol, crew)?.work()));
        }
        let fleet = Self { board, threads, sockets: plan.sockets };
        let arrived = fleet.wait_for(1, FIRST_MESSAGE);
        anyhow::ensure!(arrived == plan.sockets as u64, "{arrived} of {} readers have a map", plan.sockets);
        Ok(fleet)
    }

    /// Waits until every reader has this version; how many have it when patience is over.
    pub fn wait_for(&self, version: u64, patience: Duration) -> u64 {
        self.board.arrived.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.board.target.store(version, Ordering::Relaxed);
        let began = Instant::now();
        let arrived = loop {
            let arrived = self.board.arrived.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            if arrived >= self.sockets as u64 || began.elapsed() > patience {
                break arrived;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        self.board.target.store(0, Ordering::Relaxed);
        arrived
    }

    /// Closes all sockets and returns what was seen, a sheet a thread.
    pub fn close(self) -> Result<Vec<Sheet>> {
        self.board.stop.store(true, Ordering::Relaxed);
        let ended = self.threads.into_iter().map(JoinHandle::join);
        ended.map(|sheet| sheet.map_err(|_| anyhow::anyhow!("a reading thread panicked"))?).collect()
    }
}

struct Thread {
    board: Arc<Board>,
    place: usize,
    counted_at: Instant,
    protocol: Protocol,
    poll: Poll,
    readers: Vec<Reader>,
    sheet: Sheet,
    known: HashMap<u64, Vec<u32>>,
    meanings: Vec<Meaning>,
    recent: [u32; RECENT],
    hasher: RandomState,
}

impl Thread {
    fn new(board: Arc<Board>, place: usize, protocol: Protocol, crew: Crew) -> Result<Self> {
        let poll = Poll::new()?;
        let mut readers = Vec::new();
        for (place, (stream, partial, stallable)) in crew.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(place), Interest::READABLE)?;
            readers.push(Reader { stream, partial, stallable, log: Log::default() });
        }
        let (sheet, hasher) = (Sheet::default(), RandomState::new());
        let (known, meanings, recent) = (HashMap::new(), Vec::new(), [u32::MAX; RECENT]);
        let counted_at = board.began;
        Ok(Self { board, place, counted_at, protocol, poll, readers, sheet, known, meanings, recent, hasher })
    }

    fn work(mut self) -> Result<Sheet> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        let mut chunk = vec![0; READ_BYTES];
        let mut was_stalled = false;
        // What came with the handshake is there already.
        for place in 0..self.readers.len() {
            self.read(place, &mut chunk);
        }
        while !self.board.stop.load(Ordering::Relaxed) {
            match self.poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled?,
            }
            let stalled = self.board.stalled.load(Ordering::Relaxed);
            for event in &events {
                let place = event.token().0;
                if !(stalled && self.readers[place].stallable) {
                    self.read(place, &mut chunk);
                }
            }
            if was_stalled && !stalled {
                for place in 0..self.readers.len() {
                    if self.readers[place].stallable {
                        self.readers[place].log.woke_at = Some(self.readers[place].log.path.len());
                        self.read(place, &mut chunk);
                    }
                }
            }
            was_stalled = stalled;
            self.count_arrived();
        }
        self.sheet.logs = self.readers.into_iter().map(|reader| reader.log).collect();
        Ok(self.sheet)
    }

    /// Tells the board how many have the version it wants; not at every turn, there may be thousands.
    fn count_arrived(&mut self) {
        let target = self.board.target.load(Ordering::Relaxed);
        if target == 0 || self.counted_at.elapsed() < LOOK_EVERY {
            return;
        }
        self.counted_at = Instant::now();
        let arrived = self.readers.iter().filter(|reader| reader.log.version >= target).count();
        self.board.arrived[self.place].store(arrived as u64, Ordering::Relaxed);
    }

    fn read(&mut self, place: usize, chunk: &mut [u8]) {
        if self.readers[place].log.broken.is_none()
            && let Err(error) = self.try_read(place, chunk)
        {
            self.readers[place].log.broken = Some(error.to_string());
        }
    }

    fn try_read(&mut self, place: usize, chunk: &mut [u8]) -> Result<()> {
        self.take(place, &[])?;
        loop {
            let read = match self.readers[place].stream.read(chunk) {
                Ok(0) => bail!("the server closed the socket"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.take(place, &chunk[..read])?;
            if read < chunk.len() {
                return Ok(());
            }
        }
    }

    /// Takes all whole frames out of what is there now.
    fn take(&mut self, place: usize, bytes: &[u8]) -> Result<()> {
        let mut partial = std::mem::take(&mut self.readers[place].partial);
        let joined = !partial.is_empty();
        if joined {
            partial.extend_from_slice(bytes);
        }
        let all: &[u8] = if joined { &partial } else { bytes };
        let mut at = 0;
        while let Some((kind, payload, length)) = socket::frame(&all[at..])? {
            match kind {
                TEXT | BINARY => self.message(place, payload)?,
                PING => {
                    // A full buffer towards the server is its problem: it asked.
                    let _ = self.readers[place].stream.write(&PONG);
                }
                CLOSE => bail!("the server said goodbye"),
                _ => {}
            }
            at += length;
        }
        let rest = all[at..].to_vec();
        self.readers[place].partial = rest;
        Ok(())
    }

    fn message(&mut self, place: usize, bytes: &[u8]) -> Result<()> {
        let number = self.number_of(bytes)?;
        let log = &mut self.readers[place].log;
        let (before, meaning) = (log.version, self.meanings[number as usize]);
        match meaning {
            Meaning::Nothing => return Ok(()),
            Meaning::Whole { version } => log.version = version,
            Meaning::Step { from, to } if from == log.version => log.version = to,
            Meaning::Step { from, to } => bail!("a step from {from} to {to} reached a reader at {}", log.version),
        }
        log.path.push(number);
        if self.board.measuring.load(Ordering::Relaxed) {
            self.sheet.delivered += self.readers[place].log.version.saturating_sub(before);
            if place.is_multiple_of(SAMPLE) && !self.readers[place].stallable {
                self.time(number);
            }
        }
        Ok(())
    }

    /// Times every change of a message.
    fn time(&mut self, number: u32) {
        let now = self.board.now();
        let (board, latencies) = (&self.board, &mut self.sheet.latencies);
        self.protocol.changes(&self.sheet.messages[number as usize], |seat, _| {
            if let Some(due) =
                board.due.get(seat as usize).map(|due| due.load(Ordering::Relaxed)).filter(|due| *due > 0)
            {
                latencies.record(now.saturating_sub(due));
            }
        });
    }

    /// The number of a message: a new one if these bytes were never seen.
    fn number_of(&mut self, bytes: &[u8]) -> Result<u32> {
        let messages = &self.sheet.messages;
        let is = |number: &u32| messages.get(*number as usize).is_some_and(|known| known == bytes);
        if let Some(number) = self.recent.iter().copied().find(is) {
            return Ok(number);
        }
        let hash = self.hasher.hash_one(bytes);
        let number = match self.known.get(&hash).and_then(|numbers| numbers.iter().copied().find(|number| is(number))) {
            Some(number) => number,
            None => {
                let meaning = self.protocol.meaning(bytes).context("a message that cannot be read")?;
                let number = u32::try_from(self.sheet.messages.len())?;
                self.sheet.messages.push(bytes.to_vec());
                self.meanings.push(meaning);
                self.known.entry(hash).or_default().push(number);
                number
            }
        };
        self.recent.rotate_right(1);
        self.recent[0] = number;
        Ok(number)
    }
}

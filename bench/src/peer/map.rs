//! Reading the map of a large show over HTTP, some seats held. A connection reads again when it has the whole map.

use anyhow::Result;

use super::attempts::{self, Attempts, TIMEOUT};
use super::{ComparedServer, Meter, RATE, Size, Turn, load_shows};
use crate::histogram::Histogram;
use crate::http::{self, ErrorCounts, HttpAnswer, Load, LoadLimits, Next};
use crate::report::ReportRow;

/// The phase.
pub const MAP: &str = "map";
/// Figure of the size of an answer.
pub const BYTES: &str = "bytes";

const CONNECTIONS: usize = 16;
/// One seat in this many is held.
const SEATS_PER_HOLD: u32 = 10;

pub fn turn(server: &mut dyn ComparedServer, size: &Size) -> Result<Turn> {
    let mut turn = Turn::default();
    let shows = server.create_shows(size.map_seats, 1)?;
    load_shows(server, &shows)?;
    let mut holds = Attempts::new(server.api(), &shows, (size.map_seats / SEATS_PER_HOLD) as usize);
    let limits = LoadLimits { connections: size.connections, timeout: TIMEOUT };
    http::run(&[server.address()], &limits, &mut holds)?;
    turn.found.join(attempts::check(server, &shows, &[&holds])?);

    let mut reads = MapReads::new(&server.map_path(&shows[0]), size.seconds);
    let meter = Meter::start(server)?;
    http::run(&[server.address()], &LoadLimits { connections: CONNECTIONS, timeout: TIMEOUT }, &mut reads)?;
    let count = reads.sent.len() as f64;
    let row = ReportRow::of("map", server.name())
        .with("phase", MAP)
        .with("seats", size.map_seats)
        .figure(RATE, count / (reads.last_answer as f64 / 1e9).max(1e-3))
        .latencies(&reads.latencies)
        .figure(BYTES, reads.bytes as f64 / count.max(1.0))
        .with("errors", reads.errors.count() + holds.errors.count());
    turn.rows.push(meter.add_to(row, count)?);
    server.clear(&shows)?;
    Ok(turn)
}

/// A load of reads of one map for some seconds.
struct MapReads {
    request: Vec<u8>,
    until: u64,
    /// When each read was sent, nanoseconds from the start.
    sent: Vec<u64>,
    last_answer: u64,
    latencies: Histogram,
    bytes: u64,
    errors: ErrorCounts,
}

impl MapReads {
    fn new(path: &str, seconds: f64) -> Self {
        Self {
            request: format!("GET {path} HTTP/1.1\r\nHost: rowlock\r\n\r\n").into_bytes(),
            until: (seconds * 1e9) as u64,
            sent: Vec::new(),
            last_answer: 0,
            latencies: Histogram::default(),
            bytes: 0,
            errors: ErrorCounts::default(),
        }
    }
}

impl Load for MapReads {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        if now >= self.until {
            return Next::Done;
        }
        out.extend_from_slice(&self.request);
        self.sent.push(now);
        Next::Send((self.sent.len() - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        self.latencies.record(now.saturating_sub(self.sent[ticket as usize]));
        self.last_answer = now;
        self.bytes += answer.body.len() as u64;
        if answer.status != 200 {
            self.errors.add(answer.status.to_string());
        }
    }

    fn lost(&mut self, _: u32, _: u64, why: &str) {
        self.errors.add(format!("no answer: {why}"));
    }
}

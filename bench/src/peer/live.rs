//! Fan-out: seats are held at a fixed rate while many readers follow the map. The CPU time is that of holds and delivery.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::attempts::{self, Attempts, TIMEOUT};
use super::{ComparedServer, Meter, Size, Turn, load_shows};
use crate::arrivals::{Spacing, schedule};
use crate::http::{self, HttpAnswer, Load, LoadLimits, Next};
use crate::live::{Fleet, FleetOptions, SharedState, check_readers};
use crate::random::Random;
use crate::report::ReportRow;

/// The phase.
pub const FAN_OUT: &str = "fan_out";

/// Seats of the show: more than are held, so that no seat changes twice.
const SEATS: u32 = 2_000;
/// Pause after the handshakes: the peer subscribes to a channel after them.
const SETTLE_TIME: Duration = Duration::from_millis(1_500);
/// Timeout for all readers to have the last change; a reader without it is late.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);

pub fn turn(server: &mut dyn ComparedServer, size: &Size) -> Result<Turn> {
    let mut turn = Turn::default();
    let shows = server.create_shows(SEATS, 1)?;
    let show = shows[0];
    load_shows(server, &shows)?;
    let options = FleetOptions { protocol: server.live_protocol(), sockets: size.readers, stallable: 0 };
    let fleet = Fleet::open(server.address(), &server.live_path(&show), show.seats, options)?;
    std::thread::sleep(SETTLE_TIME);

    let due = schedule(Spacing::Poisson, f64::from(size.changes_per_s), size.seconds, &mut Random::fresh());
    anyhow::ensure!(due.len() <= SEATS as usize, "{} changes of {SEATS} seats", due.len());
    let attempts = Attempts::new(server.api(), &shows, due.len());
    let readers = Arc::clone(&fleet.state);
    let mut changes = TimedAttempts { attempts, due, readers: &readers };
    let meter = Meter::start(server)?;
    fleet.state.set_measuring(true);
    let limits = LoadLimits { connections: size.connections, timeout: TIMEOUT };
    http::run(&[server.address()], &limits, &mut changes)?;
    let attempts = changes.attempts;
    let changed = attempts.granted() as u64;
    let version = server.version(&show, changed)?;
    let arrived = fleet.wait_for(version, DELIVERY_TIMEOUT);
    anyhow::ensure!(arrived > 0, "no reader of {} got every change", server.name());
    let row = ReportRow::of("live", server.name())
        .with("phase", FAN_OUT)
        .with("rate_per_s", size.changes_per_s)
        .with("sockets", size.readers)
        .with("late_readers", size.readers as u64 - arrived)
        .with("errors", attempts.errors.count());
    let row = meter.add_to(row, (arrived * changed) as f64)?;
    let log = fleet.close()?;
    turn.rows.push(row.latencies(&log.latencies));
    // Late readers are no violation, of Rowlock or the peer: they are printed.
    let stored = server.stored(&show)?;
    turn.found.join(check_readers(&log, &stored.map, version));
    turn.found.join(attempts::check(server, &shows, &[&attempts])?);
    server.clear(&shows)?;
    Ok(turn)
}

/// Attempts that are sent when they fall due; the readers know when.
struct TimedAttempts<'a> {
    attempts: Attempts<'a>,
    /// Nanoseconds from the start.
    due: Vec<u64>,
    readers: &'a SharedState,
}

impl Load for TimedAttempts<'_> {
    fn next(&mut self, server: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let number = self.attempts.sent();
        let Some(due) = self.due.get(number).copied() else { return Next::Done };
        if due > now {
            return Next::At(due);
        }
        let (_, seat) = self.attempts.target(number);
        self.readers.set_due(seat, self.readers.now().saturating_sub(now - due));
        self.attempts.next(server, now, out)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        self.attempts.answered(ticket, now, answer);
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        self.attempts.lost(ticket, now, why);
    }
}

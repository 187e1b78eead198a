//! A server with its readers and a source of changes, used by every part of `live`.

use std::collections::{HashMap, VecDeque};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use redis::Value;

use super::fleet::{Fleet, FleetLog, FleetOptions, SharedState};
use crate::arrivals::{Spacing, schedule};
use crate::checker::{self, AVAILABLE, Findings};
use crate::frame::{MapMessage, Protocol};
use crate::random::Random;
use crate::world::{ANSWER_HEAD, LockAttempt, Process, Script, Show, Store, World, free_port};

/// Timeout for all readers to receive the last change.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Sleep while no change is due; changes that fall due meanwhile are sent together.
const SLEEP: Duration = Duration::from_millis(1);
/// Distance in seats between consecutive changes.
const STRIDE: u64 = 7_919;
/// First element of a script's successful answer.
const OK: &[u8] = b"OK";

/// The baseline's name in results.
pub const JSON_PER_EVENT: &str = "json_per_event";
/// The same baseline on sockets with Nagle's algorithm.
pub const JSON_GATHERED: &str = "json_per_event_nagle";

/// The server variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerVariant {
    Candidate,
    /// The server in `baseline.rs` with TCP_NODELAY.
    JsonPerEvent,
    /// The same without TCP_NODELAY: the kernel joins texts until the last ones are acknowledged.
    JsonGathered,
}

impl ServerVariant {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::JsonPerEvent => JSON_PER_EVENT,
            Self::JsonGathered => JSON_GATHERED,
        }
    }

    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Candidate => Protocol::Frames,
            Self::JsonPerEvent | Self::JsonGathered => Protocol::Json,
        }
    }
}

/// A show and the server of its live map.
pub struct ServedShow {
    pub variant: ServerVariant,
    pub show: Show,
    pub process: Process,
    address: std::net::SocketAddr,
    path: String,
}

pub struct Measurement {
    pub changes: u64,
    pub server_micros: f64,
    /// Number of readers that received the last change in time.
    pub arrived: u64,
    pub grown: f64,
    pub log: FleetLog,
    pub found: Findings,
}

impl ServedShow {
    /// Starts a server for a new show.
    pub fn start(world: &mut World, variant: ServerVariant, seats: u32) -> Result<Self> {
        let show = world.loaded_show(seats)?;
        match variant {
            ServerVariant::Candidate => {
                let server = world.server("rowlock", None)?;
                let (address, process) = (server.address, server.process);
                Ok(Self { variant, show, process, address, path: show.live_path() })
            }
            ServerVariant::JsonPerEvent | ServerVariant::JsonGathered => {
                let address = free_port()?;
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["baseline-live", "--listen", &address.to_string()]);
                for (flag, key) in [("--channel", "changes"), ("--map", "map"), ("--version", "version")] {
                    command.arg(flag).arg(world.store.key(&show, key));
                }
                if variant == ServerVariant::JsonPerEvent {
                    command.arg("--nodelay");
                }
                command.env("REDIS_URL", &world.paths.redis_url);
                let mut process = Process::start(&mut command, variant.name(), &world.paths.logs)?;
                process.wait_for(address, "/healthz", Some(200))?;
                Ok(Self { variant, show, process, address, path: "/live".to_owned() })
            }
        }
    }

    /// Opens readers and waits `settle` for the server to be idle again.
    pub fn open_readers(&self, sockets: usize, stallable: usize, settle: Duration) -> Result<Fleet> {
        let options = FleetOptions { protocol: self.variant.protocol(), sockets, stallable };
        let fleet = Fleet::open(self.address, &self.path, self.show.seats, options)?;
        std::thread::sleep(settle);
        Ok(fleet)
    }

    /// Makes changes at `rate` for `seconds` while the fleet reads. With `stall`, its stallable readers
    /// stop reading meanwhile and resume afterwards.
    pub fn measure(
        &self,
        world: &mut World,
        fleet: Fleet,
        rate: f64,
        seconds: f64,
        stall: bool,
    ) -> Result<Measurement> {
        let source = ChangeSource::new(&mut world.store, self.show)?;
        let memory = self.process.memory()?;
        fleet.state.set_stalled(stall);
        let before = self.process.cpu()?;
        fleet.state.set_measuring(true);
        let changes = source.run(&mut world.store, &fleet.state, rate, seconds)?;
        fleet.state.set_measuring(false);
        let server_micros = self.process.cpu()?.micros_since(&before);
        let grown = self.process.memory()? as f64 - memory as f64;
        fleet.state.set_stalled(false);
        let version = world.store.version(&self.show)?;
        let arrived = fleet.wait_for(version, DELIVERY_TIMEOUT);
        let log = fleet.close()?;
        let stored = world.store.stored(&self.show)?.map;
        // An overloaded baseline may have late readers, which are no violation. The candidate may not.
        let must_have = if self.variant == ServerVariant::Candidate { 0 } else { version };
        let found = check(&log, &stored, must_have);
        Ok(Measurement { changes, server_micros, arrived, grown, log, found })
    }
}

/// A source of seat changes at a rate. It calls the server's scripts with one seat a call, so each change increments the
/// version and is announced. Half of the seats are held at any time. A seat changes again only after all others did, so
/// that a merged delta hides no change.
struct ChangeSource {
    lock: Script,
    release: Script,
    show: Show,
    /// Hold and owner of the held seats, in order.
    held: VecDeque<(String, String)>,
    next: u64,
}

impl ChangeSource {
    fn new(store: &mut Store, show: Show) -> Result<Self> {
        let (lock, release) = (store.script("lock")?, store.script("release")?);
        Ok(Self { lock, release, show, held: VecDeque::new(), next: 0 })
    }

    /// Changes seats at `rate` a second for `seconds`, by the clock of the shared state. Returns the number of changes.
    fn run(mut self, store: &mut Store, state: &SharedState, rate: f64, seconds: f64) -> Result<u64> {
        let mut random = Random::fresh();
        let instants = schedule(Spacing::Poisson, rate, seconds, &mut random);
        let from = state.now();
        let mut done = 0;
        while done < instants.len() {
            let now = state.now() - from;
            let due = instants[done..].iter().take_while(|instant| **instant <= now).count();
            if due == 0 {
                std::thread::sleep(SLEEP);
                continue;
            }
            let mut packed = Vec::new();
            for instant in &instants[done..done + due] {
                let (seat, call) = self.next_call(store, &mut random);
                // 0 means that the seat has not changed.
                state.set_due(seat, (from + instant).max(1));
                packed.extend_from_slice(&call.get_packed_command());
            }
            store.send(&packed, due)?.iter().try_for_each(check_answer)?;
            done += due;
        }
        Ok(instants.len() as u64)
    }

    /// Locks the next seat, or releases the longest held one when half of the seats are held.
    fn next_call(&mut self, store: &Store, random: &mut Random) -> (u32, redis::Cmd) {
        let seats = u64::from(self.show.seats);
        let seat_of = |turn: u64| (turn * STRIDE % seats) as u32;
        if self.held.len() as u64 * 2 >= seats
            && let Some((hold, owner)) = self.held.pop_front()
        {
            let seat = seat_of(self.next - seats / 2);
            let arguments = [hold.as_bytes(), owner.as_bytes()];
            return (seat, store.call(&self.release, &self.show, &arguments));
        }
        let attempt = LockAttempt { seat: seat_of(self.next), hold: random.id(), owner: random.hex() };
        self.next += 1;
        let call = store.lock_call(&self.lock, &self.show, std::slice::from_ref(&attempt));
        self.held.push_back((attempt.hold.to_string(), attempt.owner));
        (attempt.seat, call)
    }
}

fn check_answer(answer: &Value) -> Result<()> {
    let Value::Array(parts) = answer else { anyhow::bail!("a script answered {answer:?}") };
    let code = parts.first().context("a script answered nothing")?;
    anyhow::ensure!(*code == Value::BulkString(OK.to_vec()), "a script answered {answer:?}");
    if let Some(Value::Array(attempt)) = parts.get(ANSWER_HEAD) {
        anyhow::ensure!(
            attempt.first() == Some(&Value::BulkString(b"HELD".to_vec())),
            "a lock was answered {attempt:?}"
        );
    }
    Ok(())
}

/// Replays the messages of every reader and compares its final map with the stored one. Readers below
/// version `from` are skipped.
pub fn check(log: &FleetLog, stored: &[u8], from: u64) -> Findings {
    let mut found = Findings::default();
    // Readers in step received the same messages: one replay serves all of them.
    let mut is_right_by_path: HashMap<&[u32], bool> = HashMap::new();
    for (number, reader) in log.readers.iter().enumerate() {
        let path = reader.received.as_slice();
        if let Some(why) = &reader.error {
            found.add(|| format!("reader {number} ended: {why}"));
        } else if reader.version >= from
            && !*is_right_by_path.entry(path).or_insert_with(|| replay(&log.messages, path, stored.len()) == stored)
        {
            let seen = replay(&log.messages, path, stored.len());
            found.join(checker::view(&format!("reader {number}"), &seen, stored));
        }
    }
    found
}

/// Returns the map after the messages with these numbers. Without a snapshot it begins with free seats.
fn replay(messages: &[MapMessage], path: &[u32], seats: usize) -> Vec<u8> {
    let mut map = vec![AVAILABLE; seats];
    path.iter().for_each(|number| messages[*number as usize].apply(&mut map));
    map
}

#[cfg(test)]
mod tests {
    use super::super::fleet::ReaderLog;
    use super::*;

    fn log_of(paths: &[&[u32]]) -> FleetLog {
        let messages: [&[u8]; 3] = [
            br#"{"version":1,"states":"000"}"#,
            br#"{"version":2,"seat":1,"state":1}"#,
            br#"{"version":3,"seat":2,"state":2}"#,
        ];
        let log =
            |path: &&[u32]| ReaderLog { version: path.len() as u64, received: path.to_vec(), ..ReaderLog::default() };
        FleetLog {
            messages: messages.map(|bytes| Protocol::Json.read(bytes).expect("readable")).into(),
            readers: paths.iter().map(log).collect(),
            ..FleetLog::default()
        }
    }

    #[test]
    fn only_a_reader_that_missed_a_change_is_a_violation() {
        let stored = [0, 1, 2];
        assert_eq!(check(&log_of(&[&[0, 1, 2], &[0, 1, 2]]), &stored, 0).count(), 0);
        assert_eq!(check(&log_of(&[&[0, 1, 2], &[0, 2]]), &stored, 0).count(), 1);
        assert_eq!(check(&log_of(&[&[0, 1, 2], &[0, 1]]), &stored, 3).count(), 0);
    }

    #[test]
    fn a_reader_with_a_broken_connection_is_a_violation() {
        let mut one = log_of(&[&[0, 1, 2]]);
        one.readers[0].error = Some("the server closed the socket".into());
        assert_eq!(check(&one, &[0, 1, 2], 0).count(), 1);
    }
}

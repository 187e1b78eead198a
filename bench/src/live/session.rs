//! A server, its readers and a source of changes: what every part of `live` is made of.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::changes::Source;
use super::fleet::{Fleet, Plan, Sheet};
use super::protocol::Protocol;
use crate::checker::{self, Findings};
use crate::histogram::Histogram;
use crate::world::{Process, Show, World, free_port};

/// How long readers may take to learn the last change, once all is quiet.
const QUIET_WITHIN: Duration = Duration::from_secs(20);
/// Lets a server settle after thousands of handshakes, before anything is measured.
const SETTLE: Duration = Duration::from_millis(1_500);

/// The baseline's name in results.
pub const JSON_PER_EVENT: &str = "json_per_event";
/// The same baseline on sockets that gather small texts.
pub const JSON_GATHERED: &str = "json_per_event_nagle";

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The server under test.
    Candidate,
    /// The server in `baseline.rs`, on sockets like the server's.
    JsonPerEvent,
    /// The same without TCP_NODELAY: the kernel gathers texts until the last are acknowledged.
    JsonGathered,
}

impl Variant {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::JsonPerEvent => JSON_PER_EVENT,
            Self::JsonGathered => JSON_GATHERED,
        }
    }

    /// What it speaks.
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Candidate => Protocol::Frames,
            Self::JsonPerEvent | Self::JsonGathered => Protocol::Json,
        }
    }
}

/// A show with its server.
pub struct Stage {
    /// Who serves.
    pub variant: Variant,
    /// The show.
    pub show: Show,
    /// The server's process.
    pub process: Process,
    address: std::net::SocketAddr,
    path: String,
}

/// What a stretch of changes brought.
pub struct Measured {
    /// Changes made.
    pub changes: u64,
    /// Changes of the source that came to be reflected in a reader's view.
    pub delivered: u64,
    /// CPU time of the server, microseconds.
    pub server_micros: f64,
    /// From a change's intended instant to its arrival at a reader.
    pub latencies: Histogram,
    /// Readers who knew the last change in time.
    pub arrived: u64,
    /// Bytes the server's memory grew by.
    pub grown: f64,
    /// What readers saw, for those who want to know more.
    pub sheets: Vec<Sheet>,
    /// What the checker found.
    pub found: Findings,
}

impl Stage {
    /// A fresh server for a fresh show.
    pub fn set(world: &mut World, variant: Variant, seats: u32) -> Result<Self> {
        let show = world.loaded_shows(seats, 1)?[0];
        match variant {
            Variant::Candidate => {
                let server = world.server("rowlock", None)?;
                let (address, process) = (server.address, server.process);
                Ok(Self { variant, show, process, address, path: show.live_path() })
            }
            Variant::JsonPerEvent | Variant::JsonGathered => {
                let address = free_port()?;
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["baseline-live", "--listen", &address.to_string()]);
                for (flag, key) in [("--channel", "changes"), ("--map", "map"), ("--version", "version")] {
                    command.arg(flag).arg(world.store.key(&show, key));
                }
                if variant == Variant::JsonPerEvent {
                    command.arg("--nodelay");
                }
                command.env("REDIS_URL", &world.places.redis_url);
                let mut process = Process::start(&mut command, variant.name(), &world.places.logs)?;
                process.wait_for(address, "/healthz")?;
                Ok(Self { variant, show, process, address, path: "/live".to_owned() })
            }
        }
    }

    /// Opens readers and lets everything settle.
    pub fn readers(&self, sockets: usize, stallable: usize) -> Result<Fleet> {
        let plan = Plan { protocol: self.variant.protocol(), sockets, stallable, threads: 1 };
        let fleet = Fleet::open(self.address, &self.path, self.show.seats, plan)?;
        std::thread::sleep(SETTLE);
        Ok(fleet)
    }

    /// Makes changes at `rate` for `seconds` while `sockets` read; `stallable` of them stop reading
    /// meanwhile and go on once it is quiet.
    pub fn measure(&self, world: &mut World, fleet: Fleet, rate: f64, seconds: f64, stall: bool) -> Result<Measured> {
        let source = Source::new(world, self.show)?;
        let memory = self.process.memory()?;
        fleet.board.stall(stall);
        let before = self.process.cpu()?;
        fleet.board.measure(true);
        let (_, changes) = source.start(world, std::sync::Arc::clone(&fleet.board), rate, seconds)?.wait()?;
        fleet.board.measure(false);
        let server_micros = self.process.cpu()?.micros_since(&before);
        let grown = self.process.memory()? as f64 - memory as f64;
        fleet.board.stall(false);
        let version = world.store.version(&self.show)?;
        let arrived = fleet.wait_for(version, QUIET_WITHIN);
        let sheets = fleet.close()?;
        let mut latencies = Histogram::default();
        sheets.iter().for_each(|sheet| latencies.add(&sheet.latencies));
        let delivered = sheets.iter().map(|sheet| sheet.delivered).sum();
        let truth = world.store.stored(&self.show)?.map;
        // A baseline that drowns has readers who are late, not wrong; ours has neither.
        let must = if self.variant == Variant::Candidate { 0 } else { version };
        let found = check(self.variant.protocol(), &sheets, &truth, must);
        Ok(Measured { changes, delivered, server_micros, latencies, arrived, grown, sheets, found })
    }
}

/// What a message does to a map.
enum Effect {
    Whole(Vec<u8>),
    Changes(Vec<(u32, u8)>),
}

/// Replays what every reader saw and compares their final maps with the truth. Only those who reached
/// version `from` are compared.
fn check(protocol: Protocol, sheets: &[Sheet], truth: &[u8], from: u64) -> Findings {
    let mut found = Findings::default();
    for sheet in sheets {
        let effects: Vec<Effect> = sheet.messages.iter().map(|message| effect(protocol, message)).collect();
        // Readers in step saw the same messages: one replay for all of them.
        let mut verdicts: HashMap<&[u32], bool> = HashMap::new();
        for (number, log) in sheet.logs.iter().enumerate() {
            if let Some(why) = &log.broken {
                found.add(|| format!("reader {number} ended: {why}"));
            } else if log.version >= from {
                let right = *verdicts.entry(&log.path).or_insert_with(|| replay(&effects, &log.path) == truth);
                if !right {
                    found.join(checker::view(&format!("reader {number}"), &replay(&effects, &log.path), truth));
                }
            }
        }
    }
    found
}

fn effect(protocol: Protocol, message: &[u8]) -> Effect {
    let mut map = Vec::new();
    protocol.apply(message, &mut map);
    if map.is_empty() {
        let mut changes = Vec::new();
        protocol.changes(message, |seat, state| changes.push((seat, state)));
        return Effect::Changes(changes);
    }
    Effect::Whole(map)
}

fn replay(effects: &[Effect], path: &[u32]) -> Vec<u8> {
    let mut map = Vec::new();
    for number in path {
        match &effects[*number as usize] {
            Effect::Whole(whole) => map.clone_from(whole),
            Effect::Changes(changes) => {
                for (seat, state) in changes {
                    if let Some(place) = map.get_mut(*seat as usize) {
                        *place = *state;
                    }
                }
            }
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::super::fleet::Log;
    use super::*;

    fn sheet(paths: &[&[u32]]) -> Sheet {
        let messages: [&[u8]; 3] = [
            br#"{"version":1,"states":"000"}"#,
            br#"{"version":2,"seat":1,"state":1}"#,
            br#"{"version":3,"seat":2,"state":2}"#,
        ];
        let log = |path: &&[u32]| Log { version: path.len() as u64, path: path.to_vec(), ..Log::default() };
        Sheet {
            messages: messages.map(<[u8]>::to_vec).to_vec(),
            logs: paths.iter().map(log).collect(),
            ..Sheet::default()
        }
    }

    #[test]
    fn a_reader_who_missed_a_change_is_found_and_those_who_did_not_are_not() {
        let truth = [0, 1, 2];
        assert_eq!(check(Protocol::Json, &[sheet(&[&[0, 1, 2], &[0, 1, 2]])], &truth, 0).count(), 0);
        assert_eq!(check(Protocol::Json, &[sheet(&[&[0, 1, 2], &[0, 2]])], &truth, 0).count(), 1);
        assert_eq!(check(Protocol::Json, &[sheet(&[&[0, 1, 2], &[0, 1]])], &truth, 3).count(), 0);
    }

    #[test]
    fn a_reader_whose_connection_broke_is_found() {
        let mut one = sheet(&[&[0, 1, 2]]);
        one.logs[0].broken = Some("the server closed the socket".into());
        assert_eq!(check(Protocol::Json, &[one], &[0, 1, 2], 0).count(), 1);
    }
}

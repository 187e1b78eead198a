//! `--peer`: the same load at Rowlock and at a peer server, in turns in every round, and the ratios of their figures.
//!
//! Both have separate stores on this machine. The CPU time of an operation is that of server, Redis and Postgres with
//! all their processes. The checker compares the answers of both with their stores. A round in which the host of the
//! machine took too much CPU time is repeated.
//!
//! To add a peer: a file beside `seed_node.rs` with its `Api` and its `ComparedServer`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use crate::RunOptions;
use crate::checker::{Findings, Ledger, LockState};
use crate::cpu::Cpu;
use crate::frame::Protocol;
use crate::http;
use crate::live::raise_file_limit;
use crate::purchase::Api;
use crate::report::{Report, ReportRow};
use crate::world::{RunPaths, Show};

mod attempts;
mod live;
mod map;
mod replays;
mod rowlock;
mod sales;
mod seed_node;
mod steal;

pub use seed_node::read_event;

use rowlock::Rowlock;
use seed_node::SeedNode;
use steal::MachineTime;

/// Maximum share of stolen CPU time in a round that counts.
const MAX_STOLEN: f64 = 0.05;
/// Maximum repetitions of a round with more; the last one counts, and is named.
const MAX_REPEATS: u32 = 3;
/// Default Postgres port of the peer's `stack.sh`.
const POSTGRES_PORT: u16 = 55_433;
/// Variant of Rowlock's rows.
const ROWLOCK: &str = "candidate";

/// A running peer server.
#[derive(Clone, Debug, clap::Args)]
pub struct PeerOptions {
    /// Compare with a running peer server: the file `stack.json` that its `stack.sh` writes. `cargo xtask bench NAME
    /// --peer DIR` starts the server in DIR and passes this file.
    #[arg(long, value_name = "FILE", global = true)]
    pub peer: Option<PathBuf>,
    /// Port of the peer's Postgres, on this machine.
    #[arg(long, env = "PEER_POSTGRES_PORT", default_value_t = POSTGRES_PORT, global = true)]
    pub peer_postgres_port: u16,
}

/// A server of the comparison, with its stores.
pub trait ComparedServer {
    /// Returns the variant of its rows.
    fn name(&self) -> &'static str;
    fn api(&self) -> &'static dyn Api;
    fn address(&self) -> SocketAddr;
    /// Returns the first processes of server, Redis and Postgres.
    fn processes(&self) -> [u32; 3];
    fn map_path(&self, show: &Show) -> String;
    fn live_path(&self, show: &Show) -> String;
    fn live_protocol(&self) -> Protocol;
    /// Creates shows of `seats` seats each, a multiple of 100.
    fn create_shows(&mut self, seats: u32, count: usize) -> Result<Vec<Show>>;
    /// Waits until the effects of all answers are done and every map is up to date.
    fn settle(&mut self) -> Result<Findings>;
    /// Reads map and holds of a show from Redis.
    fn stored(&mut self, show: &Show) -> Result<LockState>;
    fn ledger(&mut self, show: &Show) -> Result<Ledger>;
    /// Reads the state of every seat from the server.
    fn seat_states(&self, show: &Show) -> Result<Vec<u8>>;
    /// Returns the version of a reader's map after `changes` changes of a show.
    fn version(&mut self, show: &Show, changes: u64) -> Result<u64>;
    /// Deletes what shows left in Redis.
    fn clear(&mut self, shows: &[Show]) -> Result<()>;
}

/// The operations that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Locks,
    Sale,
    Live,
    Retries,
    Map,
}

/// The amount of work of a turn.
pub struct Size {
    /// Shows of 2,000 seats for attempts and sales.
    shows: usize,
    storm_attempts: u32,
    storm_connections: usize,
    connections: usize,
    /// Duration of a phase that is not counted in operations, seconds.
    seconds: f64,
    readers: usize,
    changes_per_s: u32,
    map_seats: u32,
}

const FULL: Size = Size {
    shows: 30,
    storm_attempts: 10_000,
    storm_connections: 500,
    connections: 256,
    seconds: 6.0,
    readers: 1_000,
    changes_per_s: 200,
    map_seats: 50_000,
};
const QUICK: Size = Size {
    shows: 1,
    storm_attempts: 600,
    storm_connections: 50,
    connections: 16,
    seconds: 0.5,
    readers: 20,
    changes_per_s: 100,
    map_seats: 5_000,
};

/// The results of a server in a round.
#[derive(Default)]
pub struct Turn {
    rows: Vec<ReportRow>,
    found: Findings,
}

/// Runs the rounds and prints the comparison.
pub fn run(paths: &RunPaths, run: &RunOptions, work: Work, description: &Path, report: &mut Report) -> Result<()> {
    raise_file_limit();
    let peer = SeedNode::open(description, run.peer.peer_postgres_port)?;
    let peer_name = peer.name();
    let mut servers: [Box<dyn ComparedServer>; 2] = [Box::new(peer), Box::new(Rowlock::start(paths)?)];
    let size = if run.quick { &QUICK } else { &FULL };
    if !run.quick {
        eprintln!("  one round to warm up");
        for server in &mut servers {
            report.findings(&take_turn(server.as_mut(), work, size)?.found);
        }
    }
    let (mut repeated, mut stolen_from) = (0, 0);
    for round in 1..=run.rounds {
        // Who begins alternates.
        servers.reverse();
        let mut tries = 0;
        let (turns, stolen) = loop {
            let before = MachineTime::read()?;
            let mut turns = Vec::new();
            for server in &mut servers {
                turns.push(take_turn(server.as_mut(), work, size)?);
            }
            let stolen = MachineTime::read()?.stolen_since(&before);
            if stolen <= MAX_STOLEN || tries == MAX_REPEATS || run.quick {
                break (turns, stolen);
            }
            tries += 1;
            eprintln!("        round {round} is repeated: {:.0} % of the CPU time was stolen", stolen * 100.0);
            turns.iter().for_each(|turn| report.findings(&turn.found));
        };
        repeated += tries;
        stolen_from += u32::from(stolen > MAX_STOLEN);
        for Turn { rows, found } in turns {
            for row in rows {
                report.round(row.with("round", round).figure("stolen_share", stolen).with("violations", found.count()));
            }
            report.findings(&found);
        }
    }
    report.summarise();
    compare(work, peer_name, report);
    eprintln!(
        "        repeated rounds, with more than {:.0} % of stolen CPU time: {repeated}; \
         counted in spite of it, after {MAX_REPEATS} repetitions: {stolen_from}",
        MAX_STOLEN * 100.0
    );
    Ok(())
}

fn take_turn(server: &mut dyn ComparedServer, work: Work, size: &Size) -> Result<Turn> {
    match work {
        Work::Locks => attempts::turn(server, size),
        Work::Sale => sales::turn(server, size),
        Work::Live => live::turn(server, size),
        Work::Retries => replays::turn(server, size),
        Work::Map => map::turn(server, size),
    }
}

/// A figure of both servers.
struct Comparison {
    what: &'static str,
    phase: &'static str,
    figure: &'static str,
    /// Minimum of the ratio: how many times better Rowlock should be.
    goal: Option<f64>,
}

/// Figure of which more is better; of all others less is.
const RATE: &str = "done_per_s";
const CPU: &str = "cpu_us_per_op";
const P99: &str = "p99_ms";

const fn comparison(what: &'static str, phase: &'static str, figure: &'static str, goal: Option<f64>) -> Comparison {
    Comparison { what, phase, figure, goal }
}

const LOCKS: [Comparison; 5] = [
    comparison("granted attempt over HTTP, CPU µs", attempts::GRANTED, CPU, Some(3.5)),
    comparison("granted attempts a second", attempts::GRANTED, RATE, None),
    comparison("refused attempt over HTTP, CPU µs", attempts::REFUSED, CPU, Some(2.0)),
    comparison("refused attempts a second", attempts::REFUSED, RATE, None),
    comparison("10,000 attempts on 300 seats, p99 ms", attempts::STORM, P99, Some(2.0)),
];
const SALE: [Comparison; 4] = [
    comparison("sale of four: hold, booking, confirm, CPU µs", sales::IN_THREE_REQUESTS, CPU, Some(3.0)),
    comparison("such sales a second", sales::IN_THREE_REQUESTS, RATE, None),
    comparison("the same, ours in two requests as the page, CPU µs", sales::AS_THE_PAGE, CPU, None),
    comparison("such sales a second, ours in two requests", sales::AS_THE_PAGE, RATE, None),
];
const LIVE: [Comparison; 2] = [
    comparison("change of a seat delivered to a reader, CPU µs", live::FAN_OUT, CPU, Some(10.0)),
    comparison("from the change to the reader, p99 ms", live::FAN_OUT, P99, None),
];
const RETRIES: [Comparison; 2] = [
    comparison("replay of a confirmed purchase, CPU µs", replays::REPLAY, CPU, Some(5.0)),
    comparison("replays a second", replays::REPLAY, RATE, None),
];
const MAP: [Comparison; 3] = [
    comparison("reading the map, CPU µs", map::MAP, CPU, None),
    comparison("maps read a second", map::MAP, RATE, None),
    comparison("bytes of the map over HTTP", map::MAP, map::BYTES, None),
];

fn compare(work: Work, peer: &str, report: &Report) {
    let comparisons: &[Comparison] = match work {
        Work::Locks => &LOCKS,
        Work::Sale => &SALE,
        Work::Live => &LIVE,
        Work::Retries => &RETRIES,
        Work::Map => &MAP,
    };
    eprintln!("        {:<52}{peer:>12}{:>12}{:>9}{:>7}", "", "Rowlock", "ratio", "goal");
    for Comparison { what, phase, figure, goal } in comparisons {
        let of = |variant: &str| report.median(&[("phase", json!(phase)), ("variant", json!(variant))], figure);
        let Some((theirs, ours)) = of(peer).zip(of(ROWLOCK)) else { continue };
        let ratio = if *figure == RATE { ours / theirs } else { theirs / ours };
        report.compare(what, theirs, ours, ratio, *goal);
    }
}

/// Names of the CPU times, in the order of [`readings`].
const PARTS: [&str; 4] = ["server", "redis", "postgres", "generator"];

/// The CPU time of a server and its stores from an instant on.
pub struct Meter {
    processes: [u32; 3],
    before: [Cpu; 4],
}

impl Meter {
    fn start(server: &dyn ComparedServer) -> Result<Self> {
        let processes = server.processes();
        Ok(Self { processes, before: readings(processes)? })
    }

    /// Adds the CPU time an operation since the start: of each part, and of server and stores together.
    fn add_to(&self, row: ReportRow, operations: f64) -> Result<ReportRow> {
        let (after, operations) = (readings(self.processes)?, operations.max(1.0));
        let spent: f64 = (0..3).map(|part: usize| after[part].micros_since(&self.before[part])).sum();
        Ok(row.figure(CPU, spent / operations).cpu_per_op(PARTS, &self.before, &after, operations))
    }
}

fn readings([server, redis, postgres]: [u32; 3]) -> Result<[Cpu; 4]> {
    let generator = Cpu::of(&[std::process::id()])?;
    Ok([Cpu::of_tree(server)?, Cpu::of_tree(redis)?, Cpu::of_tree(postgres)?, generator])
}

/// Reads every map once, so that the server has loaded the shows before the load. Twice: a peer may have two processes.
fn load_shows(server: &dyn ComparedServer, shows: &[Show]) -> Result<()> {
    for show in shows.iter().chain(shows) {
        let (status, _) = http::get(server.address(), &server.map_path(show))?;
        anyhow::ensure!(status == 200, "the map of a new show is answered with {status}");
    }
    Ok(())
}

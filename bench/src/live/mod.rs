//! `live`: the CPU cost and latency of delivering changes to thousands of readers, and the memory of an
//! idle and a stalled reader.
//!
//! The baseline sends a JSON text per change on the same kind of sockets, from the same announcements.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::RunOptions;
use crate::frame::MapMessage;
use crate::report::{Bound, Report, ReportRow, median, ratio};
use crate::world::{RunPaths, World};

pub mod baseline;
mod fleet;
mod session;

pub use fleet::{Fleet, FleetOptions, SharedState};
pub use session::check as check_readers;

use fleet::FleetLog;
use session::{JSON_GATHERED, JSON_PER_EVENT, Measurement, ServedShow, ServerVariant};

/// Options of `live`.
#[derive(Clone, Debug, clap::Args)]
pub struct LiveOptions {
    /// Parts to run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "efficiency,crowd,idle,stalled")]
    parts: Vec<LivePart>,
    /// Seats of the room.
    #[arg(long, default_value_t = 5_000)]
    seats: u32,
    /// Duration of the changes in each round, seconds.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Changes a second when efficiency is measured.
    #[arg(long, value_delimiter = ',', default_value = "200,5000")]
    rates: Vec<u32>,
    /// Sockets when efficiency is measured: as many as in the crowd.
    #[arg(long, default_value_t = 4_000)]
    sockets: usize,
    /// Sockets of the crowd, at 200 changes a second.
    #[arg(long, default_value_t = 4_000)]
    crowd: usize,
    /// Idle sockets.
    #[arg(long, default_value_t = 10_000)]
    idle: usize,
    /// Sockets in the stalled part.
    #[arg(long, default_value_t = 5_000)]
    readers: usize,
    /// Number of them that stall.
    #[arg(long, default_value_t = 1_000)]
    stalled: usize,
    /// Changes a second while they stall: enough to fill a reader's kernel buffers.
    #[arg(long, default_value_t = 5_000)]
    stalled_rate: u32,
    /// Duration of the stall, seconds: the kernels buffer some 150 KB for each reader before the server notices.
    #[arg(long, default_value_t = 60.0)]
    stalled_seconds: f64,
    /// Pause after the handshakes, before a measurement, milliseconds.
    #[arg(long, default_value_t = 1_500)]
    settle_ms: u64,
}

impl LiveOptions {
    const fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LivePart {
    /// Changes delivered per core-second, against the baseline.
    Efficiency,
    /// Latency of a change at many readers.
    Crowd,
    /// Memory of an idle reader.
    Idle,
    /// Effect of stalled readers on the others.
    Stalled,
}

const CROWD_RATE: u32 = 200;
const CANDIDATE_AND_BASELINE: [ServerVariant; 2] = [ServerVariant::Candidate, ServerVariant::JsonPerEvent];

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: LiveOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.seats, options.seconds, options.rates) = (1_000, 0.5, vec![200]);
        (options.sockets, options.crowd, options.idle) = (50, 100, 100);
        (options.readers, options.stalled, options.stalled_seconds) = (50, 10, 1.0);
        (options.stalled_rate, options.settle_ms) = (500, 100);
    }
    raise_file_limit();
    let mut world = World::create(paths)?;
    for part in &options.parts {
        eprintln!("  {part:?}");
        for round in 1..=run.rounds {
            match part {
                LivePart::Efficiency => {
                    let variants = [ServerVariant::Candidate, ServerVariant::JsonPerEvent, ServerVariant::JsonGathered];
                    for rate in &options.rates {
                        let load = (*rate, options.sockets);
                        deliver(&mut world, &options, "efficiency", load, &variants, round, report)?;
                    }
                }
                LivePart::Crowd => {
                    let (load, variants) = ((CROWD_RATE, options.crowd), &CANDIDATE_AND_BASELINE);
                    deliver(&mut world, &options, "crowd", load, variants, round, report)?;
                }
                LivePart::Idle => idle(&mut world, &options, round, report)?,
                LivePart::Stalled => stalled(&mut world, &options, round, report)?,
            }
        }
    }
    report.summarise();
    promises(&options, report);
    Ok(())
}

/// Raises the limit of open files to its maximum: every socket is a file. Child processes inherit the limit.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this fails, opening sockets reports the error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Delivers changes at a rate to a number of sockets, with each variant of the server.
fn deliver(
    world: &mut World,
    options: &LiveOptions,
    phase: &str,
    (rate, sockets): (u32, usize),
    variants: &[ServerVariant],
    round: u32,
    report: &mut Report,
) -> Result<()> {
    for variant in variants {
        let served = ServedShow::start(world, *variant, options.seats)?;
        let fleet = served.open_readers(sockets, 0, options.settle())?;
        let measured = served.measure(world, fleet, f64::from(rate), options.seconds, false)?;
        let delivered = measured.log.delivered as f64;
        let row = row(phase, variant.name(), round, (rate, sockets), &measured)
            .figure("delivered_per_core_s", delivered / (measured.server_micros / 1e6).max(1e-3))
            .figure("delivered_share", delivered / (measured.changes as f64 * sockets as f64))
            .figure("server_cpu_us_per_op", measured.server_micros / delivered.max(1.0));
        report.checked_round(row, &measured.found);
    }
    Ok(())
}

fn row(phase: &str, name: &str, round: u32, (rate, sockets): (u32, usize), measured: &Measurement) -> ReportRow {
    ReportRow::of("live", name)
        .with("phase", phase)
        .with("round", round)
        .with("rate_per_s", rate)
        .with("sockets", sockets)
        .latencies(&measured.log.latencies)
        .with("late_readers", sockets as u64 - measured.arrived)
}

fn idle(world: &mut World, options: &LiveOptions, round: u32, report: &mut Report) -> Result<()> {
    for variant in CANDIDATE_AND_BASELINE {
        let served = ServedShow::start(world, variant, options.seats)?;
        // The first readers make the server create the state that all readers share.
        let first = served.open_readers(WARM_UP, 0, options.settle())?;
        let before = served.process.memory()?;
        let rest = served.open_readers(options.idle, 0, options.settle())?;
        let grown = served.process.memory()?.saturating_sub(before);
        first.close()?;
        rest.close()?;
        let row = ReportRow::of("live", variant.name()).with("phase", "idle").with("round", round);
        let row = row.with("sockets", options.idle);
        report.round(row.figure("rss_bytes_per_socket", grown as f64 / options.idle as f64));
    }
    Ok(())
}

/// Readers connected before memory is measured.
const WARM_UP: usize = 10;

/// The variant in which no reader stalls.
const ALL_READ: &str = "all_read";
/// Maximum slow-down of the other readers, as a factor.
const SLOWER: f64 = 1.1;
/// Maximum memory growth of the server with stalled readers, bytes.
const MEMORY_BYTES: f64 = 5e6;

/// Runs one round: first without stalled readers, then with some, all else being equal.
fn stalled(world: &mut World, options: &LiveOptions, round: u32, report: &mut Report) -> Result<()> {
    for (name, stall) in [(ALL_READ, false), ("candidate", true)] {
        let served = ServedShow::start(world, ServerVariant::Candidate, options.seats)?;
        let fleet = served.open_readers(options.readers, options.stalled, options.settle())?;
        let rate = f64::from(options.stalled_rate);
        let measured = served.measure(world, fleet, rate, options.stalled_seconds, stall)?;
        let load = (options.stalled_rate, options.readers);
        let mut row = row("stalled", name, round, load, &measured).figure("memory_growth_bytes", measured.grown);
        if stall {
            row = with_catch_up(row, &measured.log);
        }
        report.checked_round(row, &measured.found);
    }
    Ok(())
}

/// Adds how readers caught up. A resumed reader first gets the messages in the kernel's buffers; one
/// further message must contain all changes it missed after them.
fn with_catch_up(row: ReportRow, log: &FleetLog) -> ReportRow {
    let (mut one, mut otherwise, mut whole) = (0_u64, 0_u64, 0_u64);
    let (mut kept, mut missed) = (vec![], vec![]);
    for reader in &log.readers {
        let Some(resumed_at) = reader.resumed_at else { continue };
        let received = reader.received[resumed_at..].iter();
        let spans: Vec<u64> = received.filter_map(|number| span(&log.messages[*number as usize])).collect();
        let Some((last, before)) = spans.split_last() else {
            otherwise += 1;
            continue;
        };
        // A message sent before the buffers were full spans one tick; a longer one was merged.
        let tick = before.iter().copied().max().unwrap_or(0);
        if *last > tick {
            one += 1;
        } else {
            otherwise += 1;
        }
        kept.push(before.len() as f64);
        if *last == WHOLE_MAP {
            whole += 1;
        } else {
            missed.push(*last as f64);
        }
    }
    row.with("woken_in_one", one)
        .with("woken_otherwise", otherwise)
        .with("woken_with_a_whole_map", whole)
        .figure("kept_messages", median(kept).unwrap_or(0.0))
        .figure("changes_in_the_one", median(missed).unwrap_or(0.0))
}

/// The span of a snapshot, longer than any delta.
const WHOLE_MAP: u64 = u64::MAX;

fn span(message: &MapMessage) -> Option<u64> {
    match message {
        MapMessage::Delta { from, to, .. } => Some(to - from),
        // A snapshot is one message that contains every change.
        MapMessage::Snapshot { .. } => Some(WHOLE_MAP),
        MapMessage::Event { .. } | MapMessage::Other(_) => None,
    }
}

fn promises(options: &LiveOptions, report: &Report) {
    let of = |phase: &str, variant: &str, key: &str| {
        report.median(&[("phase", json!(phase)), ("variant", json!(variant))], key)
    };
    for rate in &options.rates {
        let each = |variant: &str| {
            let values = [("phase", json!("efficiency")), ("variant", json!(variant)), ("rate_per_s", json!(rate))];
            report.median(&values, "delivered_per_core_s")
        };
        let least = if *rate >= 5_000 { 50.0 } else { 10.0 };
        let what = format!("changes delivered a core-second against JSON per event, {rate} changes/s");
        report.promise(&what, ratio(each("candidate"), each(JSON_PER_EVENT)), Bound::AtLeast(least));
        if let Some(ratio) = ratio(each("candidate"), each(JSON_GATHERED)) {
            eprintln!("        against JSON gathered by the kernel: {ratio:.1}");
        }
    }
    let p99 = of("crowd", "candidate", "p99_ms");
    report.promise(&format!("{} sockets, 200 changes/s: p99 ms", options.crowd), p99, Bound::AtMost(300.0));
    let memory = of("idle", "candidate", "rss_bytes_per_socket");
    report.promise(&format!("{} idle sockets: bytes each", options.idle), memory, Bound::AtMost(6_000.0));
    let slower = ratio(of("stalled", "candidate", "p99_ms"), of("stalled", ALL_READ, "p99_ms"));
    report.promise("p99 of the others while some stall, against all reading", slower, Bound::AtMost(SLOWER));
    let memory = of("stalled", "candidate", "memory_growth_bytes");
    report.promise("memory growth while some stall, bytes", memory, Bound::AtMost(MEMORY_BYTES));
    if let Some(grown) = of("stalled", ALL_READ, "memory_growth_bytes") {
        eprintln!("        the same while all read: {grown:.0}");
    }
    let otherwise = of("stalled", "candidate", "woken_otherwise");
    report.promise("stalled readers who needed more than one message", otherwise, Bound::AtMost(0.0));
}

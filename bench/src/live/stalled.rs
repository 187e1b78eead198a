//! Readers who stop reading: what they do to the others, to the server's memory, and how they come back.

use anyhow::Result;
use serde_json::json;

use super::Options;
use super::session::{Measured, Stage, Variant};
use crate::report::{Bound, Report, Row};
use crate::world::World;

/// The run in which everyone reads.
const ALL_READ: &str = "all_read";
/// How much slower the others may be, as a factor.
const SLOWER: f64 = 1.1;
/// What stalled readers may cost the server, bytes.
const MEMORY_BYTES: f64 = 5e6;

/// One round: everyone reads, then some stall, with everything else equal.
pub fn round(world: &mut World, options: &Options, round: u32, report: &mut Report) -> Result<()> {
    for (name, stall) in [(ALL_READ, false), ("candidate", true)] {
        let stage = Stage::set(world, Variant::Candidate, options.seats)?;
        let fleet = stage.readers(options.readers, options.stalled)?;
        let rate = f64::from(options.stalled_rate);
        let measured = stage.measure(world, fleet, rate, options.stalled_seconds, stall)?;
        let mut row = Row::of("live", name)
            .with("phase", "stalled")
            .with("round", round)
            .with("rate_per_s", options.stalled_rate)
            .with("sockets", options.readers)
            .latencies(&measured.latencies)
            .figure("memory_growth_bytes", measured.grown)
            .with("late_readers", options.readers as u64 - measured.arrived)
            .with("violations", measured.found.count());
        if stall {
            row = woken(row, &measured);
        }
        report.round(row);
        report.findings(&measured.found);
    }
    Ok(())
}

/// How readers came back. What the kernel had kept for them is as it was sent; all they missed after
/// that must be in the one message that follows.
fn woken(row: Row, measured: &Measured) -> Row {
    let (mut one, mut several, mut never, mut whole) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut kept, mut missed) = (vec![], vec![]);
    for sheet in &measured.sheets {
        for log in &sheet.logs {
            let Some(woke_at) = log.woke_at else { continue };
            let spans: Vec<u64> =
                log.path[woke_at..].iter().filter_map(|number| span(&sheet.messages[*number as usize])).collect();
            let Some((last, before)) = spans.split_last() else {
                never += 1;
                continue;
            };
            // Messages sent while they still got some are a tick long each; one that is longer was merged.
            let tick = before.iter().copied().max().unwrap_or(0);
            if *last > tick {
                one += 1
            } else {
                several += 1
            };
            kept.push(before.len() as f64);
            if *last == WHOLE_MAP {
                whole += 1;
            } else {
                missed.push(*last as f64);
            }
        }
    }
    row.with("woken_in_one", one)
        .with("woken_otherwise", several + never)
        .with("woken_with_a_whole_map", whole)
        .figure("kept_messages", crate::report::median(kept).unwrap_or(0.0))
        .figure("changes_in_the_one", crate::report::median(missed).unwrap_or(0.0))
}

/// A span longer than any.
const WHOLE_MAP: u64 = u64::MAX;

fn span(message: &[u8]) -> Option<u64> {
    match Variant::Candidate.protocol().meaning(message)? {
        super::protocol::Meaning::Step { from, to } => Some(to - from),
        // A snapshot is one message as well, and brings everything.
        super::protocol::Meaning::Whole { .. } => Some(WHOLE_MAP),
        super::protocol::Meaning::Nothing => None,
    }
}

/// What the issue promises of them.
pub fn promises(report: &mut Report) {
    let of = |variant: &str, key: &str, report: &Report| {
        report.median(&[("phase", json!("stalled")), ("variant", json!(variant))], key)
    };
    let slower = of("candidate", "p99_ms", report).zip(of(ALL_READ, "p99_ms", report)).map(|(some, all)| some / all);
    report.promise("p99 of the others while some stall, against all reading", slower, Bound::AtMost(SLOWER));
    let memory = of("candidate", "memory_growth_bytes", report);
    report.promise("memory growth while some stall, bytes", memory, Bound::AtMost(MEMORY_BYTES));
    if let Some(grown) = of(ALL_READ, "memory_growth_bytes", report) {
        report.say(&format!("        the same while all read: {grown:.0}"));
    }
    let otherwise = of("candidate", "woken_otherwise", report);
    report.promise("stalled readers who needed more than one message", otherwise, Bound::AtMost(0.0));
}

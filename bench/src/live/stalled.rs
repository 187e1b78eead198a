//! Stalled readers: their effect on the other readers and on the server's memory, and how they catch up.

use anyhow::Result;
use serde_json::json;

use super::LiveOptions;
use super::session::{Measurement, ServedShow, ServerVariant};
use crate::report::{Bound, Report, ReportRow};
use crate::world::World;

/// The variant in which no reader stalls.
const ALL_READ: &str = "all_read";
/// Maximum slow-down of the other readers, as a factor.
const SLOWER: f64 = 1.1;
/// Maximum memory growth of the server with stalled readers, bytes.
const MEMORY_BYTES: f64 = 5e6;

/// Runs one round: first without stalled readers, then with some, all else being equal.
pub fn round(world: &mut World, options: &LiveOptions, round: u32, report: &mut Report) -> Result<()> {
    for (name, stall) in [(ALL_READ, false), ("candidate", true)] {
        let served = ServedShow::start(world, ServerVariant::Candidate, options.seats)?;
        let fleet = served.open_readers(options.readers, options.stalled)?;
        let rate = f64::from(options.stalled_rate);
        let measured = served.measure(world, fleet, rate, options.stalled_seconds, stall)?;
        let mut row = ReportRow::of("live", name)
            .with("phase", "stalled")
            .with("round", round)
            .with("rate_per_s", options.stalled_rate)
            .with("sockets", options.readers)
            .latencies(&measured.latencies)
            .figure("memory_growth_bytes", measured.grown)
            .with("late_readers", options.readers as u64 - measured.arrived)
            .with("violations", measured.found.count());
        if stall {
            row = with_catch_up(row, &measured);
        }
        report.round(row);
        report.findings(&measured.found);
    }
    Ok(())
}

/// Adds how readers caught up. A resumed reader first gets the messages in the kernel's buffers; one
/// further message must contain all changes it missed after them.
fn with_catch_up(row: ReportRow, measured: &Measurement) -> ReportRow {
    let (mut one, mut several, mut never, mut whole) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut kept, mut missed) = (vec![], vec![]);
    for thread_log in &measured.logs {
        for log in &thread_log.readers {
            let Some(resumed_at) = log.resumed_at else { continue };
            let spans: Vec<u64> = log.received[resumed_at..]
                .iter()
                .filter_map(|number| span(&thread_log.messages[*number as usize]))
                .collect();
            let Some((last, before)) = spans.split_last() else {
                never += 1;
                continue;
            };
            // A message sent before the buffers were full spans one tick; a longer one was merged.
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

/// The span of a snapshot, longer than any delta.
const WHOLE_MAP: u64 = u64::MAX;

fn span(message: &[u8]) -> Option<u64> {
    match ServerVariant::Candidate.protocol().kind(message)? {
        super::protocol::MessageKind::Delta { from, to } => Some(to - from),
        // A snapshot is one message that contains every change.
        super::protocol::MessageKind::Snapshot { .. } => Some(WHOLE_MAP),
        super::protocol::MessageKind::Other => None,
    }
}

/// Compares the medians with the promised bounds.
pub fn promises(report: &mut Report) {
    let of = |variant: &str, key: &str, report: &Report| {
        report.median(&[("phase", json!("stalled")), ("variant", json!(variant))], key)
    };
    let slower = of("candidate", "p99_ms", report).zip(of(ALL_READ, "p99_ms", report)).map(|(some, all)| some / all);
    report.promise("p99 of the others while some stall, against all reading", slower, Bound::AtMost(SLOWER));
    let memory = of("candidate", "memory_growth_bytes", report);
    report.promise("memory growth while some stall, bytes", memory, Bound::AtMost(MEMORY_BYTES));
    if let Some(grown) = of(ALL_READ, "memory_growth_bytes", report) {
        report.print_line(&format!("        the same while all read: {grown:.0}"));
    }
    let otherwise = of("candidate", "woken_otherwise", report);
    report.promise("stalled readers who needed more than one message", otherwise, Bound::AtMost(0.0));
}

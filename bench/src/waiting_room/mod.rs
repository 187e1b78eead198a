//! `waiting-room`: what it costs Redis that two million people come to one door.
//!
//! The server's script, one step for all who come together, is compared with a sorted set, as many queues are built: a
//! member per person, scored by when they came. Both get the same number of joins, as many on their way at a time; each
//! round begins with neither. Then the draw is checked with Pearson's chi-square by sums of our own, as
//! docs/api.md has them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use redis::{ConnectionLike, Value, cmd};
use serde_json::json;
use uuid::Uuid;

use crate::Run;
use crate::checker::Findings;
use crate::report::{Bound, Report, Row};
use crate::world::{Places, Store};

mod draw;

pub use draw::place_of;

/// The baseline: a member of a sorted set per person.
pub const SORTED_SET: &str = "sorted_set";
/// Bytes Redis may grow by.
const MOST_GROWTH_BYTES: f64 = 3_000_000.0;
/// Keys of a room, in the order of `join.lua`.
const NAMES: [&str; 5] = ["room", "left", "inside", "entered", "lately"];
/// An instant that has not come, ms: nobody opens this room.
const NEVER: i64 = 4_000_000_000_000;

/// Makes ids of numbers: odd, so that no two are the same.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// What `waiting-room` takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// People who join.
    #[arg(long, default_value_t = 2_000_000)]
    people: u64,
    /// People who take a step together, as they do while a call is on its way.
    #[arg(long, default_value_t = 64)]
    joins_per_call: u64,
    /// Joins on their way at a time.
    #[arg(long, default_value_t = 1_024)]
    in_the_air: u64,
    /// The server's scripts of the waiting room: they are under test.
    #[arg(long, default_value = "server/src/waiting_room/lua")]
    room_scripts: PathBuf,
}

/// All rounds.
pub fn run(places: &Places, run: &Run, mut options: Options, report: &mut Report) -> Result<()> {
    if run.quick {
        options.people = 100_000;
    }
    ensure!(options.joins_per_call > 0 && options.in_the_air >= options.joins_per_call, "calls carry joins");
    ensure!(!places.redis_url.is_empty(), "REDIS_URL is not set; `cargo xtask bench` starts Redis and sets it");
    let prefix = format!("w{}:", Uuid::from_u128(u128::from(std::process::id())).simple());
    let mut store = Store::open(&places.redis_url, &prefix, &places.scripts)?;
    let code = std::fs::read_to_string(options.room_scripts.join("join.lua")).context("the server's join.lua")?;
    let sha: String = cmd("SCRIPT").arg("LOAD").arg(code).query(store.connection())?;
    for round in 1..=run.rounds {
        let ours = measure(&mut store, &options, Way::Script { sha: &sha, together: options.joins_per_call })?;
        told(report, "candidate", round, &options, &ours);
        let single = Options { people: options.people / 10, ..options.clone() };
        let alone = measure(&mut store, &single, Way::Script { sha: &sha, together: 1 })?;
        told(report, "one_per_call", round, &single, &alone);
        let theirs = measure(&mut store, &options, Way::SortedSet)?;
        told(report, SORTED_SET, round, &options, &theirs);
        report.findings(&draw::check(options.people, u64::from(round)));
    }
    store.forget_all()?;
    report.summarise();
    report.say("");
    promises(report);
    Ok(())
}

/// How people join.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// By the script, so many a step.
    Script { sha: &'a str, together: u64 },
    /// ZADD NX of one's id, then ZRANK for one's place, as queues do that tell it.
    SortedSet,
}

/// What a round came to.
struct Cost {
    micros: f64,
    growth: u64,
    found: Findings,
}

fn measure(store: &mut Store, options: &Options, way: Way<'_>) -> Result<Cost> {
    let keys = NAMES.map(|name| format!("{}{{show:bench}}:queue:{name}", store.prefix()));
    // Not UNLINK: what is freed later would be charged to nobody.
    cmd("DEL").arg(&keys).query::<i64>(store.connection())?;
    // As a room that was just built, behind a mark far away.
    cmd("HSET").arg(&keys[0]).arg("next").arg(0).query::<i64>(store.connection())?;
    settle(store)?;
    let (memory, mut found) = (used_memory(store)?, Findings::default());
    let (mut micros, mut joined) = (0.0, 0_u64);
    let mut given: BTreeSet<(u64, u64)> = BTreeSet::new();
    while joined < options.people {
        let people = options.in_the_air.min(options.people - joined);
        let (packed, answers) = calls(&keys, way, joined, people, options.people);
        let before = store.cpu()?;
        let told = store.send(&packed, answers)?;
        micros += store.cpu()?.micros_since(&before);
        match way {
            Way::Script { .. } => {
                for answer in &told {
                    let (first, count) = numbers(answer)?;
                    if !given.insert((first, count)) {
                        found.add(|| format!("the number {first} was given out twice"));
                    }
                }
            }
            Way::SortedSet => {
                if told.iter().any(|answer| !matches!(answer, Value::Int(_))) {
                    bail!("the sorted set answered {told:?}");
                }
            }
        }
        joined += people;
    }
    if matches!(way, Way::Script { .. }) {
        let mut next = 0;
        for (first, count) in &given {
            if *first != next {
                found.add(|| format!("after {next} came {first}"));
            }
            next = first + count;
        }
        if next != options.people {
            found.add(|| format!("{next} numbers for {} people", options.people));
        }
    }
    let growth = used_memory(store)?.saturating_sub(memory);
    Ok(Cost { micros: micros / options.people as f64, growth, found })
}

/// The calls of so many people, ready to send before the clock starts, and how many answers they get.
fn calls(keys: &[String; 5], way: Way<'_>, joined: u64, people: u64, all: u64) -> (Vec<u8>, usize) {
    let mut packed = Vec::new();
    let mut answers = 0;
    match way {
        Way::Script { sha, together } => {
            let mut left = people;
            while left > 0 {
                let count = together.min(left);
                let mut call = cmd("EVALSHA");
                call.arg(sha).arg(keys.len()).arg(keys).arg(count).arg(0).arg(all).arg(NEVER);
                packed.extend(call.get_packed_command());
                answers += 1;
                left -= count;
            }
        }
        Way::SortedSet => {
            for number in joined..joined + people {
                // A UUID, as people have; when they came, as a score.
                let member = Uuid::from_u128(u128::from(number).wrapping_mul(SPREAD)).to_string();
                let mut add = cmd("ZADD");
                add.arg(&keys[2]).arg("NX").arg(number).arg(&member);
                packed.extend(add.get_packed_command());
                let mut rank = cmd("ZRANK");
                rank.arg(&keys[2]).arg(&member);
                packed.extend(rank.get_packed_command());
                answers += 2;
            }
        }
    }
    (packed, answers)
}

/// First number and how many, of an answer of `join.lua`.
fn numbers(answer: &Value) -> Result<(u64, u64)> {
    let Value::Array(parts) = answer else { bail!("join.lua answered {answer:?}") };
    match parts.as_slice() {
        [Value::Int(1), Value::Int(first), Value::Int(count)] => Ok((first.unsigned_abs(), count.unsigned_abs())),
        _ => bail!("join.lua answered {answer:?}"),
    }
}

/// Gives back what was freed, so that the next round is not charged less.
fn settle(store: &mut Store) -> Result<()> {
    // Not every allocator can.
    let _ = store.connection().req_command(cmd("MEMORY").arg("PURGE"));
    Ok(())
}

fn used_memory(store: &mut Store) -> Result<u64> {
    let info: String = cmd("INFO").arg("memory").query(store.connection())?;
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|bytes| bytes.trim().parse().ok()).context("Redis does not tell its memory")
}

fn told(report: &mut Report, variant: &str, round: u32, options: &Options, cost: &Cost) {
    let row = Row::of("waiting-room", variant).with("layer", "redis").with("round", round);
    let row = row.with("people", options.people).with("redis_growth_bytes", cost.growth);
    report.round(row.figure("redis_cpu_us_per_op", cost.micros));
    report.findings(&cost.found);
}

fn promises(report: &mut Report) {
    let of = |variant: &str, key: &str, report: &Report| report.median(&[("variant", json!(variant))], key);
    let (ours, theirs) = (of("candidate", "redis_growth_bytes", report), of(SORTED_SET, "redis_growth_bytes", report));
    report.promise("bytes Redis grows by", ours, Bound::AtMost(MOST_GROWTH_BYTES));
    let memory = theirs.zip(ours).map(|(theirs, ours)| theirs / ours.max(1.0));
    report.promise("memory of a sorted set against ours", memory, Bound::AtLeast(100.0));
    let (ours, theirs) =
        (of("candidate", "redis_cpu_us_per_op", report), of(SORTED_SET, "redis_cpu_us_per_op", report));
    let cpu = theirs.zip(ours).map(|(theirs, ours)| theirs / ours);
    report.promise("Redis CPU of a join, a sorted set against ours", cpu, Bound::AtLeast(5.0));
    if let (Some(cpu), Some(memory)) = (cpu, memory) {
        let row = Row::of("waiting-room", "candidate").with("against", SORTED_SET).with("layer", "ratio");
        report.round(row.figure("ratio", cpu).figure("memory_ratio", memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_spread_over_calls_and_nobody_is_left_out() {
        let keys = NAMES.map(str::to_owned);
        let (_, answers) = calls(&keys, Way::Script { sha: "x", together: 64 }, 0, 130, 1_000);
        assert_eq!(answers, 3);
        let (_, answers) = calls(&keys, Way::SortedSet, 0, 130, 1_000);
        assert_eq!(answers, 260);
        assert_eq!(numbers(&Value::Array(vec![Value::Int(1), Value::Int(7), Value::Int(3)])).ok(), Some((7, 3)));
        assert!(numbers(&Value::Array(vec![Value::Int(0)])).is_err());
    }
}

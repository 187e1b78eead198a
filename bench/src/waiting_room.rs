//! `waiting-room`: CPU and memory cost in Redis of two million joins of one waiting room.
//!
//! The server's script, which serves a batch of joins per call, is compared with a sorted set, a common queue design:
//! a member per person, scored by arrival. Both get the same number of joins with the same number in flight, and each
//! starts without keys. Then Pearson's chi-square test checks the draw, computed as docs/api.md describes it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use hmac::{Hmac, KeyInit, Mac};
use redis::{ConnectionLike, Value, cmd};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::RunOptions;
use crate::checker::Findings;
use crate::report::{Bound, Report, ReportRow, ratio};
use crate::world::{RunPaths, Store};

/// The baseline: a member of a sorted set per person.
const SORTED_SET: &str = "sorted_set";
/// Promised maximum growth of Redis, bytes.
const MAX_GROWTH_BYTES: f64 = 3_000_000.0;
/// Names of a room's keys, in the order of `join.lua`.
const NAMES: [&str; 6] = ["room", "left", "inside", "entered", "lately", "present"];
/// An opening time in the far future, ms: the room does not open.
const NEVER: i64 = 4_000_000_000_000;

/// Odd multiplier that turns numbers into distinct ids.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// Options of `waiting-room`.
#[derive(Clone, Debug, clap::Args)]
pub struct WaitingRoomOptions {
    /// People who join.
    #[arg(long, default_value_t = 2_000_000)]
    people: u64,
    /// Joins per call, as the server batches those that arrive during a call.
    #[arg(long, default_value_t = 64)]
    joins_per_call: u64,
    /// Joins in flight.
    #[arg(long, default_value_t = 1_024)]
    in_flight: u64,
    /// Folder of the server's waiting-room scripts, which are under test.
    #[arg(long, default_value = "server/admission/src/waiting_room/lua")]
    room_scripts: PathBuf,
}

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: WaitingRoomOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        options.people = 100_000;
    }
    ensure!(options.joins_per_call > 0 && options.in_flight >= options.joins_per_call, "calls carry joins");
    ensure!(!paths.redis_url.is_empty(), "REDIS_URL is not set; `cargo xtask bench` starts Redis and sets it");
    let prefix = format!("w{}:", Uuid::from_u128(u128::from(std::process::id())).simple());
    let mut store = Store::open(&paths.redis_url, &prefix, &paths.scripts)?;
    let code = std::fs::read_to_string(options.room_scripts.join("join.lua")).context("the server's join.lua")?;
    let sha: String = cmd("SCRIPT").arg("LOAD").arg(code).query(store.connection())?;
    for round in 1..=run.rounds {
        let ours = measure(&mut store, &options, JoinMethod::Script { sha: &sha, per_call: options.joins_per_call })?;
        report_cost(report, "candidate", round, &options, &ours);
        let single = WaitingRoomOptions { people: options.people / 10, ..options.clone() };
        let alone = measure(&mut store, &single, JoinMethod::Script { sha: &sha, per_call: 1 })?;
        report_cost(report, "one_per_call", round, &single, &alone);
        let theirs = measure(&mut store, &options, JoinMethod::SortedSet)?;
        report_cost(report, SORTED_SET, round, &options, &theirs);
        report.findings(&check_draw(options.people, u64::from(round)));
    }
    store.delete_all()?;
    report.summarise();
    promises(report);
    Ok(())
}

/// A method to join.
#[derive(Clone, Copy)]
enum JoinMethod<'a> {
    /// The script, with this many joins a call.
    Script { sha: &'a str, per_call: u64 },
    /// ZADD NX of the person's id, then ZRANK for the position.
    SortedSet,
}

struct Cost {
    micros: f64,
    growth: u64,
    found: Findings,
}

fn measure(store: &mut Store, options: &WaitingRoomOptions, method: JoinMethod<'_>) -> Result<Cost> {
    let keys = NAMES.map(|name| format!("{}{{show:bench}}:queue:{name}", store.prefix()));
    // DEL, not UNLINK: memory freed in the background would distort the measurement.
    cmd("DEL").arg(&keys).query::<i64>(store.connection())?;
    // The state of a new room.
    cmd("HSET").arg(&keys[0]).arg("next").arg(0).query::<i64>(store.connection())?;
    purge_freed_memory(store)?;
    let (memory, mut found) = (used_memory(store)?, Findings::default());
    let (mut micros, mut joined) = (0.0, 0_u64);
    let mut given: BTreeSet<(u64, u64)> = BTreeSet::new();
    while joined < options.people {
        let people = options.in_flight.min(options.people - joined);
        let (packed, answer_count) = calls(&keys, method, joined, people, options.people);
        let before = store.cpu()?;
        let answers = store.send(&packed, answer_count)?;
        micros += store.cpu()?.micros_since(&before);
        match method {
            JoinMethod::Script { .. } => {
                for answer in &answers {
                    let (first, count) = numbers(answer)?;
                    if !given.insert((first, count)) {
                        found.add(|| format!("the number {first} was given out twice"));
                    }
                }
            }
            JoinMethod::SortedSet => {
                if answers.iter().any(|answer| !matches!(answer, Value::Int(_))) {
                    bail!("the sorted set answered {answers:?}");
                }
            }
        }
        joined += people;
    }
    if matches!(method, JoinMethod::Script { .. }) {
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

/// Encodes the calls of `people` joins before the clock starts. Returns them with the number of answers.
fn calls(keys: &[String; 6], method: JoinMethod<'_>, joined: u64, people: u64, all: u64) -> (Vec<u8>, usize) {
    let mut packed = Vec::new();
    let mut answers = 0;
    match method {
        JoinMethod::Script { sha, per_call } => {
            let mut left = people;
            while left > 0 {
                let count = per_call.min(left);
                let mut call = cmd("EVALSHA");
                call.arg(sha).arg(keys.len()).arg(keys).arg(count).arg(0).arg(all).arg(NEVER);
                // Everyone may wait at once, and there are as many numbers as people.
                call.arg(all).arg(all);
                packed.extend(call.get_packed_command());
                answers += 1;
                left -= count;
            }
        }
        JoinMethod::SortedSet => {
            for number in joined..joined + people {
                // A UUID as the person's id, scored by arrival.
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

/// Parses an answer of `join.lua`: first ticket number and count.
fn numbers(answer: &Value) -> Result<(u64, u64)> {
    let Value::Array(parts) = answer else { bail!("join.lua answered {answer:?}") };
    match parts.as_slice() {
        [Value::Int(1), Value::Int(first), Value::Int(count), Value::Int(_is_full)] => {
            Ok((first.unsigned_abs(), count.unsigned_abs()))
        }
        _ => bail!("join.lua answered {answer:?}"),
    }
}

/// Returns freed memory to the system, so that the next round starts equally.
fn purge_freed_memory(store: &mut Store) -> Result<()> {
    // Not every allocator supports it.
    let _ = store.connection().req_command(cmd("MEMORY").arg("PURGE"));
    Ok(())
}

fn used_memory(store: &mut Store) -> Result<u64> {
    let info: String = cmd("INFO").arg("memory").query(store.connection())?;
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|bytes| bytes.trim().parse().ok()).context("Redis does not report its memory")
}

fn report_cost(report: &mut Report, variant: &str, round: u32, options: &WaitingRoomOptions, cost: &Cost) {
    let row = ReportRow::of("waiting-room", variant).with("layer", "redis").with("round", round);
    let row = row.with("people", options.people).with("redis_growth_bytes", cost.growth);
    report.round(row.figure("redis_cpu_us_per_op", cost.micros));
    report.findings(&cost.found);
}

fn promises(report: &mut Report) {
    let of = |variant: &str, key: &str| report.median(&[("variant", json!(variant))], key);
    let ours = of("candidate", "redis_growth_bytes");
    report.promise("bytes Redis grows by", ours, Bound::AtMost(MAX_GROWTH_BYTES));
    let memory = ratio(of(SORTED_SET, "redis_growth_bytes"), ours.map(|ours| ours.max(1.0)));
    report.promise("memory of a sorted set against ours", memory, Bound::AtLeast(100.0));
    let cpu = ratio(of(SORTED_SET, "redis_cpu_us_per_op"), of("candidate", "redis_cpu_us_per_op"));
    report.promise("Redis CPU of a join, a sorted set against ours", cpu, Bound::AtLeast(5.0));
    if let (Some(cpu), Some(memory)) = (cpu, memory) {
        let row = ReportRow::of("waiting-room", "candidate").with("against", SORTED_SET).with("layer", "ratio");
        report.round(row.figure("ratio", cpu).figure("memory_ratio", memory));
    }
}

/// Number of groups of tickets, and of places, in the contingency table.
const GROUPS: u64 = 20;
/// Tickets in the sample, evenly chosen.
const SAMPLE: u64 = 200_000;
/// Maximum standard deviations from uniform: one uniform draw in a million exceeds them.
const MAX_DEVIATIONS: f64 = 5.0;

/// Computes the place of ticket `number` of `people` by the key, independently of the server: as docs/api.md describes
/// the draw.
pub fn place_of(key: &[u8], people: u64, number: u64) -> u64 {
    let side = (people - 1).isqrt() + 1;
    let mut at = number;
    loop {
        let (mut left, mut right) = (at / side, at % side);
        for round in 0..10_u8 {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
            for part in [&b"rowlock-draw-1"[..], &people.to_be_bytes(), &[round], &right.to_be_bytes()] {
                mac.update(part);
            }
            let digest = mac.finalize().into_bytes();
            let word = digest[..8].iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
            (left, right) = (right, (left + word % side) % side);
        }
        at = left * side + right;
        if at < people {
            return at;
        }
    }
}

/// Tests that the ticket number says nothing about the place (Pearson's chi-square), with a key derived from `round`.
fn check_draw(people: u64, round: u64) -> Findings {
    let mut found = Findings::default();
    let key = Sha256::digest(round.to_be_bytes());
    let mut cells = vec![0_u64; (GROUPS * GROUPS) as usize];
    let step = (people / SAMPLE).max(1);
    let mut sampled = 0;
    for number in (0..people).step_by(step as usize) {
        let place = place_of(&key, people, number);
        cells[(number * GROUPS / people * GROUPS + place * GROUPS / people) as usize] += 1;
        sampled += 1;
    }
    let expected = sampled as f64 / (GROUPS * GROUPS) as f64;
    let chi_square: f64 = cells.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = ((GROUPS - 1) * (GROUPS - 1)) as f64;
    let deviations = (chi_square - freedom) / (2.0 * freedom).sqrt();
    if deviations.abs() > MAX_DEVIATIONS {
        found.add(|| format!("the draw is {deviations:.1} deviations from uniform"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_split_into_calls_without_a_remainder() {
        let keys = NAMES.map(str::to_owned);
        let (_, answers) = calls(&keys, JoinMethod::Script { sha: "x", per_call: 64 }, 0, 130, 1_000);
        assert_eq!(answers, 3);
        let (_, answers) = calls(&keys, JoinMethod::SortedSet, 0, 130, 1_000);
        assert_eq!(answers, 260);
        assert_eq!(numbers(&Value::Array([1, 7, 3, 0].map(Value::Int).to_vec())).ok(), Some((7, 3)));
        assert!(numbers(&Value::Array(vec![Value::Int(0)])).is_err());
    }

    #[test]
    fn the_draw_matches_the_documented_examples_and_is_uniform() {
        let key: Vec<u8> = (0..32).collect();
        let documented = include_str!("../../docs/api.md");
        for people in [10, 2_000_000] {
            let places: Vec<String> = (0..5).map(|number| place_of(&key, people, number).to_string()).collect();
            let row = format!("| places of tickets 0 to 4 of {people} | `{}` |", places.join(", "));
            assert!(documented.contains(&row), "docs/api.md lacks {row}");
        }
        assert_eq!(check_draw(20_000, 1).count(), 0);
    }
}

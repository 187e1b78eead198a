//! `map`: the Redis CPU cost of reading the map of a large room, and the bytes sent to the browser.
//!
//! A string with a byte per seat is compared with a hash with a field per seat and with a key per seat.
//! The frame of the live map is compared with gzipped JSON of the same seats.

use std::io::Write;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use redis::Value;
use serde_json::json;

use crate::RunOptions;
use crate::checker::{self, AVAILABLE, BOOKED, Findings, LOCKED};
use crate::frame::{MapMessage, Protocol};
use crate::random::Random;
use crate::report::{Bound, Report, ReportRow, ratio};
use crate::socket;
use crate::world::{RunPaths, Show, World};

/// Maximum size of the snapshot of a typical room, bytes.
const SNAPSHOT_BYTES: f64 = 8_000.0;
/// Seats written per call when the baselines are filled.
const FILL_BATCH: u32 = 1_000;

/// Options of `map`.
#[derive(Clone, Debug, clap::Args)]
pub struct MapOptions {
    /// Seats of the room.
    #[arg(long, default_value_t = 50_000)]
    seats: u32,
    /// Reads a round of the string.
    #[arg(long, default_value_t = 2_000)]
    readings: u32,
    /// Reads a round of each baseline (hash and keys), which are slow.
    #[arg(long, default_value_t = 40)]
    baseline_readings: u32,
}

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: MapOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        options.seats = 5_000;
        options.readings = 200;
        options.baseline_readings = 5;
    }
    let mut world = World::create(paths)?;
    // The server that built the map is stopped; a new one reads the map written below.
    let show = world.loaded_show(options.seats)?;
    let path = show.live_path();
    for round in 1..=run.rounds {
        let map = typical_room(show.seats, &mut world.random);
        redis::cmd("SET").arg(world.store.key(&show, "map")).arg(&map).query::<()>(world.store.connection())?;
        fill_baselines(&mut world, &show, &map)?;
        redis_cpu(&mut world, &show, &options, round, report)?;
        let server = world.server("rowlock", None)?;
        let frame = socket::first_message(server.address, &path)?;
        sizes(&frame, &map, round, report)?;
    }
    report.summarise();
    promises(report);
    Ok(())
}

/// Writes a field per seat and a key per seat. States are one character, in favour of the baselines.
fn fill_baselines(world: &mut World, show: &Show, map: &[u8]) -> Result<()> {
    for first in (0..show.seats).step_by(FILL_BATCH as usize) {
        let last = (first + FILL_BATCH).min(show.seats);
        let (mut hash, mut keys) = (redis::cmd("HSET"), redis::cmd("MSET"));
        hash.arg(world.store.key(show, "hash"));
        for seat in first..last {
            let state = map[seat as usize];
            hash.arg(seat).arg(state);
            keys.arg(world.store.seat_key(show, seat)).arg(state);
        }
        hash.query::<i64>(world.store.connection())?;
        keys.query::<()>(world.store.connection())?;
    }
    Ok(())
}

fn redis_cpu(world: &mut World, show: &Show, options: &MapOptions, round: u32, report: &mut Report) -> Result<()> {
    let script = world.store.script("snapshot")?;
    let scripted = world.store.call(&script, show, &[]).get_packed_command();
    // The server's read: one transaction, without a script.
    let key = |name: &str| world.store.key(show, name);
    let mut transaction = redis::pipe();
    transaction.atomic().cmd("TIME").cmd("MGET").arg(key("epoch")).arg(key("version"));
    transaction.cmd("GET").arg(key("map")).cmd("HGETALL").arg(key("areas"));
    let mut get = redis::cmd("GET");
    get.arg(world.store.key(show, "map"));
    let mut hash = redis::cmd("HGETALL");
    hash.arg(world.store.key(show, "hash"));
    let mut keys = redis::cmd("MGET");
    (0..show.seats).for_each(|seat| {
        keys.arg(world.store.seat_key(show, seat));
    });
    for (variant, call, readings) in [
        // MULTI, four commands and EXEC.
        ("candidate", (transaction.get_packed_pipeline(), 6), options.readings),
        ("in_a_script", (scripted, 1), options.readings),
        ("string_get", (get.get_packed_command(), 1), options.readings),
        ("hash_per_seat", (hash.get_packed_command(), 1), options.baseline_readings),
        ("key_per_seat", (keys.get_packed_command(), 1), options.baseline_readings),
    ] {
        let (packed, answers) = call;
        let before = world.store.cpu()?;
        for _ in 0..readings {
            let answer = world.store.send(&packed, answers)?;
            anyhow::ensure!(!matches!(answer[..], [Value::Nil]), "{variant} has no map");
        }
        let micros = world.store.cpu()?.micros_since(&before) / f64::from(readings);
        let row = ReportRow::of("map", variant).with("layer", "redis").with("round", round).with("seats", show.seats);
        report.round(row.figure("redis_cpu_us_per_op", micros));
    }
    Ok(())
}

/// Compares the size of a reader's first frame with JSON of the map, and the frame's content with the map.
fn sizes(snapshot: &[u8], map: &[u8], round: u32, report: &mut Report) -> Result<()> {
    let mut found = Findings::default();
    match Protocol::Frames.read(snapshot) {
        Some(MapMessage::Snapshot { map: seen, .. }) => found.join(checker::view("a new reader", &seen, map)),
        other => found.add(|| format!("the first frame is {other:?}")),
    }
    let objects: Vec<_> = map
        .iter()
        .enumerate()
        .map(|(seat, state)| json!({"seat": seat, "state": NAMES[usize::from(*state)]}))
        .collect();
    let digits: String = map.iter().map(|state| char::from(b'0' + state)).collect();
    let sizes = [
        ("candidate", snapshot.len()),
        ("json_objects_gzip", gzipped(&serde_json::to_vec(&objects)?)?),
        ("json_array_gzip", gzipped(&serde_json::to_vec(&map)?)?),
        ("json_digits_gzip", gzipped(&serde_json::to_vec(&digits)?)?),
        ("packed_gzip", gzipped(snapshot)?),
    ];
    for (variant, bytes) in sizes {
        let row = ReportRow::of("map", variant).with("layer", "wire").with("round", round).with("seats", map.len());
        report.round(row.with("bytes", bytes));
    }
    report.findings(&found);
    Ok(())
}

/// Names of the states in JSON.
const NAMES: [&str; 4] = ["available", "locked", "booked", "blocked"];

fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish().context("gzip")?.len())
}

fn promises(report: &Report) {
    let of = |variant: &str, layer: &str, key: &str| {
        report.median(&[("variant", json!(variant)), ("layer", json!(layer))], key)
    };
    let redis = of("candidate", "redis", "redis_cpu_us_per_op");
    for variant in ["hash_per_seat", "key_per_seat"] {
        let ratio = ratio(of(variant, "redis", "redis_cpu_us_per_op"), redis);
        report.promise(&format!("Redis CPU of a snapshot, {variant} against ours"), ratio, Bound::AtLeast(500.0));
    }
    let bytes = of("candidate", "wire", "bytes");
    report.promise("bytes of a typical snapshot", bytes, Bound::AtMost(SNAPSHOT_BYTES));
    let json = ratio(of("json_objects_gzip", "wire", "bytes"), bytes);
    report.promise("gzipped JSON against our snapshot, bytes", json, Bound::AtLeast(15.0));
}

const ROW: u32 = 100;
/// Map byte of a seat that is not for sale.
const BLOCKED: u8 = 3;
/// Percentage of parties that hold their seats and have not paid.
const HELD_PERCENT: u64 = 4;
/// Blocked seats per thousand.
const HOUSE_PER_MILLE: u64 = 2;

/// Creates the map of a half-sold room: parties of two to six sit together, the middle is sold first, some seats are
/// held, a few are blocked.
fn typical_room(seats: u32, random: &mut Random) -> Vec<u8> {
    let mut map = vec![AVAILABLE; seats as usize];
    for _ in 0..u64::from(seats) * HOUSE_PER_MILLE / 1_000 {
        map[random.below(u64::from(seats)) as usize] = BLOCKED;
    }
    let mut taken = 0;
    while taken < seats / 2 {
        let size = 2 + random.below(5) as u32;
        let state = if random.below(100) < HELD_PERCENT { LOCKED } else { BOOKED };
        if let Some(first) = best_place(&map, size, random) {
            map[first..first + size as usize].fill(state);
            taken += size;
        }
    }
    map
}

/// Chooses the seats of a party: of a few random free places the one nearest to the middle of the room.
/// Half of the parties move next to their neighbours.
fn best_place(map: &[u8], size: u32, random: &mut Random) -> Option<usize> {
    const LOOKS: usize = 3;
    let rows = (map.len() as u32).div_ceil(ROW);
    let free = |first: u32| {
        let place = first as usize..(first + size) as usize;
        first % ROW + size <= ROW && map.get(place).is_some_and(|seats| seats.iter().all(|seat| *seat == AVAILABLE))
    };
    let distance = |first: u32| {
        let (row, seat) = (first / ROW, first % ROW + size / 2);
        row.abs_diff(rows / 2) * ROW / rows.max(1) + seat.abs_diff(ROW / 2)
    };
    let looked = (0..LOOKS).map(|_| random.below(map.len() as u64) as u32).filter(|first| free(*first));
    let mut first = looked.min_by_key(|first| distance(*first))?;
    // Half of the parties move up to their neighbours; the others may leave a gap.
    if random.below(2) == 0 {
        return Some(first as usize);
    }
    while first % ROW > 0 && free(first - 1) && distance(first - 1) <= distance(first) {
        first -= 1;
    }
    while free(first + 1) && distance(first + 1) < distance(first) {
        first += 1;
    }
    Some(first as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_seats_are_taken_in_parties_and_more_in_the_middle() {
        let map = typical_room(5_000, &mut Random::from_seed(3));
        let taken_in = |seats: &[u8]| seats.iter().filter(|state| **state != AVAILABLE).count();
        assert!((2_500..2_530).contains(&taken_in(&map)), "{}", taken_in(&map));
        assert!(map.contains(&LOCKED) && map.contains(&BLOCKED));
        let (middle, sides): (Vec<u8>, Vec<u8>) =
            map.chunks(100).fold(Default::default(), |(mut middle, mut sides), row| {
                middle.extend_from_slice(&row[30..70]);
                sides.extend_from_slice(&row[..30]);
                (middle, sides)
            });
        assert!(
            taken_in(&middle) * 3 > taken_in(&sides) * 4,
            "{} in the middle, {} at the side",
            taken_in(&middle),
            taken_in(&sides)
        );
        let runs = map.chunk_by(|a, b| a == b).count();
        assert!(runs < 5_000 / 3, "{runs} runs: parties are split");
    }
}

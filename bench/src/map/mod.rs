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
use crate::checker::{self, Findings};
use crate::frame::{self, LiveFrame};
use crate::report::{Bound, Report, ReportRow};
use crate::socket;
use crate::world::{RunPaths, Show, World};

mod typical;

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

/// Runs it.
pub fn run(paths: &RunPaths, run: &RunOptions, mut options: MapOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        options.seats = 5_000;
        options.readings = 200;
        options.baseline_readings = 5;
    }
    let mut world = World::create(paths)?;
    // The server that built the map is stopped; a new one reads the map written below.
    let show = world.loaded_shows(options.seats, 1)?[0];
    let path = show.live_path();
    for round in 1..=run.rounds {
        let map = typical::room(show.seats, &mut world.random);
        redis::cmd("SET").arg(world.store.key(&show, "map")).arg(&map).query::<()>(world.store.connection())?;
        fill_baselines(&mut world, &show, &map)?;
        redis_cpu(&mut world, &show, &options, round, report)?;
        let server = world.server("rowlock", None)?;
        let frame = socket::first_message(server.address, &path)?;
        sizes(&frame, &map, round, report)?;
    }
    report.summarise();
    report.print_line("");
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
            keys.arg(seat_key(world, show, seat)).arg(state);
        }
        hash.query::<i64>(world.store.connection())?;
        keys.query::<()>(world.store.connection())?;
    }
    Ok(())
}

fn seat_key(world: &World, show: &Show, seat: u32) -> String {
    world.store.key(show, &format!("seat:{seat}"))
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
        keys.arg(seat_key(world, show, seat));
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
    match frame::read(snapshot) {
        Some(LiveFrame::Snapshot { map: encoded, .. }) => {
            found.join(checker::view("a new reader", &encoded.decode().unwrap_or_default(), map));
        }
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

fn promises(report: &mut Report) {
    let of = |variant: &str, layer: &str, key: &str, report: &Report| {
        report.median(&[("variant", json!(variant)), ("layer", json!(layer))], key)
    };
    let redis = of("candidate", "redis", "redis_cpu_us_per_op", report);
    for variant in ["hash_per_seat", "key_per_seat"] {
        let ratio = of(variant, "redis", "redis_cpu_us_per_op", report).zip(redis).map(|(base, ours)| base / ours);
        report.promise(&format!("Redis CPU of a snapshot, {variant} against ours"), ratio, Bound::AtLeast(500.0));
    }
    let bytes = of("candidate", "wire", "bytes", report);
    report.promise("bytes of a typical snapshot", bytes, Bound::AtMost(SNAPSHOT_BYTES));
    let json = of("json_objects_gzip", "wire", "bytes", report).zip(bytes).map(|(base, ours)| base / ours);
    report.promise("gzipped JSON against our snapshot, bytes", json, Bound::AtLeast(15.0));
}

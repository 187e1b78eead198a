//! `cargo xtask bench NAME`: measures the release build on fresh private stores.
//!
//! It builds, starts the stores and hands over; what is measured and how is the affair of `bench/`, and of
//! `end2end/measure` for the browser half (docs/performance.md). Standard output belongs to the results.

use anyhow::Result;
use clap::Args;

use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::Processes;
use crate::progress::{Step, note};
use crate::services::{self, Folder, Stores};
use crate::stop::Stop;

mod browser;

/// The benchmarks, and what each is about.
const BENCHES: [(&str, &str); 9] = [
    ("locks", "attempts to take seats: over HTTP at three rates, and in Redis alone"),
    ("map", "reading the map of 50,000 seats: Redis CPU and bytes on the wire"),
    ("live", "changes delivered to sockets: per core-second, how late, idle and stalled readers"),
    ("sale", "sales of 4 seats from hold to ticket: batched commits against one by one"),
    ("storm", "10,000 visitors want 300 seats, 50 times, on two servers"),
    ("retries", "answered requests repeated at two servers, and one of them killed"),
    ("waiting-room", "2,000,000 people join one waiting room: CPU and memory of Redis, against a sorted set"),
    ("page", "the page of a show in a browser: bytes until it is interactive, and when it is"),
    ("render", "1,000 of 50,000 seats change in a browser, against an SVG node a seat; moving the map about"),
];
/// Those that a browser measures.
const IN_A_BROWSER: [&str; 2] = ["page", "render"];

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Which benchmark; none lists them.
    name: Option<String>,
    /// Passed on: --json, --rounds N, --quick, and what the benchmark itself takes (--help).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs one; whether its figures stand.
pub fn bench(places: &Places, options: &Options, stop: &Stop) -> Result<bool> {
    let Some(name) = &options.name else {
        for (name, about) in BENCHES {
            println!("cargo xtask bench {name:<12} {about}");
        }
        return Ok(true);
    };
    let mut folder = Folder::open(places, "bench", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    if IN_A_BROWSER.contains(&name.as_str()) {
        let good = browser::bench(places, name, &options.arguments, &mut folder, &mut processes, stores, stop)?;
        processes.end_all();
        return Ok(good);
    }
    let good = from_outside(places, name, &options.arguments, &folder, &stores, stop)?;
    processes.check()?;
    processes.end_all();
    Ok(good)
}

/// Builds what is measured and what measures, and runs one of its programs; whether that found all in order.
pub(crate) fn from_outside(
    places: &Places,
    name: &str,
    arguments: &[String],
    folder: &Folder,
    stores: &Stores,
    stop: &Stop,
) -> Result<bool> {
    let step = Step::start("build the server and the benchmarks, optimised");
    let mut build = native::cargo(places, "build");
    build.args(["--release", "--package", "server", "--package", "simulator", "--package", "bench"]);
    command::run(&mut build, stop)?;
    step.done();
    let mut run = native::release_program(places, "rowlock-bench");
    run.arg(name).args(arguments);
    run.env("REDIS_SERVER", services::redis_program(stop)?);
    run.env("ROWLOCK_SERVER", places.release_program("rowlock"))
        .env("ROWLOCK_SIMULATOR", places.release_program("payment-simulator"))
        .env("ROWLOCK_BENCH_LOGS", folder.path.join("logs"))
        .env("DATABASE_URL", &stores.postgres)
        .env("REDIS_URL", &stores.redis);
    let good = command::status(&mut run, stop)?.success();
    if !good {
        note(&format!("logs: {}", folder.path.join("logs").display()));
    }
    Ok(good)
}

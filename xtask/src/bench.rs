//! `cargo xtask bench NAME`: benchmarks an optimised build on fresh private stores.
//!
//! It builds, starts the stores and runs the benchmark program: `bench/`, or `end2end/measure` for the
//! client (docs/performance.md). Standard output is for the results.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::cargo_progress;
use crate::command;
use crate::native;
use crate::paths::Paths;
use crate::processes::Processes;
use crate::progress::{ProgressStep, note};
use crate::services::{self, DataFolder, Stores};
use crate::serving::Product;
use crate::setup;
use crate::site::{self, BuildMode};
use crate::stop::Stop;

const BENCHES: [(&str, &str); 9] = [
    ("locks", "attempts to hold seats: over HTTP at three rates, and in Redis alone"),
    ("map", "reading the map of 50,000 seats: Redis CPU and bytes on the wire"),
    ("live", "changes delivered to sockets: per core-second, latency, idle and stalled readers"),
    ("sale", "sales of 4 seats from hold to ticket: paid in the request of the checkout, and in another"),
    ("storm", "10,000 visitors want 300 seats, 50 times, on two servers"),
    ("retries", "answered requests replayed at two servers, and one of them killed"),
    ("waiting-room", "2,000,000 people join one waiting room: CPU and memory of Redis, against a sorted set"),
    ("page", "the page of a show in a browser: bytes until it is interactive, and when it is"),
    ("render", "1,000 of 50,000 seats change in a browser, against an SVG node per seat; dragging the map"),
];
const IN_A_BROWSER: [&str; 2] = ["page", "render"];

/// Options of `bench`.
#[derive(Args)]
pub struct BenchOptions {
    /// Name of the benchmark; without it, the benchmarks are listed.
    name: Option<String>,
    /// Arguments of the benchmark: --json, --rounds N, --quick and its own (--help).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs a benchmark. Returns `true` when it found no violation.
pub fn bench(paths: &Paths, options: &BenchOptions, stop: &Stop) -> Result<bool> {
    let Some(name) = &options.name else {
        for (name, about) in BENCHES {
            println!("cargo xtask bench {name:<12} {about}");
        }
        return Ok(true);
    };
    let mut folder = DataFolder::open(paths, "bench", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    if IN_A_BROWSER.contains(&name.as_str()) {
        let passed = run_in_browser(paths, name, &options.arguments, &mut folder, &mut processes, stores, stop)?;
        processes.end_all();
        return Ok(passed);
    }
    let passed = run_load_generator(paths, name, &options.arguments, &folder, &stores, stop)?;
    processes.check()?;
    processes.end_all();
    Ok(passed)
}

/// Builds the product and the load generator and runs one of its benchmarks. Returns `true` without violations.
pub(crate) fn run_load_generator(
    paths: &Paths,
    name: &str,
    arguments: &[String],
    folder: &DataFolder,
    stores: &Stores,
    stop: &Stop,
) -> Result<bool> {
    let step = ProgressStep::start("build the server and the benchmarks, optimised");
    let mut build = native::cargo(paths, "build");
    build.args(["--profile", "benchmark", "--package", "rowlock", "--package", "simulator", "--package", "bench"]);
    cargo_progress::run(&mut build, &step, stop)?;
    step.done();
    let mut run = native::benchmark_program(paths, "rowlock-bench");
    run.arg(name).args(arguments);
    run.env("REDIS_SERVER", services::redis_program(stop)?);
    run.env("ROWLOCK_SERVER", paths.benchmark_program("rowlock"))
        .env("ROWLOCK_SIMULATOR", paths.benchmark_program("payment-simulator"))
        .env("ROWLOCK_BENCH_LOGS", folder.path.join("logs"))
        .env("DATABASE_URL", &stores.postgres)
        .env("REDIS_URL", &stores.redis);
    let passed = command::status(&mut run, stop)?.success();
    if !passed {
        note(&format!("logs: {}", folder.path.join("logs").display()));
    }
    Ok(passed)
}

/// Runs a benchmark of the client in Chromium, on the product with fresh stores. Returns `true` when it succeeded. The
/// programs have the dev profile, as those of `run`; the client is the optimised build.
fn run_in_browser(
    paths: &Paths,
    name: &str,
    arguments: &[String],
    folder: &mut DataFolder,
    processes: &mut Processes<'_>,
    stores: Stores,
    stop: &Stop,
) -> Result<bool> {
    let end2end = paths.root.join("end2end");
    let chromium = setup::chromium_with_playwright(&end2end, stop)?;
    native::build(paths, stop)?;
    site::build(paths, BuildMode::Optimised, stop)?;

    let (_, server) = Product::start_for_tests(paths, folder, processes, stores, stop)?;
    let mut measure = Command::new("node");
    measure.current_dir(&end2end).arg(format!("measure/{name}.mjs")).args(arguments);
    measure.env("BASE_URL", &server.public_url);
    if let Some(chromium) = chromium {
        measure.env("CHROMIUM", chromium);
    }
    Ok(command::status(&mut measure, stop)?.success())
}

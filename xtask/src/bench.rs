//! `cargo xtask bench NAME`: benchmarks an optimised build on fresh private stores.
//!
//! It builds, starts the stores and runs the benchmark program: `bench/`, or `end2end/measure` for the
//! client (docs/performance.md). Standard output is for the results. `--peer DIR` starts a peer server as well.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cargo_progress;
use crate::command;
use crate::native;
use crate::paths::Paths;
use crate::peer::PeerStack;
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
/// Name that runs all benchmarks except those in a browser.
const ALL: &str = "all";
const QUICK: &str = "--quick";
const PEER: &str = "--peer";

/// Options of `bench`.
#[derive(Args)]
pub struct BenchOptions {
    /// Name of the benchmark, or `all` for those without a browser; without it, the benchmarks are listed.
    name: Option<String>,
    /// Arguments of the benchmark: --json, --rounds N, --quick and its own (--help). `--peer DIR` compares locks, sale,
    /// live, retries or map with the server that DIR/stack.sh starts.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl BenchOptions {
    /// Returns the options of a short run of all benchmarks without a browser, for `ci`.
    pub fn all_quick() -> Self {
        Self { name: Some(ALL.to_owned()), arguments: vec![QUICK.to_owned()] }
    }
}

/// Runs a benchmark. Returns `true` when it found no violation.
pub fn bench(paths: &Paths, options: &BenchOptions, stop: &Stop) -> Result<bool> {
    let Some(name) = &options.name else {
        for (name, about) in BENCHES {
            println!("cargo xtask bench {name:<12} {about}");
        }
        println!("cargo xtask bench {ALL:<12} all except {}", IN_A_BROWSER.join(" and "));
        return Ok(true);
    };
    let (peer, arguments) = take_peer(&options.arguments)?;
    let is_for_browser = IN_A_BROWSER.contains(&name.as_str());
    ensure!(peer.is_none() || (name != ALL && !is_for_browser), "{name} has no {PEER}");
    let mut folder = DataFolder::open(paths, "bench", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    if is_for_browser {
        let passed = run_in_browser(paths, name, &arguments, &mut folder, &mut processes, stores, stop)?;
        processes.end_all();
        return Ok(passed);
    }
    let generator = LoadGenerator::build(paths, &arguments, stop)?;
    // It stops when it is dropped, before the stores of the run.
    let peer = peer.map(|peer| PeerStack::start(paths, &folder, &peer, stop)).transpose()?;
    let is_chosen = |bench: &&str| if name == ALL { !IN_A_BROWSER.contains(bench) } else { bench == name };
    let mut names: Vec<&str> = BENCHES.iter().map(|(bench, _)| *bench).filter(is_chosen).collect();
    if names.is_empty() {
        // The load generator says what it does not know.
        names.push(name);
    }
    let mut passed = true;
    for name in names {
        note(&format!("benchmark {name}"));
        passed &= generator.run(name, &folder, &stores, peer.as_ref())?;
    }
    drop(peer);
    processes.check()?;
    processes.end_all();
    Ok(passed)
}

/// Takes `--peer DIR` out of the arguments of a benchmark.
fn take_peer(arguments: &[String]) -> Result<(Option<PathBuf>, Vec<String>)> {
    let (mut peer, mut rest) = (None, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(PEER) {
            Some("") => peer = Some(PathBuf::from(arguments.next().context("--peer needs a folder")?)),
            Some(value) if value.starts_with('=') => peer = Some(PathBuf::from(&value[1..])),
            _ => rest.push(argument.clone()),
        }
    }
    Ok((peer, rest))
}

/// The built load generator and the programs that it starts.
pub(crate) struct LoadGenerator<'a> {
    paths: &'a Paths,
    arguments: &'a [String],
    stop: &'a Stop,
}

impl<'a> LoadGenerator<'a> {
    /// Builds the programs, optimised. A quick run measures nothing: it takes those of the dev profile, as the tests do.
    pub(crate) fn build(paths: &'a Paths, arguments: &'a [String], stop: &'a Stop) -> Result<Self> {
        let generator = Self { paths, arguments, stop };
        let (what, mut build) = if generator.is_quick() {
            ("build the server and the benchmarks", native::cargo_all(paths, "build"))
        } else {
            let mut build = native::cargo(paths, "build");
            build.args(["--profile", "benchmark", "--package", "rowlock", "--package", "simulator"]);
            build.args(["--package", "bench"]);
            ("build the server and the benchmarks, optimised", build)
        };
        build.args(["--bin", "rowlock", "--bin", "payment-simulator", "--bin", "rowlock-bench"]);
        let step = ProgressStep::start(what);
        cargo_progress::run(&mut build, &step, stop)?;
        step.done();
        Ok(generator)
    }

    fn is_quick(&self) -> bool {
        self.arguments.iter().any(|argument| argument == QUICK)
    }

    fn program(&self, name: &str) -> PathBuf {
        if self.is_quick() { self.paths.program(name) } else { self.paths.benchmark_program(name) }
    }

    /// Runs a benchmark. Returns `true` without violations.
    pub(crate) fn run(
        &self,
        name: &str,
        folder: &DataFolder,
        stores: &Stores,
        peer: Option<&PeerStack<'_>>,
    ) -> Result<bool> {
        let mut run = native::command_in_checkout(self.paths, &self.program("rowlock-bench"));
        run.arg(name).args(self.arguments);
        if let Some(peer) = peer {
            run.arg(PEER).arg(peer.description()).env("PEER_POSTGRES_PORT", peer.postgres_port.to_string());
        }
        run.env("REDIS_SERVER", services::redis_program(self.stop)?)
            .env("ROWLOCK_SERVER", self.program("rowlock"))
            .env("ROWLOCK_SIMULATOR", self.program("payment-simulator"))
            .env("ROWLOCK_BENCH_LOGS", folder.path.join("logs"))
            .env("DATABASE_URL", &stores.postgres)
            .env("REDIS_URL", &stores.redis);
        let passed = command::status(&mut run, self.stop)?.success();
        if !passed {
            note(&format!("{name} failed; logs: {}", folder.path.join("logs").display()));
        }
        Ok(passed)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_taken_from_any_place_and_the_rest_is_kept() {
        let taken = |arguments: &[&str]| take_peer(&arguments.iter().copied().map(str::to_owned).collect::<Vec<_>>());
        for arguments in [&["--peer", "p", "--rounds", "3"][..], &["--rounds", "3", "--peer=p"]] {
            let (peer, rest) = taken(arguments).expect("readable");
            assert_eq!(peer, Some(PathBuf::from("p")));
            assert_eq!(rest, ["--rounds", "3"]);
        }
        assert_eq!(taken(&["--peer-postgres-port", "1"]).expect("readable").0, None);
        assert!(taken(&["--peer"]).is_err());
    }
}

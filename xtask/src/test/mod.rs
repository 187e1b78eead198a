//! `cargo xtask test`: all tests, on fresh private stores.
//!
//! First cargo's tests, then the browser tests, then the API against its OpenAPI document. The output ends with names and
//! messages of failed tests, the time of each part, the slowest tests, and a line of counts.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use crate::cargo_progress;
use crate::native;
use crate::paths::Paths;
use crate::processes::Processes;
use crate::progress::{ProgressStep, note};
use crate::services::{self, DataFolder, Stores};
use crate::setup::{self, pgbouncer};
use crate::stop::Stop;
use durations::Durations;
use failures::CargoFailures;

mod api_contract;
mod browser;
mod durations;
mod failures;
mod requirements;

/// Targets of cargo's tests: the integration tests of the server, and all others. Not the examples in comments: no crate
/// has any, and looking for them reads each crate once more.
const INTEGRATION: [&str; 2] = ["--test", "it"];
const OTHERS: [&str; 4] = ["--lib", "--bins", "--test", "service"];
/// Certificate authority that integration tests and their servers trust; it signed nothing. They use no TLS, and each HTTP
/// client of a program that is not optimised would take some tens of milliseconds to read the system's authorities.
const AUTHORITY: &str = "server/rowlock/tests/it/authority.pem";
/// Concurrent tests of a program, in addition to one per core: integration tests wait for timers of servers most of the
/// time. `RUST_TEST_THREADS` overrides the sum.
const MORE_THREADS: usize = 4;

/// Maximum repetitions of a browser test: each needs separate shows, and the demo has three hundred.
const MAX_TIMES: i64 = 40;

/// Options of `test`.
#[derive(Args, Default)]
pub struct TestOptions {
    /// Skip the browser tests.
    #[arg(long)]
    pub skip_browser: bool,
    /// Run only the browser tests.
    #[arg(long, conflicts_with = "skip_browser")]
    pub only_browser: bool,
    /// Skip the tests of the API against its OpenAPI document.
    #[arg(long)]
    pub skip_api_contract: bool,
    /// Run only the tests of the API against its OpenAPI document.
    #[arg(long, conflicts_with_all = ["skip_api_contract", "only_browser"])]
    pub only_api_contract: bool,
    /// Run the browser tests with the client for delivery, as `ci` does. Otherwise they use that of `run`, which takes
    /// minutes less to build: the same code in one module.
    #[arg(long, conflicts_with_all = ["skip_browser", "only_api_contract"])]
    pub delivery: bool,
    /// Record each browser test, for the trace of a failed one. Takes longer.
    #[arg(long, requires = "only_browser")]
    pub trace: bool,
    /// Replace the reference screenshots instead of comparing with them.
    #[arg(long, requires = "only_browser")]
    pub renew_pictures: bool,
    /// Also import each plan (`*.json`) of a folder, such as those of other venues, test its first view and tap its seats.
    #[arg(long, requires = "only_browser", value_name = "FOLDER")]
    pub plans: Option<PathBuf>,
    /// Repeat each browser test N times, to find flaky ones.
    #[arg(long, requires = "only_browser", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_TIMES))]
    pub times: Option<u32>,
    /// Run only tests whose name contains this text. It is an error if there are none.
    pub filter: Option<String>,
}

/// Test results.
#[derive(Default)]
pub struct Counts {
    passed: u64,
    failed: u64,
    /// Names of failed tests, each with its message.
    failures: Vec<String>,
    durations: Durations,
}

impl Counts {
    fn add(&mut self, others: Self) {
        self.passed += others.passed;
        self.failed += others.failed;
        self.failures.extend(others.failures);
        self.durations.append(others.durations);
    }
}

/// Runs the tests. Returns `true` when all passed.
pub fn test(paths: &Paths, options: &TestOptions, stop: &Stop) -> Result<bool> {
    requirements::require(paths, options, stop)?;
    let mut counts = Counts::default();
    if !options.only_api_contract {
        counts.add(cargo_and_browser(paths, options, stop)?);
    }
    if options.skip_api_contract {
        note("the tests of the API against its document were skipped");
    } else if !options.only_browser {
        counts.add(count_error("tests of the API contract", api_contract::test(paths, options, stop), stop)?);
    }
    for failure in &counts.failures {
        println!("failed: {failure}");
    }
    for line in counts.durations.lines() {
        println!("{line}");
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    verdict(&counts, options.filter.as_deref())
}

/// Runs cargo's tests and the browser tests on the same stores.
fn cargo_and_browser(paths: &Paths, options: &TestOptions, stop: &Stop) -> Result<Counts> {
    let mut folder = DataFolder::open(paths, "test", true)?.throwaway();
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let mut counts = Counts::default();
    if !options.only_browser {
        counts.add(cargo_tests(paths, options, &folder, &stores, stop)?);
    }
    if options.skip_browser {
        note("the browser tests were skipped");
    } else {
        let browser = browser::test(paths, options, &mut folder, &mut processes, stores, stop);
        counts.add(count_error("browser tests", browser, stop)?);
    }
    processes.end_all();
    Ok(counts)
}

/// Counts a part that ended with an error as one failure, so that the results of earlier parts are still printed.
fn count_error(part: &str, counts: Result<Counts>, stop: &Stop) -> Result<Counts> {
    counts.or_else(|error| {
        stop.check()?;
        eprintln!("\nerror: the {part} did not finish: {error:#}");
        Ok(Counts { failed: 1, ..Counts::default() })
    })
}

/// Returns `true` when all tests passed. A filter that matches no test is an error: it is probably mistyped.
fn verdict(counts: &Counts, filter: Option<&str>) -> Result<bool> {
    if let Some(filter) = filter {
        ensure!(counts.passed + counts.failed > 0, "nothing was tested: no test that ran has {filter:?} in its name");
    }
    Ok(counts.failed == 0)
}

fn cargo_tests(
    paths: &Paths,
    options: &TestOptions,
    folder: &DataFolder,
    stores: &Stores,
    stop: &Stop,
) -> Result<Counts> {
    // The paths of the programs that `requirements` found.
    let programs = [
        ("REDIS_SERVER", services::redis_program(stop)?),
        ("PROMTOOL", setup::promtool(stop)?),
        ("HAPROXY", setup::haproxy(stop)?),
        ("PGBOUNCER", pgbouncer::find_or_build(paths, stop)?),
    ];
    let mut counts = Counts::default();
    let all = |arguments: &[&str]| {
        let mut command = native::cargo_all(paths, "test");
        command.args(arguments);
        command
    };
    let mut xtask = native::cargo(paths, "test");
    xtask.args(["--package", "xtask"]);
    let mut integration = all(&INTEGRATION);
    integration.env("SSL_CERT_FILE", paths.root.join(AUTHORITY));
    // The integration tests of server and simulator build the programs too.
    let (step, began) = (ProgressStep::start("compile the tests"), Instant::now());
    let compiled = cargo_progress::status(&mut all(&["--tests", "--no-run"]), &step, stop)?;
    step.done();
    counts.durations.note("compile the tests", began, Vec::new());
    if !compiled.success() {
        counts.failed = 1;
        return Ok(counts);
    }
    let worlds = folder.path.join("worlds");
    // Remove the file of an earlier run.
    let _ = std::fs::remove_file(&worlds);
    for (part, mut command) in
        [("tests of xtask", xtask), ("unit tests", all(&OTHERS)), ("integration tests", integration)]
    {
        command.arg("--no-fail-fast").args(&options.filter).env("WORLDS_FILE", &worlds);
        command.env("DATABASE_URL", &stores.postgres).env("REDIS_URL", &stores.redis);
        command.envs(programs.iter().map(|(name, path)| (name, path)));
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            let cores = std::thread::available_parallelism()?.get();
            command.env("RUST_TEST_THREADS", (cores + MORE_THREADS).to_string());
        }
        let (step, began) = (ProgressStep::start(part), Instant::now());
        let mut ran = run_tests(&mut command, &step, stop)?;
        step.done();
        ran.durations.note(part, began, durations::read_worlds(&worlds));
        counts.add(ran);
    }
    Ok(counts)
}

/// Runs a command of cargo that tests, and reads its output.
fn run_tests(command: &mut Command, step: &ProgressStep, stop: &Stop) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut failures = CargoFailures::default();
    let status = cargo_progress::status_with_lines(command, step, stop, |line| {
        failures.read_line(line);
        if let Some((passed, failed)) = test_result(line) {
            counts.passed += passed;
            counts.failed += failed;
        }
    })?;
    counts.failures = failures.into_all();
    if !status.success() && counts.failed == 0 {
        // A signal fails without a failed test.
        counts.failed = 1;
    }
    Ok(counts)
}

/// Parses the counts of a line like `test result: ok. 12 passed; 0 failed; 1 ignored; …`.
pub fn test_result(line: &str) -> Option<(u64, u64)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let mut parts = counts.split("; ");
    let passed = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some((passed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_summary_lines_of_cargo_are_counted() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(test_result(line), Some((12, 0)));
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(test_result(line), Some((3, 2)));
        assert_eq!(test_result("test holds::two_people ... ok"), None);
    }

    #[test]
    fn every_integration_test_is_run() {
        let root = Paths::find().expect("the checkout").root;
        let folders = |folder: &str| std::fs::read_dir(root.join(folder)).expect(folder).filter_map(Result::ok);
        for package in folders("").chain(folders("server")) {
            let tests = std::fs::read_dir(package.path().join("tests")).into_iter().flatten().filter_map(Result::ok);
            for name in tests.filter_map(|test| test.path().file_stem()?.to_str().map(str::to_owned)) {
                assert!(INTEGRATION.into_iter().chain(OTHERS).any(|target| target == name), "{name} is not run");
            }
        }
    }

    /// Adds the results of cargo's tests and of the browser tests.
    fn added(cargo: (u64, u64), browser: (u64, u64)) -> Counts {
        let mut counts = Counts::default();
        for (passed, failed) in [cargo, browser] {
            counts.add(Counts { passed, failed, ..Counts::default() });
        }
        counts
    }

    #[test]
    fn a_filter_without_matching_tests_is_an_error_that_names_it() {
        let refused = verdict(&added((0, 0), (0, 0)), Some("some-typo")).expect_err("nothing was tested");
        assert!(refused.to_string().contains("some-typo"), "{refused}");
    }

    #[test]
    fn a_filter_may_match_only_cargo_or_only_browser_tests() {
        for (cargo, browser, filter, good) in [
            ((2, 0), (0, 0), Some("holds"), true),
            ((0, 0), (2, 0), Some("holds"), true),
            ((0, 1), (0, 0), Some("holds"), false),
            ((1, 0), (0, 1), Some("holds"), false),
            ((2, 0), (2, 0), None, true),
            ((2, 0), (2, 1), None, false),
        ] {
            let found = verdict(&added(cargo, browser), filter).expect("something was tested");
            assert_eq!(found, good, "{cargo:?} and {browser:?}");
        }
    }
}

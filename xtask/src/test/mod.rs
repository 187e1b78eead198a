//! `cargo xtask test`: every test there is, on fresh private stores.
//!
//! First cargo's, then two visitors in a real browser, then the API against its description. The last line counts all, after the
//! names and messages of those that failed.

use anyhow::{Result, ensure};
use clap::Args;

use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::Processes;
use crate::progress::{Step, note};
use crate::services::{self, Folder, Stores};
use crate::setup::{operating, pgbouncer};
use crate::stop::Stop;
use failures::CargoFailures;

mod api_contract;
mod browser;
mod closing_show;
mod failures;

/// Most runs of one test in a browser: each needs shows of its own, and the demo has three hundred.
const MOST_TIMES: i64 = 40;

/// What to test.
#[derive(Args, Default)]
pub struct Options {
    /// Leave out the tests in a browser.
    #[arg(long)]
    pub skip_browser: bool,
    /// Only the tests in a browser.
    #[arg(long, conflicts_with = "skip_browser")]
    pub only_browser: bool,
    /// Leave out the tests of the API against its OpenAPI document.
    #[arg(long)]
    pub skip_api_contract: bool,
    /// Only the tests of the API against its OpenAPI document.
    #[arg(long, conflicts_with_all = ["skip_api_contract", "only_browser"])]
    pub only_api_contract: bool,
    /// Keep new pictures of the pages instead of comparing them with those that are kept.
    #[arg(long, requires = "only_browser")]
    pub renew_pictures: bool,
    /// Each of the tests in a browser so many times: for those that fail now and then.
    #[arg(long, requires = "only_browser", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_TIMES))]
    pub times: Option<u32>,
    /// Only tests whose name contains this. That there are none is a failure.
    pub filter: Option<String>,
}

/// How it went.
#[derive(Default)]
pub struct Counts {
    passed: u64,
    failed: u64,
    /// Names of tests that failed, each with its message.
    failures: Vec<String>,
}

impl Counts {
    fn add(&mut self, others: Self) {
        self.passed += others.passed;
        self.failed += others.failed;
        self.failures.extend(others.failures);
    }
}

/// Runs them; whether all passed.
pub fn test(places: &Places, options: &Options, stop: &Stop) -> Result<bool> {
    let mut counts = Counts::default();
    if !options.only_api_contract {
        counts.add(cargo_and_browser(places, options, stop)?);
    }
    if options.skip_api_contract {
        note("the tests of the API against its document were left out, as asked");
    } else if !options.only_browser {
        counts.add(or_failed("tests of the API contract", api_contract::test(places, options, stop), stop)?);
    }
    for failure in &counts.failures {
        println!("failed: {failure}");
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    verdict(&counts, options.filter.as_deref())
}

/// Cargo's tests and those in a browser, on the same stores.
fn cargo_and_browser(places: &Places, options: &Options, stop: &Stop) -> Result<Counts> {
    let mut folder = Folder::open(places, "test", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let mut counts = Counts::default();
    if !options.only_browser {
        counts.add(cargo_tests(places, options, &stores, stop)?);
    }
    if options.skip_browser {
        note("the tests in a browser were left out, as asked");
    } else {
        let browser = browser::test(places, options, &mut folder, &mut processes, stores, stop);
        counts.add(or_failed("browser tests", browser, stop)?);
    }
    processes.end_all();
    Ok(counts)
}

/// Counts a part that did not come to an end as one failure: it must not hide what the parts before it found.
fn or_failed(part: &str, counts: Result<Counts>, stop: &Stop) -> Result<Counts> {
    counts.or_else(|error| {
        stop.check()?;
        eprintln!("\nerror: the {part} did not come to an end: {error:#}");
        Ok(Counts { failed: 1, ..Counts::default() })
    })
}

/// Whether all passed. Where a filter left none, nothing was proved: that is an error, for it is most likely mistyped.
fn verdict(counts: &Counts, filter: Option<&str>) -> Result<bool> {
    if let Some(filter) = filter {
        ensure!(counts.passed + counts.failed > 0, "nothing was tested: no test that ran has {filter:?} in its name");
    }
    Ok(counts.failed == 0)
}

fn cargo_tests(places: &Places, options: &Options, stores: &Stores, stop: &Stop) -> Result<Counts> {
    // No separate build: the integration tests of the server and of the simulator build their programs
    // too, with the very features the tests were built with. Building twice would compile a third twice.
    let step = Step::start("cargo test");
    let mut command = native::cargo_all(places, "test");
    command.arg("--no-fail-fast").env("DATABASE_URL", &stores.postgres).env("REDIS_URL", &stores.redis);
    command.env("REDIS_SERVER", services::redis_program(stop)?);
    command.env("PROMTOOL", operating::promtool(stop)?).env("HAPROXY", operating::haproxy(stop)?);
    command.env("PGBOUNCER", pgbouncer::find_or_build(places, stop)?);
    command.args(&options.filter);
    let mut counts = Counts::default();
    let mut failures = CargoFailures::default();
    let status = command::status_seeing(&mut command, stop, |line| {
        failures.see(line);
        if let Some((passed, failed)) = test_result(line) {
            counts.passed += passed;
            counts.failed += failed;
        }
    })?;
    counts.failures = failures.into_all();
    if !status.success() && counts.failed == 0 {
        // Not compiled, or ended by a signal: no test reported it, yet it is a failure.
        counts.failed = 1;
    }
    step.done();
    Ok(counts)
}

/// Passed and failed of a line like `test result: ok. 12 passed; 0 failed; 1 ignored; …`.
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
    fn cargo_s_summary_is_counted_and_nothing_else() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(test_result(line), Some((12, 0)));
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(test_result(line), Some((3, 2)));
        assert_eq!(test_result("test holds::two_people ... ok"), None);
    }

    /// How it went, of both halves: cargo's tests, then those in a browser.
    fn both(cargo: (u64, u64), browser: (u64, u64)) -> Counts {
        let mut counts = Counts::default();
        for (passed, failed) in [cargo, browser] {
            counts.add(Counts { passed, failed, ..Counts::default() });
        }
        counts
    }

    #[test]
    fn a_filter_that_leaves_no_test_is_an_error_that_names_it() {
        let refused = verdict(&both((0, 0), (0, 0)), Some("some-typo")).expect_err("nothing was tested");
        assert!(refused.to_string().contains("some-typo"), "{refused}");
    }

    #[test]
    fn a_filter_may_leave_tests_of_one_half_only() {
        for (cargo, browser, filter, good) in [
            ((2, 0), (0, 0), Some("holds"), true),
            ((0, 0), (2, 0), Some("holds"), true),
            ((0, 1), (0, 0), Some("holds"), false),
            ((1, 0), (0, 1), Some("holds"), false),
            ((2, 0), (2, 0), None, true),
            ((2, 0), (2, 1), None, false),
        ] {
            let found = verdict(&both(cargo, browser), filter).expect("something was tested");
            assert_eq!(found, good, "{cargo:?} and {browser:?}");
        }
    }
}

//! The tests in a browser: the whole product on fresh stores, and Playwright as its visitors.
//!
//! Two servers share the stores, as replicas would. The second has short holds, for the tests that
//! wait until one runs out.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::failures::of_playwright;
use super::{Counts, Options, closing_show};
use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::{Output, Processes};
use crate::progress::{Step, note};
use crate::services::{Folder, Stores};
use crate::serving::{Product, Server, without_hold_limits};
use crate::setup::chromium;
use crate::site::{self, Size};
use crate::stop::Stop;

/// How long a hold outlives a closed tab on the first server, milliseconds: long enough to reload in,
/// short enough to wait for.
const LEAVE_GRACE_MS: u32 = 3_000;
/// The same on the second server.
const SHORT_LEAVE_GRACE_MS: u32 = 1_500;
/// How long a hold lasts on the second server, milliseconds.
const SHORT_HOLD_MS: u32 = 4_000;

/// Projects of `end2end/playwright.config.ts` in which people work at theatres, each with a manager of its own.
const STAFFED_PROJECTS: [&str; 3] = ["laptop", "tablet", "phone"];
/// Their password, as `end2end/pages/accounts.ts` spells it.
const STAFF_PASSWORD: &str = "correct horse battery";

/// Runs them all.
pub fn test(
    places: &Places,
    options: &Options,
    folder: &mut Folder,
    processes: &mut Processes<'_>,
    stores: Stores,
    stop: &Stop,
) -> Result<Counts> {
    let end2end = places.root.join("end2end");
    let chromium = chromium::with_playwright(&end2end, stop)?;
    if options.only_browser {
        // Otherwise cargo's tests have just built the programs.
        native::build(places, stop)?;
    }
    site::build(places, Size::Small, stop)?;

    let mut product = Product::prepare(places, folder, stores, stop)?;
    let closing = closing_show::plan(places, &folder.path)?;
    product.load_cinemas(&closing.folder, stop)?;
    for project in STAFFED_PROJECTS {
        product.make_manager(&format!("manager-{project}@example.org"), STAFF_PASSWORD, stop)?;
    }
    let output = Output::File(folder.log("payments"));
    product.start_simulator(processes, folder, IpAddr::V4(Ipv4Addr::LOCALHOST), output)?;
    let mut usual = without_hold_limits();
    usual.push(("LEAVE_GRACE_MS", LEAVE_GRACE_MS.to_string()));
    let usual = Server::on_any_port(folder, "rowlock", usual)?;
    let mut short = without_hold_limits();
    short.extend([("LEAVE_GRACE_MS", SHORT_LEAVE_GRACE_MS.to_string()), ("HOLD_MS", SHORT_HOLD_MS.to_string())]);
    let short = Server::on_any_port(folder, "rowlock-short", short)?;
    for server in [&usual, &short] {
        product.start_server(processes, server, Output::File(folder.log(server.name)))?;
    }

    let step = Step::start("tests in a browser");
    let report = folder.path.join("playwright.json");
    // A report of an earlier run must not be counted.
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new("node");
    command.current_dir(&end2end).args(["node_modules/@playwright/test/cli.js", "test"]);
    if options.renew_pictures {
        command.args(["pictures.spec.ts", "--update-snapshots"]);
    }
    if let Some(times) = options.times {
        command.arg(format!("--repeat-each={times}"));
    }
    if let Some(filter) = &options.filter {
        // It may be about cargo's tests alone. Whether it left any test at all is looked at when both are counted.
        command.args(["--grep", filter, "--pass-with-no-tests"]);
    }
    command
        .env("BASE_URL", &usual.public_url)
        .env("SHORT_HOLD_URL", &short.public_url)
        .env("MAILBOX_DIR", folder.mailbox())
        .env("LEAVE_GRACE_MS", LEAVE_GRACE_MS.to_string())
        .env("CLOSING_SHOW", closing.identity)
        // What somebody does at the gateway past us.
        .env("PAYMENTS_KEY", product.simulator_key())
        .env("PLAYWRIGHT_JSON_OUTPUT_FILE", &report);
    if let Some(chromium) = chromium {
        command.env("CHROMIUM", chromium);
    }
    let status = command::status(&mut command, stop)?;
    step.done();
    processes.check()?;
    let mut counts = read(&report)?;
    if !status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    if counts.failed > 0 {
        note(&format!("logs of the servers: {}", folder.path.join("logs").display()));
        note(&format!("screenshots and traces: {}", end2end.join("test-results").display()));
    }
    Ok(counts)
}

/// Passed and failed of Playwright's JSON report. A test that passed only when repeated has failed.
fn read(report: &Path) -> Result<Counts> {
    let text = std::fs::read(report).context("Playwright wrote no report")?;
    let report: Value = serde_json::from_slice(&text).context("Playwright's report")?;
    let count = |name: &str| report["stats"][name].as_u64().unwrap_or(0);
    let errors = report["errors"].as_array().map_or(0, Vec::len) as u64;
    let failed = count("unexpected") + count("flaky") + errors;
    Ok(Counts { passed: count("expected"), failed, failures: of_playwright(&report) })
}

//! The browser tests: Playwright on the whole product with fresh stores.
//!
//! Two servers share the stores, as replicas do. The second has short holds, for the tests of expiry, and terms of sale.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::durations::{self, Durations};
use super::failures::failures_of_playwright;
use super::{Counts, TestOptions};
use crate::command;
use crate::native;
use crate::paths::Paths;
use crate::processes::{Output, Processes};
use crate::progress::{ProgressStep, note};
use crate::services::{DataFolder, Stores};
use crate::serving::{Product, ServerSettings, without_hold_limits};
use crate::setup;
use crate::site::{self, BuildMode};
use crate::stop::Stop;

/// Grace period of a hold after its tab is closed, on the first server, milliseconds: long enough for a
/// reload, short enough for a test to wait for.
const LEAVE_GRACE_MS: u32 = 3_000;
/// The same for the second server.
const SHORT_LEAVE_GRACE_MS: u32 = 1_500;
/// Duration of a hold on the second server, milliseconds.
const SHORT_HOLD_MS: u32 = 4_000;

/// Terms of sale of the second server, as in `end2end/specs/buying.spec.ts`.
const TERMS_URL: &str = "https://cinema.example/terms";

/// Minutes until the show begins: within the five in which sales are closed, and enough to load it.
const BEGINS_IN_MINUTES: u64 = 4;
const MINUTES_A_DAY: u64 = 24 * 60;
const SCREEN: &str = "last-minute-1";
/// Hours between the shows of the other screens: their film and the turnaround take a little less.
const SPARE_SHOW_EVERY_HOURS: usize = 2;

/// Projects of `end2end/playwright.config.ts` with staff stories; each has its own manager.
const STAFFED_PROJECTS: [&str; 3] = ["laptop", "tablet", "phone"];
/// The managers' password, as in `end2end/pages/accounts.ts`.
const STAFF_PASSWORD: &str = "correct horse battery";

pub fn test(
    paths: &Paths,
    options: &TestOptions,
    folder: &mut DataFolder,
    processes: &mut Processes<'_>,
    stores: Stores,
    stop: &Stop,
) -> Result<Counts> {
    let end2end = paths.root.join("end2end");
    let chromium = setup::chromium_with_playwright(&end2end, stop)?;
    if options.only_browser {
        // Otherwise cargo's tests have built the programs.
        native::build(paths, stop)?;
    }
    let mut durations = Durations::default();
    let began = Instant::now();
    let mode = if options.delivery { BuildMode::Optimised } else { BuildMode::Quick };
    site::build(paths, mode, stop)?;
    durations.note("build the client", began, Vec::new());

    let began = Instant::now();
    let mut product = Product::prepare(paths, folder, stores, stop)?;
    let theatre = write_test_theatre(paths, &folder.path)?;
    product.load_cinemas(&theatre.folder, stop)?;
    for project in STAFFED_PROJECTS {
        product.make_manager(&format!("manager-{project}@example.org"), STAFF_PASSWORD, stop)?;
    }
    product.start_simulator_for_tests(processes, folder)?;
    // Other tests open waiting rooms at any time.
    let never_quiet = ("REHEARSAL_QUIET_MIN", "0".to_owned());
    let mut normal = without_hold_limits();
    normal.extend([never_quiet.clone(), ("LEAVE_GRACE_MS", LEAVE_GRACE_MS.to_string())]);
    let normal = ServerSettings::on_free_port(folder, "rowlock", normal)?;
    let mut short = without_hold_limits();
    let short_times = [("LEAVE_GRACE_MS", SHORT_LEAVE_GRACE_MS.to_string()), ("HOLD_MS", SHORT_HOLD_MS.to_string())];
    short.extend(short_times.into_iter().chain([never_quiet, ("TERMS_URL", TERMS_URL.to_owned())]));
    let short = ServerSettings::on_free_port(folder, "rowlock-short", short)?;
    for server in [&normal, &short] {
        product.start_server(processes, server, Output::File(folder.log(server.name)))?;
    }

    let step = ProgressStep::start("tests in a browser");
    let report = folder.path.join("playwright.json");
    // Remove the report of an earlier run.
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new("node");
    command.current_dir(&end2end).args(["node_modules/@playwright/test/cli.js", "test"]);
    if options.renew_pictures {
        command.args(["pictures.spec.ts", "--update-snapshots"]);
    }
    if options.trace {
        command.args(["--trace", "retain-on-failure"]);
    }
    if let Some(times) = options.times {
        command.arg(format!("--repeat-each={times}"));
    }
    if let Some(filter) = &options.filter {
        // The filter may match cargo's tests only. `verdict` checks that it matched any test.
        command.args(["--grep", filter, "--pass-with-no-tests"]);
    }
    command
        .env("BASE_URL", &normal.public_url)
        .env("SHORT_HOLD_URL", &short.public_url)
        .env("MAILBOX_DIR", folder.mailbox())
        .env("LEAVE_GRACE_MS", LEAVE_GRACE_MS.to_string())
        .env("CLOSING_SHOW", theatre.closing_show)
        // For stories that call the gateway directly.
        .env("PAYMENTS_KEY", &product.simulator_key)
        .env("PLAYWRIGHT_JSON_OUTPUT_FILE", &report);
    if let Some(plans) = &options.plans {
        command.env("PLANS", std::fs::canonicalize(plans).with_context(|| plans.display().to_string())?);
    }
    if let Some(chromium) = chromium {
        command.env("CHROMIUM", chromium);
    }
    let status = command::status(&mut command, stop)?;
    step.done();
    processes.check()?;
    let text = std::fs::read(report).context("Playwright wrote no report")?;
    let report: Value = serde_json::from_slice(&text).context("Playwright's report")?;
    let mut counts = read(&report);
    durations.note("browser tests", began, durations::of_playwright(&report));
    counts.durations = durations;
    if !status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    if counts.failed > 0 {
        note(&format!("logs of the servers: {}", folder.path.join("logs").display()));
        note(&format!("screenshots and traces: {}", end2end.join("test-results").display()));
    }
    Ok(counts)
}

/// Counts passed and failed tests of Playwright's JSON report. A flaky test counts as failed.
fn read(report: &Value) -> Counts {
    let count = |name: &str| report["stats"][name].as_u64().unwrap_or(0);
    let errors = report["errors"].as_array().map_or(0, Vec::len) as u64;
    let failed = count("unexpected") + count("flaky") + errors;
    Counts { passed: count("expected"), failed, failures: failures_of_playwright(report), ..Counts::default() }
}

/// A theatre with a show that begins within minutes, as a folder like `demo/`, for tests of closed sales: the demo has such
/// a show only by chance. Other screens have a show every two hours, one of them in a room with an area: each story claims a
/// show, and the demo has too few late in the evening, and one a day with an area.
struct TestTheatre {
    folder: PathBuf,
    /// The text from which the closing show's id is derived.
    closing_show: String,
}

fn write_test_theatre(paths: &Paths, parent: &Path) -> Result<TestTheatre> {
    let minute = minute_now()? + BEGINS_IN_MINUTES;
    let at = format!("{:02}:{:02}", minute % MINUTES_A_DAY / 60, minute % 60);
    let weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let event = |weekday: &str, at: &str| json!({ "weekday": weekday, "at": at, "film": "last-call", "format": "2D" });
    let closing = weekdays.map(|weekday| event(weekday, &at));
    let times: Vec<String> = (0..24).step_by(SPARE_SHOW_EVERY_HOURS).map(|hour| format!("{hour:02}:00")).collect();
    let spare: Vec<Value> = weekdays.iter().flat_map(|weekday| times.iter().map(|at| event(weekday, at))).collect();
    let (layout, with_area) = ("layouts/boutique-60.json", "layouts/club-80.json");
    let base = json!({ "recliner": 1_900, "couple": 2_100, "gold": 1_500, "silver": 1_100, "floor": 900 });
    let chain = json!({
        "cities": [{ "id": "greenwich", "name": "Greenwich", "country": "GB", "time_zone": "Etc/UTC" }],
        "films": [{
            "id": "last-call", "title": "Last Call", "tagline": "The lights go down.", "synopsis": "It begins.",
            "running_minutes": 90, "rating": "All", "genre": "Short", "hue": 20, "languages": ["English"], "formats": ["2D"],
        }],
        "theatres": [{
            "id": "last-minute", "city": "greenwich", "name": "Last Minute", "address": "Meridian 0", "currency": "EUR",
            "languages": ["English"],
            "tariff": {
                "base": base, "weekend_percent": 100, "matinee_percent": 100, "prime_percent": 100, "surcharge": {},
            },
            "screens": [
                { "id": SCREEN, "name": "Screen 1", "layout": layout, "programme": { "events": closing } },
                { "id": "last-minute-2", "name": "Screen 2", "layout": layout, "programme": { "events": &spare } },
                { "id": "last-minute-3", "name": "Screen 3", "layout": with_area, "programme": { "events": &spare } },
            ],
        }],
    });
    let folder = parent.join("test-theatre");
    std::fs::create_dir_all(folder.join("layouts"))?;
    for layout in [layout, with_area] {
        std::fs::copy(paths.root.join("demo").join(layout), folder.join(layout)).context("a room of the demo")?;
    }
    std::fs::write(folder.join("chain.json"), serde_json::to_vec(&chain)?)?;
    Ok(TestTheatre { folder, closing_show: format!("rowlock:show:{SCREEN}:{}", minute * 60_000) })
}

/// Returns the minutes since 1970.
#[expect(clippy::disallowed_methods, reason = "the show's start follows the real clock")]
fn minute_now() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?;
    Ok(now.as_secs() / 60)
}

//! Tests the API against its OpenAPI document. A linter checks the document. Then schemathesis calls every operation of a
//! server, as a guest and as a manager of all theatres, and runs all of its checks on the answers.
//!
//! The server has separate stores, because a manager's calls change the theatres.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Counts, TestOptions};
use crate::command;
use crate::native;
use crate::paths::Paths;
use crate::processes::Processes;
use crate::progress::{ProgressStep, note};
use crate::services::{self, DataFolder};
use crate::serving::{self, Product, ServerSettings};
use crate::setup;
use crate::stop::Stop;

/// Names of the tests, for filters.
const LINT: &str = "api contract: lint the document";
const AS_GUEST: &str = "api contract: every operation as a guest";
const AS_MANAGER: &str = "api contract: every operation as a manager";
/// Theatre of the demo for the operations' parameters.
const THEATRE: &str = "aurora-lisbon";
/// Manager of every theatre; `end2end/api/manager.json` signs in with it.
const MANAGER: &str = "manager-api@example.org";
const PASSWORD: &str = "correct horse battery";
/// Visitor cookie of the guest, 32 digits. Without a constant one no request would find the hold of an earlier request.
const GUEST_COOKIE: &str = "Cookie: rowlock_visitor=0123456789abcdef0123456789abcdef";
/// Operations excluded for the manager: they end the session of all others, and sign-ins are rate-limited. They are tested
/// as a guest.
const ENDS_THE_SESSION: &str = "^/api/v1/users/logout";

pub fn test(paths: &Paths, options: &TestOptions, stop: &Stop) -> Result<Counts> {
    let is_wanted = |name: &str| options.filter.as_deref().is_none_or(|filter| name.contains(filter));
    let mut counts = Counts::default();
    if ![LINT, AS_GUEST, AS_MANAGER].into_iter().any(is_wanted) {
        return Ok(counts);
    }
    let contract = paths.root.join("end2end/api");
    setup::npm_ci(&setup::require_npm(stop)?, &contract, stop)?;
    let requirements = contract.join("requirements.txt");
    let programs = setup::pip_install(&requirements, &paths.tools().join("schemathesis"), stop)?;
    if options.only_api_contract {
        // Otherwise cargo's tests have built the programs.
        native::build(paths, stop)?;
    }

    let began = Instant::now();
    let mut folder = DataFolder::open(paths, "api-contract", true)?.throwaway();
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let (product, server) = Product::start_for_tests(paths, &mut folder, &mut processes, stores, stop)?;
    product.make_manager(MANAGER, PASSWORD, stop)?;

    let document = folder.path.join("openapi.json");
    std::fs::write(&document, serving::get(server.listen, "/api/openapi.json")?)?;
    if is_wanted(LINT) {
        counts.add(lint(&contract, &document, stop)?);
    }
    let run = SchemathesisRun { contract, programs, server: &server, shows: two_shows(&server)?, folder: &folder };
    if is_wanted(AS_GUEST) {
        counts.add(run.run(AS_GUEST, "guest", &["--header", GUEST_COOKIE], stop)?);
    }
    if is_wanted(AS_MANAGER) {
        counts.add(run.run(
            AS_MANAGER,
            "manager",
            &["--auth-wfc", "manager.json", "--exclude-path-regex", ENDS_THE_SESSION],
            stop,
        )?);
    }
    processes.check()?;
    processes.end_all();
    counts.durations.note("API contract", began, Vec::new());
    if counts.failed > 0 {
        note(&format!("logs and reports: {}", folder.path.display()));
    }
    Ok(counts)
}

/// Lints the document as one test, which passes without errors and warnings.
fn lint(contract: &Path, document: &Path, stop: &Stop) -> Result<Counts> {
    let step = ProgressStep::start(LINT);
    let mut spectral = Command::new(contract.join("node_modules/.bin/spectral"));
    spectral.current_dir(contract).args(["lint", "--ruleset", "spectral.yaml", "--fail-severity", "warn"]);
    let status = command::status(spectral.arg(document), stop)?;
    step.done();
    let passed = u64::from(status.success());
    Ok(Counts { passed, failed: 1 - passed, ..Counts::default() })
}

/// Returns two bookable shows, the last planned ones, so that they do not begin during the test.
fn two_shows(server: &ServerSettings) -> Result<[String; 2]> {
    let list = serving::get(server.listen, &format!("/api/v1/shows?theatre={THEATRE}"))?;
    let list: Value = serde_json::from_slice(&list).context("the list of shows is no JSON")?;
    let mut ids = list["shows"].as_array().into_iter().flatten().rev().filter_map(|show| show["id"].as_str());
    let two = ids.next().zip(ids.next()).with_context(|| format!("the demo has no two shows at {THEATRE}"))?;
    Ok([two.0.to_owned(), two.1.to_owned()])
}

/// Shared arguments of the schemathesis runs.
struct SchemathesisRun<'a> {
    contract: PathBuf,
    programs: PathBuf,
    server: &'a ServerSettings,
    /// A show for the operations' parameters, and one to cancel.
    shows: [String; 2],
    folder: &'a DataFolder,
}

impl SchemathesisRun<'_> {
    /// Runs schemathesis. Each operation counts as a test, which passes without findings.
    fn run(&self, name: &str, role: &str, identity: &[&str], stop: &Stop) -> Result<Counts> {
        let step = ProgressStep::start(name);
        let (report, log) = (self.folder.path.join(format!("{role}.json")), self.folder.log(role));
        // Remove the report of an earlier run.
        let _ = std::fs::remove_file(&report);
        let mut schemathesis = Command::new(self.programs.join("schemathesis"));
        schemathesis.current_dir(&self.contract).args(["--no-color", "--config-file", "schemathesis.toml", "run"]);
        schemathesis.arg(format!("{}/api/openapi.json", self.server.public_url)).args(["--checks", "all"]);
        schemathesis.args(identity).arg("--report-json-path").arg(&report).env("SHOW", &self.shows[0]);
        schemathesis.env("SHOW_TO_END", &self.shows[1]);
        schemathesis.env("PYTHONDONTWRITEBYTECODE", "1");
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        schemathesis.stdout(output);
        let status = command::status(&mut schemathesis, stop)?;
        step.done();
        let report = std::fs::read(&report).context("schemathesis wrote no report")?;
        let mut counts = read(&serde_json::from_slice(&report).context("schemathesis' report")?)?;
        if !status.success() {
            counts.failed = counts.failed.max(1);
            note(&format!("{name}: what was found is in {}", log.display()));
        }
        Ok(counts)
    }
}

/// Counts operations without and with findings. An untested operation is a failure.
fn read(report: &Value) -> Result<Counts> {
    let count = |name: &str| report["operations"][name].as_u64();
    let (Some(selected), Some(tested)) = (count("selected"), count("tested")) else {
        bail!("schemathesis tested nothing: {}", report["errors"]);
    };
    let findings = report["failures"].as_array().into_iter().flatten();
    let operations = findings.flat_map(|finding| finding["operations"].as_array().into_iter().flatten());
    let found: std::collections::BTreeSet<String> = operations.map(ToString::to_string).collect();
    let errors = report["errors"].as_array().map_or(0, Vec::len) as u64;
    let failed = found.len() as u64 + errors + selected.saturating_sub(tested);
    let failures = found.iter().map(|operation| format!("api contract: {operation}")).collect();
    Ok(Counts { passed: selected.saturating_sub(failed), failed, failures, ..Counts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_untested_operations_and_errors_are_failures() {
        let report = json!({
            "operations": { "selected": 119, "tested": 118 },
            "failures": [{ "operations": ["GET /a", "GET /b"] }, { "operations": ["GET /a"] }],
            "errors": [{ "title": "Network error", "count": 1 }],
        });
        let counts = read(&report).expect("a report");
        assert_eq!((counts.passed, counts.failed), (115, 4));
        assert!(read(&json!({ "operations": null, "errors": ["no schema"] })).is_err());
    }
}

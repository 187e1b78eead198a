//! The API against its own description: a linter reads the OpenAPI document, then schemathesis asks a server every
//! operation in it, once as a guest and once as a manager of all theatres, and runs every check it has on the answers.
//!
//! The server has separate stores: a manager who tries everything leaves no theatre as it was.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Counts, Options};
use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::{Output, Processes};
use crate::progress::{Step, note};
use crate::services::{self, Folder};
use crate::serving::{self, Product, Server, without_hold_limits};
use crate::setup::{node, python};
use crate::stop::Stop;

/// Names of the three tests, for filters.
const LINT: &str = "api contract: lint the document";
const AS_GUEST: &str = "api contract: every operation as a guest";
const AS_MANAGER: &str = "api contract: every operation as a manager";
/// A theatre of the demo that the operations are asked about.
const THEATRE: &str = "aurora-lisbon";
/// A manager of every theatre, as `end2end/api/manager.json` signs in.
const MANAGER: &str = "manager-api@example.org";
const PASSWORD: &str = "correct horse battery";
/// A guest keeps one cookie, or no request would find the hold of the one before: 32 digits, as the server makes them.
const GUEST_COOKIE: &str = "Cookie: rowlock_visitor=0123456789abcdef0123456789abcdef";
/// Operations left out as a manager: they end the session that all others need, and signing in again is limited. They are
/// tested as a guest.
const ENDS_THE_SESSION: &str = "^/api/v1/users/logout";

/// Runs those a filter leaves.
pub fn test(places: &Places, options: &Options, stop: &Stop) -> Result<Counts> {
    let is_wanted = |name: &str| options.filter.as_deref().is_none_or(|filter| name.contains(filter));
    let mut counts = Counts::default();
    if ![LINT, AS_GUEST, AS_MANAGER].into_iter().any(is_wanted) {
        return Ok(counts);
    }
    let contract = places.root.join("end2end/api");
    let npm = node::require(stop)?;
    node::install_locked(&npm, &contract, stop)?;
    let programs =
        python::install_locked(&contract.join("requirements.txt"), &places.tools().join("schemathesis"), stop)?;
    if options.only_api_contract {
        // Otherwise cargo's tests have just built the programs.
        native::build(places, stop)?;
    }

    let mut folder = Folder::open(places, "api-contract", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let mut product = Product::prepare(places, &mut folder, stores, stop)?;
    product.make_manager(MANAGER, PASSWORD, stop)?;
    let output = Output::File(folder.log("payments"));
    product.start_simulator(&mut processes, &folder, IpAddr::V4(Ipv4Addr::LOCALHOST), output)?;
    let server = Server::on_any_port(&folder, "rowlock", without_hold_limits())?;
    product.start_server(&mut processes, &server, Output::File(folder.log(server.name)))?;

    let document = folder.path.join("openapi.json");
    std::fs::write(&document, serving::get(server.listen, "/api/openapi.json")?)?;
    if is_wanted(LINT) {
        counts.add(lint(&contract, &document, stop)?);
    }
    let asking = Asking { contract, programs, server: &server, shows: two_shows(&server)?, folder: &folder };
    if is_wanted(AS_GUEST) {
        counts.add(asking.run(AS_GUEST, "guest", &["--header", GUEST_COOKIE], stop)?);
    }
    if is_wanted(AS_MANAGER) {
        counts.add(asking.run(
            AS_MANAGER,
            "manager",
            &["--auth-wfc", "manager.json", "--exclude-path-regex", ENDS_THE_SESSION],
            stop,
        )?);
    }
    processes.check()?;
    processes.end_all();
    if counts.failed > 0 {
        note(&format!("logs and reports: {}", folder.path.display()));
    }
    Ok(counts)
}

/// One test: no error and no warning.
fn lint(contract: &Path, document: &Path, stop: &Stop) -> Result<Counts> {
    let step = Step::start(LINT);
    let mut spectral = Command::new(contract.join("node_modules/.bin/spectral"));
    spectral.current_dir(contract).args(["lint", "--ruleset", "spectral.yaml", "--fail-severity", "warn"]);
    let status = command::status(spectral.arg(document), stop)?;
    step.done();
    let passed = u64::from(status.success());
    Ok(Counts { passed, failed: 1 - passed, ..Counts::default() })
}

/// Two shows that can be booked, of the last that were planned: none of them begins meanwhile.
fn two_shows(server: &Server) -> Result<[String; 2]> {
    let list = serving::get(server.listen, &format!("/api/v1/shows?theatre={THEATRE}"))?;
    let list: Value = serde_json::from_slice(&list).context("the list of shows is JSON")?;
    let mut ids = list["shows"].as_array().into_iter().flatten().rev().filter_map(|show| show["id"].as_str());
    let two = ids.next().zip(ids.next()).with_context(|| format!("the demo has no two shows at {THEATRE}"))?;
    Ok([two.0.to_owned(), two.1.to_owned()])
}

/// The arguments of a run of schemathesis.
struct Asking<'a> {
    contract: PathBuf,
    programs: PathBuf,
    server: &'a Server,
    /// One to be asked about, and one to be called off.
    shows: [String; 2],
    folder: &'a Folder,
}

impl Asking<'_> {
    /// A test for each operation: it passes when no check found anything.
    fn run(&self, name: &str, role: &str, identity: &[&str], stop: &Stop) -> Result<Counts> {
        let step = Step::start(name);
        let (report, log) = (self.folder.path.join(format!("{role}.json")), self.folder.log(role));
        // A report of an earlier run must not be counted.
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

/// Counts operations without and with findings. An operation that was not reached is a failure.
fn read(report: &Value) -> Result<Counts> {
    let count = |name: &str| report["operations"][name].as_u64();
    let (Some(selected), Some(tested)) = (count("selected"), count("tested")) else {
        bail!("schemathesis asked nothing: {}", report["errors"]);
    };
    let findings = report["failures"].as_array().into_iter().flatten();
    let operations = findings.flat_map(|finding| finding["operations"].as_array().into_iter().flatten());
    let found: std::collections::BTreeSet<String> = operations.map(ToString::to_string).collect();
    let errors = report["errors"].as_array().map_or(0, Vec::len) as u64;
    let failed = found.len() as u64 + errors + selected.saturating_sub(tested);
    let failures = found.iter().map(|operation| format!("api contract: {operation}")).collect();
    Ok(Counts { passed: selected.saturating_sub(failed), failed, failures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operation_with_a_finding_one_that_was_not_reached_and_an_error_are_failures() {
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

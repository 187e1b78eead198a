//! Finds or installs what the tests need, before minutes of compiling. Missing packages are reported together.

use anyhow::Result;

use super::TestOptions;
use crate::paths::Paths;
use crate::services;
use crate::setup::wasm::Toolchain;
use crate::setup::{self, packages, pgbouncer};
use crate::stop::Stop;

pub fn require(paths: &Paths, options: &TestOptions, stop: &Stop) -> Result<()> {
    let runs_cargo = !options.only_browser && !options.only_api_contract;
    let runs_browser = !options.skip_browser && !options.only_api_contract;
    let runs_api_contract = !options.skip_api_contract && !options.only_browser;
    let when = |is_needed: bool, check: &dyn Fn() -> Result<()>| if is_needed { check() } else { Ok(()) };
    packages::require_all(&[
        &|| services::require(stop),
        // Tests of replicas start further servers, even with a REDIS_URL.
        &|| when(runs_cargo, &|| services::redis_program(stop).map(drop)),
        &|| when(runs_cargo, &|| setup::promtool(stop).map(drop)),
        &|| when(runs_cargo, &|| setup::haproxy(stop).map(drop)),
        &|| when(runs_cargo, &|| pgbouncer::find_or_build(paths, stop).map(drop)),
        &|| when(runs_browser || runs_api_contract, &|| setup::require_npm(stop).map(drop)),
        &|| when(runs_browser, &|| setup::require_chromium(stop).map(drop)),
        &|| when(runs_browser, &|| Toolchain::require(paths, stop).map(drop)),
        &|| when(runs_api_contract, &|| setup::require_python(stop).map(drop)),
    ])
}

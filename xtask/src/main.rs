//! `cargo xtask`: installs what Rowlock needs, runs it and tests it.
//!
//! It handles packages, processes and folders and has no product logic: it calls the product's programs.
//! Unix only; on Windows it runs inside WSL.
//!
//! It may use no crate of the workspace. To add a task: a variant of `Task` and a module. To add a check of every
//! change: `ci.rs`. To add a tool that the product needs: `setup`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::paths::Paths;
use crate::stop::Stop;

mod bench;
mod cargo_progress;
mod checkouts;
mod ci;
mod command;
mod dev;
#[cfg(test)]
mod documents;
mod fingerprint;
mod first_run;
mod native;
mod paths;
mod peer;
mod processes;
mod progress;
mod prove;
mod reload;
mod run;
mod services;
mod serving;
mod setup;
mod site;
mod status_line;
mod stop;
mod test;
mod versions;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Runs and tests Rowlock, and installs what that needs.")]
struct XtaskArguments {
    /// Show the output of cargo in place of one line per step.
    #[arg(long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything, start private Postgres and Redis, load the demo, serve until Ctrl-C.
    ///
    /// DATABASE_URL and REDIS_URL select other stores; LISTEN and PUBLIC_URL set the address. The client is quick to build
    /// and larger than the one for delivery; if that is up to date in target/site, it is used. Simulated visitors hold,
    /// buy and release seats in the shows that you watch.
    Run(run::RunOptions),
    /// Like run, and show every change in the browser.
    ///
    /// Styles and messages need no build. After a build of Rust, the server restarts. Open pages reload by themselves.
    /// Withdraws the current version of target/site: browsers revalidate its files before each use, until run, test or
    /// site publish a version again.
    Dev,
    /// Run all tests on fresh stores, including browser tests. Ends in `N passed, N failed`.
    Test(test::TestOptions),
    /// Run a benchmark, or all. Without a name it lists them.
    Bench(bench::BenchOptions),
    /// Run a proof: guarantees hold while processes fail. Without a name it lists them.
    Prove(prove::ProveOptions),
    /// Check a change: format, lints, a short run of the benchmarks, all tests.
    Ci,
    /// Build only the client, for delivery, into target/site.
    Site,
    /// Write the table of endpoints in docs/api.md from the handlers.
    ApiTable,
    /// End the programs of a dead parent. Started by the other tasks.
    #[command(hide = true)]
    Guard,
}

fn main() -> ExitCode {
    let arguments = XtaskArguments::parse();
    if arguments.verbose {
        progress::be_verbose();
    }
    match run_task(arguments.task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a task. Returns `true` when it succeeded without findings.
fn run_task(task: Task) -> Result<bool> {
    if matches!(task, Task::Guard) {
        stop::guard();
        return Ok(true);
    }
    let paths = Paths::find()?;
    checkouts::touch_sources(&paths)?;
    let stop = Stop::listen()?;
    match task {
        Task::Run(options) => run::run(&paths, &options, &stop).map(|()| true),
        Task::Dev => dev::dev(&paths, &stop).map(|()| true),
        Task::Test(options) => test::test(&paths, &options, &stop),
        Task::Bench(options) => bench::bench(&paths, &options, &stop),
        Task::Prove(options) => prove::prove(&paths, &options, &stop),
        Task::Ci => ci::ci(&paths, &stop),
        Task::Site => site::build(&paths, site::BuildMode::Optimised, &stop).map(|()| true),
        Task::ApiTable => native::write_api_table(&paths, &stop).map(|()| true),
        Task::Guard => Ok(true),
    }
}

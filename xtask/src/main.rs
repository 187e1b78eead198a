//! `cargo xtask`: everything needed to run Rowlock and to prove it, set up by itself.
//!
//! It knows packages, processes and folders, and nothing of seats: what the product does is asked of
//! the product's own programs. Unix only; on Windows it runs inside WSL.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::places::Places;
use crate::stop::Stop;

mod bench;
mod checkouts;
mod ci;
mod command;
mod dev;
mod fingerprint;
mod guard;
mod lean;
mod leftovers;
mod native;
mod places;
mod processes;
mod progress;
mod prove;
mod run;
mod services;
mod serving;
mod setup;
mod site;
mod stop;
mod test;
mod versions;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Runs Rowlock and proves it, doing its own set-up.")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything, start private Postgres and Redis, load the demo, serve until Ctrl-C.
    ///
    /// DATABASE_URL and REDIS_URL name stores to use instead; LISTEN and PUBLIC_URL say where to serve.
    Run,
    /// Like run, and rebuild and restart what changes.
    ///
    /// Takes the version of target/site away: whoever serves that from then on has files asked about before each use, until
    /// run, test or site make it a version again.
    Dev,
    /// All tests, on fresh stores, up to two visitors in a real browser. Ends in `N passed, N failed`.
    Test(test::Options),
    /// Measure. Without a name it lists what there is.
    Bench(bench::Options),
    /// Show that what is promised holds whatever fails. Without a name it lists what there is.
    Prove(prove::Options),
    /// What a change must pass: format, lints, all tests.
    Ci,
    /// Build the browser half into target/site and nothing else.
    Site,
    /// Ends what a parent left behind. Started by the others.
    #[command(hide = true)]
    Guard,
}

fn main() -> ExitCode {
    match work(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the task found everything in order.
fn work(task: Task) -> Result<bool> {
    if matches!(task, Task::Guard) {
        guard::listen();
        return Ok(true);
    }
    let places = Places::find()?;
    checkouts::take_over(&places)?;
    let stop = Stop::listen()?;
    match task {
        Task::Run => run::run(&places, &stop).map(|()| true),
        Task::Dev => dev::dev(&places, &stop).map(|()| true),
        Task::Test(options) => test::test(&places, &options, &stop),
        Task::Bench(options) => bench::bench(&places, &options, &stop),
        Task::Prove(options) => prove::prove(&places, &options, &stop),
        Task::Ci => ci::ci(&places, &stop),
        Task::Site => site::build(&places, site::Size::Small, &stop).map(|()| true),
        Task::Guard => Ok(true),
    }
}

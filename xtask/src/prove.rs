//! `cargo xtask prove`: proofs that guarantees hold under failures, on real processes.

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::bench::LoadGenerator;
use crate::cargo_progress;
use crate::native;
use crate::paths::Paths;
use crate::processes::Processes;
use crate::progress::ProgressStep;
use crate::services::{self, DataFolder, Stores};
use crate::stop::Stop;
use crate::test::test_result;

struct Proof {
    name: &'static str,
    about: &'static str,
    runner: ProofRunner,
}

enum ProofRunner {
    /// The load generator, with a benchmark of the same name.
    LoadGenerator,
    /// An integration test of the server; an environment variable sets the amount of work.
    Test { test: &'static str, variable: &'static str, default: &'static str },
}

const PROOFS: [Proof; 3] = [
    Proof {
        name: "on-sale",
        about: "50,000 seats and a crowd through the waiting room; replicas are restarted and Redis fails over meanwhile",
        runner: ProofRunner::LoadGenerator,
    },
    Proof {
        name: "free-places",
        about: "[500] times each in batches of one and larger ones, a hold is checked out twice at once at two replicas while its places go",
        runner: ProofRunner::Test {
            test: "free_places::concurrent_checkouts_sell_no_unpaid_place",
            variable: "ROWLOCK_FREE_PLACES",
            default: "500",
        },
    },
    Proof {
        name: "interleavings",
        about: "[all] schedules with up to two preemptions of two or three actions on one booking; 25m of them, 20 a pair, or by name",
        runner: ProofRunner::Test {
            test: "interleavings::concurrent_actions_on_a_booking_keep_the_books_balanced",
            variable: "ROWLOCK_INTERLEAVINGS",
            default: "all",
        },
    },
];

/// Options of `prove`.
#[derive(Args)]
pub struct ProveOptions {
    /// Name of the proof; without it, the proofs are listed.
    name: Option<String>,
    /// Arguments of the proof: --json, --quick and its own (--help).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs a proof. Returns `true` when it holds.
pub fn prove(paths: &Paths, options: &ProveOptions, stop: &Stop) -> Result<bool> {
    let Some(name) = &options.name else {
        for Proof { name, about, .. } in &PROOFS {
            println!("cargo xtask prove {name:<13} {about}");
        }
        return Ok(true);
    };
    let Some(proof) = PROOFS.iter().find(|proof| proof.name == name) else {
        bail!("there is no proof called {name}; `cargo xtask prove` lists them");
    };
    let mut folder = DataFolder::open(paths, "prove", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let holds = match proof.runner {
        ProofRunner::LoadGenerator => {
            LoadGenerator::build(paths, &options.arguments, stop)?.run(name, &folder, &stores, None)?
        }
        ProofRunner::Test { test, variable, default } => {
            ensure!(options.arguments.len() <= 1, "{name} takes one argument");
            let amount = options.arguments.first().map_or(default, String::as_str);
            run_test(paths, test, (variable, amount), &stores, stop)?
        }
    };
    processes.check()?;
    processes.end_all();
    Ok(holds)
}

/// Runs an integration test with a variable set. Returns `true` when exactly one test ran and passed.
fn run_test(paths: &Paths, test: &str, (variable, value): (&str, &str), stores: &Stores, stop: &Stop) -> Result<bool> {
    let step = ProgressStep::start(format!("{test} with {variable}={value}"));
    let mut command = native::cargo_all(paths, "test");
    command.args(["--test", "it", "--", test, "--exact", "--nocapture"]);
    command.env("DATABASE_URL", &stores.postgres).env("REDIS_URL", &stores.redis).env(variable, value);
    command.env("REDIS_SERVER", services::redis_program(stop)?);
    let mut passed = 0;
    let status = cargo_progress::status_with_lines(&mut command, &step, stop, |line| {
        passed += test_result(line).map_or(0, |(passed, _)| passed);
    })?;
    step.done();
    Ok(status.success() && passed == 1)
}

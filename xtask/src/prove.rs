//! `cargo xtask prove`: what is promised whatever fails, shown on real processes.

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::bench;
use crate::command;
use crate::native;
use crate::places::Places;
use crate::processes::Processes;
use crate::progress::Step;
use crate::services::{self, Folder, Stores};
use crate::stop::Stop;
use crate::test::test_result;

/// A proof and what it is about.
struct Proof {
    name: &'static str,
    about: &'static str,
    by: By,
}

/// The program that runs a proof.
enum By {
    /// The load generator, under the same name.
    LoadGenerator,
    /// An integration test of the server; a variable says how much to do.
    Test {
        /// The test's full name.
        test: &'static str,
        /// Set to the proof's argument.
        variable: &'static str,
        /// The argument where none is given.
        usual: &'static str,
    },
}

const PROOFS: [Proof; 3] = [
    Proof {
        name: "on-sale",
        about: "50,000 seats and a crowd through the waiting room; replicas are restarted and Redis fails over meanwhile",
        by: By::LoadGenerator,
    },
    Proof {
        name: "free-places",
        about: "[500] times in each commit mode, a hold is checked out twice at once at two replicas while its places go",
        by: By::Test {
            test: "free_places::concurrent_checkouts_sell_no_place_that_is_not_paid_for",
            variable: "ROWLOCK_FREE_PLACES",
            usual: "500",
        },
    },
    Proof {
        name: "interleavings",
        about: "[all] schedules with up to two preemptions of two or three actions on one booking; 25m of them, 20 a pair, or by name",
        by: By::Test {
            test: "interleavings::schedules_of_two_actions_on_one_booking_leave_the_books_right",
            variable: "ROWLOCK_INTERLEAVINGS",
            usual: "all",
        },
    },
];

/// What to prove.
#[derive(Args)]
pub struct Options {
    /// What; without a name the list.
    name: Option<String>,
    /// Passed on: --json, --quick, and what the proof itself takes (--help).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs one; whether it holds.
pub fn prove(places: &Places, options: &Options, stop: &Stop) -> Result<bool> {
    let Some(name) = &options.name else {
        for Proof { name, about, .. } in &PROOFS {
            println!("cargo xtask prove {name:<13} {about}");
        }
        return Ok(true);
    };
    let Some(proof) = PROOFS.iter().find(|proof| proof.name == name) else {
        bail!("there is no proof called {name}; `cargo xtask prove` lists them");
    };
    let mut folder = Folder::open(places, "prove", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let holds = match proof.by {
        By::LoadGenerator => bench::from_outside(places, name, &options.arguments, &folder, &stores, stop)?,
        By::Test { test, variable, usual } => {
            ensure!(options.arguments.len() <= 1, "{name} takes one argument");
            let much = options.arguments.first().map_or(usual, String::as_str);
            run_test(places, test, (variable, much), &stores, stop)?
        }
    };
    processes.check()?;
    processes.end_all();
    Ok(holds)
}

/// Runs an integration test with a variable set. True if it was there and passed.
fn run_test(
    places: &Places,
    test: &str,
    (variable, value): (&str, &str),
    stores: &Stores,
    stop: &Stop,
) -> Result<bool> {
    let step = Step::start(format!("{test} with {variable}={value}"));
    let mut command = native::cargo_all(places, "test");
    command.args(["--test", "it", "--", test, "--exact", "--nocapture"]);
    command.env("DATABASE_URL", &stores.postgres).env("REDIS_URL", &stores.redis).env(variable, value);
    command.env("REDIS_SERVER", services::redis_program(stop)?);
    let mut passed = 0;
    let status = command::status_seeing(&mut command, stop, |line| {
        passed += test_result(line).map_or(0, |(passed, _)| passed);
    })?;
    step.done();
    Ok(status.success() && passed == 1)
}

//! `cargo xtask prove`: what is promised whatever fails, shown on real processes.

use anyhow::{Result, bail};
use clap::Args;

use crate::bench;
use crate::places::Places;
use crate::processes::Processes;
use crate::services::{self, Folder};
use crate::stop::Stop;

/// The proofs, and what each is about.
const PROOFS: [(&str, &str); 1] = [(
    "on-sale",
    "50,000 seats and a crowd through the waiting room; replicas are restarted and Redis fails over meanwhile",
)];

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
        for (name, about) in PROOFS {
            println!("cargo xtask prove {name:<8} {about}");
        }
        return Ok(true);
    };
    if !PROOFS.iter().any(|(known, _)| known == name) {
        bail!("there is no proof called {name}; `cargo xtask prove` lists them");
    }
    let mut folder = Folder::open(places, "prove", true)?;
    let mut processes = Processes::new(stop);
    let stores = services::start(&mut folder, &mut processes, stop)?;
    let holds = bench::from_outside(places, name, &options.arguments, &folder, &stores, stop)?;
    processes.check()?;
    processes.end_all();
    Ok(holds)
}

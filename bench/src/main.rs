//! `rowlock-bench`: measures Rowlock from outside and checks that it kept its word meanwhile.
//!
//! It shares no code with the server: it speaks HTTP, WebSocket, SQL and Redis as documented, makes its
//! own load on a schedule fixed beforehand, and compares every figure with a baseline measured in the
//! same run. `cargo xtask bench NAME` builds everything and starts it; docs/performance.md tells the rest.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod arrivals;
mod checker;
mod cpu;
mod frame;
mod histogram;
mod http;
mod live;
mod locks;
mod map;
mod on_sale;
mod purchase;
mod random;
mod report;
mod retries;
mod sale;
mod socket;
mod storm;
mod waiting_room;
mod world;

use report::Report;
use world::Places;

#[derive(Parser)]
#[command(name = "rowlock-bench", about = "Measures Rowlock from outside, against baselines, and checks its word.")]
struct Arguments {
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    bench: Bench,
}

/// What all benchmarks take.
#[derive(Clone, Debug, clap::Args)]
struct Run {
    /// One JSON object a line on standard output.
    #[arg(long, global = true)]
    json: bool,
    /// Rounds; candidate and baselines take turns in each. Figures need five.
    #[arg(long, default_value_t = 5, global = true)]
    rounds: u32,
    /// Whether it works at all: one short round. Its figures mean nothing.
    #[arg(long, global = true)]
    quick: bool,
}

#[derive(Subcommand)]
enum Bench {
    /// Attempts to take seats: over HTTP, and in Redis alone.
    Locks(locks::Options),
    /// Reading a whole map: Redis CPU, bytes on the wire.
    Map(map::Options),
    /// Sales from hold to ticket: batched commits against one by one.
    Sale(sale::Options),
    /// 10,000 visitors, 300 seats, two servers.
    Storm(storm::Options),
    /// Requests that were answered, again and again, on two servers; one of them killed.
    Retries(retries::Options),
    /// Two million people at one door, against a sorted set.
    WaitingRoom(waiting_room::Options),
    /// A crowd through a waiting room, while replicas and Redis go and come.
    OnSale(on_sale::Options),
    /// A live map with thousands of readers.
    Live(live::Options),
    /// The baseline of `live`, a server of its own. Started by it.
    #[command(hide = true)]
    BaselineLive(live::baseline::Options),
}

fn main() -> ExitCode {
    match work(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the figures stand.
fn work(mut arguments: Arguments) -> Result<bool> {
    if arguments.run.quick {
        arguments.run.rounds = 1;
    }
    let run = &arguments.run;
    let mut report = Report::new(run.json);
    match arguments.bench {
        Bench::Locks(options) => locks::run(&arguments.places, run, options, &mut report)?,
        Bench::Live(options) => live::run(&arguments.places, run, options, &mut report)?,
        Bench::BaselineLive(options) => {
            live::baseline::serve(&arguments.places.redis_url, &options)?;
            return Ok(true);
        }
        Bench::Sale(options) => sale::run(&arguments.places, run, options, &mut report)?,
        Bench::Storm(options) => storm::run(&arguments.places, run, options, &mut report)?,
        Bench::WaitingRoom(options) => waiting_room::run(&arguments.places, run, options, &mut report)?,
        Bench::OnSale(options) => on_sale::run(&arguments.places, run, options, &mut report)?,
        Bench::Retries(options) => retries::run(&arguments.places, run, options, &mut report)?,
        Bench::Map(options) => map::run(&arguments.places, run, options, &mut report)?,
    }
    if run.quick {
        eprintln!("\n  A quick run: it works, and the figures mean nothing.");
    }
    Ok(report.close())
}

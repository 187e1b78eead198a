//! `rowlock-bench`: measures Rowlock from outside and checks its guarantees under load.
//!
//! It shares no code with the server: it speaks HTTP, WebSocket, SQL and Redis as documented, generates
//! load on a precomputed schedule, and compares every figure with a baseline measured in the same run; with `--peer`, with another server.
//! `cargo xtask bench NAME` builds and starts everything. docs/performance.md describes the method.
//!
//! It may use no crate of the workspace. To add a benchmark: a module, a variant of `Bench`, and its name in
//! `xtask/src/bench.rs`.

use std::process::ExitCode;

use anyhow::{Result, bail};
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
mod peer;
mod purchase;
mod random;
mod report;
mod retries;
mod sale;
mod socket;
mod storm;
mod waiting_room;
mod world;

use peer::{PeerOptions, Work};
use report::Report;
use world::RunPaths;

#[derive(Parser)]
#[command(
    name = "rowlock-bench",
    about = "Measures Rowlock from outside, against baselines, and checks its guarantees."
)]
struct BenchArguments {
    #[command(flatten)]
    paths: RunPaths,
    #[command(flatten)]
    run: RunOptions,
    #[command(subcommand)]
    bench: Bench,
}

/// Options of every benchmark.
#[derive(Clone, Debug, clap::Args)]
struct RunOptions {
    /// Print one JSON object a line on standard output.
    #[arg(long, global = true)]
    json: bool,
    /// Number of rounds; each runs the candidate and every baseline. Figures need five.
    #[arg(long, default_value_t = 5, global = true)]
    rounds: u32,
    /// Run one short round as a smoke test: its figures mean nothing, and an error fails it.
    #[arg(long, global = true)]
    quick: bool,
    #[command(flatten)]
    peer: PeerOptions,
}

#[derive(Subcommand)]
enum Bench {
    /// Attempts to hold seats, over HTTP and in Redis alone.
    Locks(locks::LocksOptions),
    /// Reading a whole map: Redis CPU, bytes on the wire.
    Map(map::MapOptions),
    /// Sales from hold to ticket, in one request and in two.
    Sale(sale::SaleOptions),
    /// 10,000 visitors, 300 seats, two servers.
    Storm(storm::StormOptions),
    /// Replays of answered requests at two servers, one of which is killed.
    Retries(retries::RetriesOptions),
    /// Two million joins of one waiting room, against a sorted set.
    WaitingRoom(waiting_room::WaitingRoomOptions),
    /// An on-sale through a waiting room, with replica restarts and a Redis failover.
    OnSale(on_sale::OnSaleOptions),
    /// A live map with thousands of readers.
    Live(live::LiveOptions),
    /// The baseline server of `live`, which starts it.
    #[command(hide = true)]
    BaselineLive(live::baseline::BaselineOptions),
}

impl Bench {
    /// Returns the work that a peer server can do as well.
    fn compared_work(&self) -> Result<Work> {
        match self {
            Self::Locks(_) => Ok(Work::Locks),
            Self::Map(_) => Ok(Work::Map),
            Self::Sale(_) => Ok(Work::Sale),
            Self::Retries(_) => Ok(Work::Retries),
            Self::Live(_) => Ok(Work::Live),
            Self::Storm(_) | Self::WaitingRoom(_) | Self::OnSale(_) | Self::BaselineLive(_) => {
                bail!("--peer compares locks (with a storm), sale, live, retries and map")
            }
        }
    }
}

fn main() -> ExitCode {
    match run(BenchArguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the chosen benchmark. `true` means that the checker found no violation.
fn run(mut arguments: BenchArguments) -> Result<bool> {
    if arguments.run.quick {
        arguments.run.rounds = 1;
    }
    let run = &arguments.run;
    let mut report = Report::new(run.json, run.quick);
    if let Some(description) = &run.peer.peer {
        peer::run(&arguments.paths, run, arguments.bench.compared_work()?, description, &mut report)?;
        return Ok(report.close());
    }
    match arguments.bench {
        Bench::Locks(options) => locks::run(&arguments.paths, run, options, &mut report)?,
        Bench::Live(options) => live::run(&arguments.paths, run, options, &mut report)?,
        Bench::BaselineLive(options) => {
            live::baseline::serve(&arguments.paths.redis_url, &options)?;
            return Ok(true);
        }
        Bench::Sale(options) => sale::run(&arguments.paths, run, options, &mut report)?,
        Bench::Storm(options) => storm::run(&arguments.paths, run, options, &mut report)?,
        Bench::WaitingRoom(options) => waiting_room::run(&arguments.paths, run, options, &mut report)?,
        Bench::OnSale(options) => on_sale::run(&arguments.paths, run, options, &mut report)?,
        Bench::Retries(options) => retries::run(&arguments.paths, run, options, &mut report)?,
        Bench::Map(options) => map::run(&arguments.paths, run, options, &mut report)?,
    }
    if run.quick {
        eprintln!("\n  A quick run: the figures mean nothing.");
    }
    Ok(report.close())
}

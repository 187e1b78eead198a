//! `locks`: CPU cost and latency of an attempt to hold a seat.
//!
//! Over HTTP, attempts arrive on a schedule at several rates, first for free seats, then for held seats.
//! In Redis alone, the server's script with many attempts a call is compared with one attempt a call and
//! with a key per seat.

use anyhow::Result;
use serde_json::json;

use crate::RunOptions;
use crate::arrivals::Spacing;
use crate::report::{Bound, Report, ratio};
use crate::world::{RunPaths, World};

mod over_http;
mod scripts;

/// Options of `locks`.
#[derive(Clone, Debug, clap::Args)]
pub struct LocksOptions {
    /// Attempts a second over HTTP, one run each.
    #[arg(long, value_delimiter = ',', default_value = "5000,10000,20000")]
    rates: Vec<u32>,
    /// Duration of each phase of each round, seconds.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Keep-alive connections.
    #[arg(long, default_value_t = 128)]
    connections: usize,
    /// Distribution of arrivals.
    #[arg(long, value_enum, default_value_t = Spacing::Poisson)]
    arrivals: Spacing,
    /// Seats of a show.
    #[arg(long, default_value_t = 50_000)]
    seats: u32,
    /// Attempts in one call of the lock script, as the server sends them.
    #[arg(long, default_value_t = 32)]
    attempts_per_call: usize,
    /// Run one part only.
    #[arg(long, value_enum)]
    only: Option<LocksPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LocksPart {
    /// Over HTTP.
    Http,
    /// In Redis alone.
    Scripts,
}

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: LocksOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        options.rates = vec![200];
        options.seconds = 1.0;
        options.seats = 2_000;
    }
    let mut world = World::create(paths)?;
    if options.only != Some(LocksPart::Scripts) {
        over_http::run(&mut world, run, &options, report)?;
    }
    if options.only != Some(LocksPart::Http) {
        scripts::run(&mut world, run, &options, report)?;
    }
    report.summarise();
    promises(&options, report);
    Ok(())
}

fn promises(options: &LocksOptions, report: &Report) {
    for rate in &options.rates {
        let of = |phase: &str, key: &str| {
            let values = [("phase", json!(phase)), ("rate_per_s", json!(rate)), ("variant", json!("candidate"))];
            report.median(&values, key)
        };
        let slowest = if *rate <= 10_000 { 200.0 } else { 50.0 };
        let name = |what: &str| format!("{rate}/s over HTTP: {what}");
        for phase in ["granted", "refused"] {
            report.promise(&name(&format!("{phase} p99 ms")), of(phase, "p99_ms"), Bound::AtMost(slowest));
            report.promise(&name(&format!("{phase} errors")), of(phase, "errors"), Bound::AtMost(0.0));
        }
        let server = of("granted", "server_cpu_us_per_op");
        let both = server.zip(of("granted", "redis_cpu_us_per_op")).map(|(server, redis)| server + redis);
        report.promise(&name("server plus Redis CPU a granted attempt, microseconds"), both, Bound::AtMost(45.0));
        let keys = [("p50_ms", 1.0), ("p99_ms", 1.0), ("server_cpu_us_per_op", 1.0), ("redis_cpu_us_per_op", 0.5)];
        for (key, bound) in keys {
            let granted = of("granted", key).map(|granted| granted.max(f64::MIN_POSITIVE));
            let ratio = ratio(of("refused", key), granted);
            report.promise(&name(&format!("refusals against grants, {key}")), ratio, Bound::AtMost(bound));
        }
    }
    for (phase, bound) in [("granted", 1.8), ("refused", 2.2)] {
        let of = |variant: &str| {
            let values = [("phase", json!(phase)), ("variant", json!(variant)), ("layer", json!("redis"))];
            report.median(&values, "redis_cpu_us_per_op")
        };
        let one = ratio(of(scripts::ONE_PER_CALL), of("candidate"));
        report.promise(&format!("Redis CPU of one attempt a call against ours, {phase}"), one, Bound::AtLeast(bound));
        if let Some(keys) = ratio(of(scripts::KEY_PER_SEAT), of("candidate")) {
            eprintln!("        Redis CPU of a key per seat with SET NX PX against ours, {phase}: {keys:.2}");
        }
    }
}

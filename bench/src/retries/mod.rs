//! `retries`: the cost of replaying a known answer, and the proof that an idempotency key has one effect.
//!
//! First people buy seats at two servers. Then their requests are replayed at both servers over many
//! keep-alive connections with several requests in flight each, as browsers and API clients do after an
//! outage. A connection sends its next request when one is answered. Every answer is compared, byte by
//! byte, with the first one. Redis and Postgres count the calls they receive meanwhile.
//! Finally one of two servers is killed while both process the same requests.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::RunOptions;
use crate::cpu::Cpu;
use crate::report::{Bound, Report, ReportRow};
use crate::world::{BenchServer, RunPaths, World};

mod calls;
mod crash;
mod purchases;
mod replay;

use calls::StoreCalls;
use purchases::Purchase;
use replay::{LoadShape, Replay};

/// Number of servers that share the stores.
const SERVERS: usize = 2;
/// Requests in flight per connection during the warm-up, which replays each request at each server.
const WARM_UP_IN_FLIGHT: usize = 4;
/// Header that bypasses the replay cache, because it changes the handling of a request: the baseline.
const BYPASS_REPLAY_CACHE: &str = "Prefer: wait=30\r\n";

/// Options of `retries`.
#[derive(Clone, Debug, clap::Args)]
pub struct RetriesOptions {
    /// Buyers whose requests are replayed, three each: hold, book, pay.
    #[arg(long, default_value_t = 500)]
    buyers: u32,
    /// Seats each of them buys.
    #[arg(long, default_value_t = 2)]
    seats_each: u32,
    /// Keep-alive connections to each server.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Requests in flight on each connection.
    #[arg(long, default_value_t = 8)]
    in_flight: usize,
    /// Duration of each variant in each round, seconds.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Buyers while a server is killed.
    #[arg(long, default_value_t = 200)]
    crash_buyers: u32,
}

/// A variant of the replay load.
struct ReplayVariant {
    name: &'static str,
    in_flight: usize,
    more_headers: &'static str,
}

/// Runs it.
pub fn run(paths: &RunPaths, run: &RunOptions, mut options: RetriesOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.buyers, options.crash_buyers, options.seconds) = (20, 20, 1.0);
    }
    let mut world = World::create(paths)?;
    let (simulator, _payments) = world.simulator()?;
    let servers = [world.server("rowlock-1", Some(simulator))?, world.server("rowlock-2", Some(simulator))?];
    let addresses = servers.each_ref().map(|server| server.address);
    report.print_line(&format!("  {} people buy {} seats each", options.buyers, options.seats_each));
    let purchases = purchases::make_purchases(&mut world, &addresses, options.buyers, options.seats_each)?;
    warm_up(&addresses, &purchases, &options, report)?;
    let variants = [
        ReplayVariant { name: "candidate", in_flight: options.in_flight, more_headers: "" },
        ReplayVariant { name: "one_in_flight", in_flight: 1, more_headers: "" },
        ReplayVariant { name: "uncached", in_flight: options.in_flight, more_headers: BYPASS_REPLAY_CACHE },
    ];
    for round in 1..=run.rounds {
        for variant in &variants {
            one_round(&mut world, &servers, &options, variant, &purchases, round, report)?;
        }
    }
    drop(servers);
    for round in 1..=run.rounds {
        crash::one_round(&mut world, simulator, options.crash_buyers, round, report)?;
    }
    report.summarise();
    report.print_line("");
    promises(report);
    Ok(())
}

/// Replays each request once at each server, so that both have every answer in memory.
fn warm_up(
    addresses: &[SocketAddr; SERVERS],
    purchases: &[Purchase],
    options: &RetriesOptions,
    report: &mut Report,
) -> Result<()> {
    let shape = LoadShape { connections: options.connections, in_flight: WARM_UP_IN_FLIGHT, duration: None };
    let replay = Replay::run(addresses, &shape, &expected_answers(purchases, ""))?;
    report.findings(&replay.found);
    Ok(())
}

/// Returns the requests with their expected answers.
fn expected_answers(purchases: &[Purchase], more_headers: &str) -> Vec<replay::Expected> {
    let requests = purchases.iter().flat_map(|purchase| &purchase.requests);
    requests
        .map(|answered| replay::Expected {
            request: answered.request.bytes(more_headers),
            status: answered.status,
            body: answered.body.clone(),
        })
        .collect()
}

fn one_round(
    world: &mut World,
    servers: &[BenchServer; SERVERS],
    options: &RetriesOptions,
    variant: &ReplayVariant,
    purchases: &[Purchase],
    round: u32,
    report: &mut Report,
) -> Result<()> {
    let expected = expected_answers(purchases, variant.more_headers);
    let addresses = servers.each_ref().map(|server| server.address);
    let duration = Duration::from_secs_f64(options.seconds);
    // The background: calls that the servers make without requests.
    let before = StoreCalls::read(world)?;
    std::thread::sleep(duration);
    let background = StoreCalls::read(world)?.since(&before);

    let shape = LoadShape { connections: options.connections, in_flight: variant.in_flight, duration: Some(duration) };
    let before = (StoreCalls::read(world)?, readings(servers)?);
    let replay = Replay::run(&addresses, &shape, &expected)?;
    let (calls, cpu) = (StoreCalls::read(world)?.since(&before.0), readings(servers)?);
    let [server, generator] = [0, 1].map(|place: usize| cpu[place].micros_since(&before.1[place]));
    let count = replay.answer_count().max(1) as f64;
    let background = background.scaled(replay.took.as_secs_f64() / options.seconds.max(f64::MIN_POSITIVE));
    let (redis, postgres) = calls.minus_background(&background);
    report.findings(&replay.found);
    report.round(
        ReportRow::of("retries", variant.name)
            .with("round", round)
            .with("in_flight", variant.in_flight)
            .figure("replays_per_s", count / replay.took.as_secs_f64())
            .latencies(&replay.latencies)
            .figure("server_cpu_us_per_op", server / count)
            .figure("generator_cpu_us_per_op", generator / count)
            .figure("redis_calls_per_op", redis / count)
            .figure("postgres_calls_per_op", postgres / count)
            .with("redis_calls", calls.redis)
            .with("postgres_calls", calls.postgres)
            .with("violations", replay.found.count()),
    );
    Ok(())
}

/// Reads the CPU time of both servers together, and of the generator.
fn readings(servers: &[BenchServer; SERVERS]) -> Result<[Cpu; 2]> {
    let pids = servers.each_ref().map(|server| server.process.pid());
    Ok([Cpu::of(&pids)?, Cpu::of_threads(std::process::id())?])
}

/// Compares the medians with the promised bounds. Up to one call in a thousand replays counts as noise.
fn promises(report: &mut Report) {
    const NONE: f64 = 0.001;
    let of = |key: &str, report: &Report| report.median(&[("variant", json!("candidate"))], key);
    for (what, key, bound) in [
        ("replays a second", "replays_per_s", Bound::AtLeast(60_000.0)),
        ("goal: replays a second", "replays_per_s", Bound::AtLeast(100_000.0)),
        ("server CPU of a replay, microseconds", "server_cpu_us_per_op", Bound::AtMost(9.0)),
        ("Redis calls a replay, the background's taken off", "redis_calls_per_op", Bound::AtMost(NONE)),
        ("Postgres calls a replay, the background's taken off", "postgres_calls_per_op", Bound::AtMost(NONE)),
    ] {
        let found = of(key, report);
        report.promise(what, found, bound);
    }
    let most = report.extremes(&[("variant", json!("one_killed"))], "effects_per_key");
    for (bound, found) in
        [(Bound::AtLeast(1.0), most.map(|(least, _)| least)), (Bound::AtMost(1.0), most.map(|(_, most)| most))]
    {
        report.promise("effects of a key, one of two servers killed", found, bound);
    }
}

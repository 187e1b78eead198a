//! `retries`: what a repeat of a request costs whose answer is known, and that a key has one effect.
//!
//! First people buy seats, at two servers. Then what they sent is sent again and again, to both: by many
//! keep-alive connections, each of which keeps several requests in the air, as browsers and API clients do
//! that come back after a break, and sends the next as soon as one is answered. Every answer is compared,
//! byte by byte, with the first. What Redis and Postgres were asked meanwhile is counted by themselves.
//! At last one of two servers is killed while both are asked to do the same.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::Run;
use crate::cpu::Cpu;
use crate::report::{Bound, Report, Row};
use crate::world::{Places, Server, World};

mod calls;
mod crash;
mod purchases;
mod replay;

use calls::Calls;
use purchases::Purchase;
use replay::{Replay, Shape};

/// Servers that share the stores.
const SERVERS: usize = 2;
/// Requests repeated before anything is measured: each at each server.
const WARM_UP_IN_FLIGHT: usize = 4;
/// Whoever asks something of each request besides an answer takes the usual road: our own baseline.
const USUAL_ROAD: &str = "Prefer: wait=30\r\n";

/// What `retries` takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// People whose requests are repeated, three each: hold, book, pay.
    #[arg(long, default_value_t = 500)]
    buyers: u32,
    /// Seats each of them buys.
    #[arg(long, default_value_t = 2)]
    seats_each: u32,
    /// Keep-alive connections to each server.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Requests in the air on each of them.
    #[arg(long, default_value_t = 8)]
    in_flight: usize,
    /// How long each variant is measured in each round, seconds.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// People who buy while a server is killed.
    #[arg(long, default_value_t = 200)]
    crash_buyers: u32,
}

/// A way to repeat requests.
struct Variant {
    name: &'static str,
    in_flight: usize,
    more_headers: &'static str,
}

/// Runs it.
pub fn run(places: &Places, run: &Run, mut options: Options, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.buyers, options.crash_buyers, options.seconds) = (20, 20, 1.0);
    }
    let mut world = World::make(places)?;
    let (simulator, _payments) = world.simulator()?;
    let servers = [world.server("rowlock-1", Some(simulator))?, world.server("rowlock-2", Some(simulator))?];
    let addresses = servers.each_ref().map(|server| server.address);
    report.say(&format!("  {} people buy {} seats each", options.buyers, options.seats_each));
    let purchases = purchases::make(&mut world, &addresses, options.buyers, options.seats_each)?;
    warm_up(&addresses, &purchases, &options, report)?;
    let variants = [
        Variant { name: "candidate", in_flight: options.in_flight, more_headers: "" },
        Variant { name: "one_in_flight", in_flight: 1, more_headers: "" },
        Variant { name: "usual_road", in_flight: options.in_flight, more_headers: USUAL_ROAD },
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
    report.say("");
    promises(report);
    Ok(())
}

/// Each request once at each server: afterwards both know every answer, the other's as well.
fn warm_up(
    addresses: &[SocketAddr; SERVERS],
    purchases: &[Purchase],
    options: &Options,
    report: &mut Report,
) -> Result<()> {
    let shape = Shape { connections: options.connections, in_flight: WARM_UP_IN_FLIGHT, time: None };
    let replay = Replay::run(addresses, &shape, &wordings(purchases, ""))?;
    report.findings(&replay.found);
    Ok(())
}

/// What is sent, and what must be answered.
fn wordings(purchases: &[Purchase], more_headers: &str) -> Vec<replay::Expected> {
    let requests = purchases.iter().flat_map(|purchase| &purchase.requests);
    requests
        .map(|done| replay::Expected {
            request: done.request.bytes(more_headers),
            status: done.status,
            body: done.body.clone(),
        })
        .collect()
}

fn one_round(
    world: &mut World,
    servers: &[Server; SERVERS],
    options: &Options,
    variant: &Variant,
    purchases: &[Purchase],
    round: u32,
    report: &mut Report,
) -> Result<()> {
    let expected = wordings(purchases, variant.more_headers);
    let addresses = servers.each_ref().map(|server| server.address);
    let time = Duration::from_secs_f64(options.seconds);
    // What the servers ask the stores without anybody asking them.
    let before = Calls::read(world)?;
    std::thread::sleep(time);
    let background = Calls::read(world)?.since(&before);

    let shape = Shape { connections: options.connections, in_flight: variant.in_flight, time: Some(time) };
    let before = (Calls::read(world)?, readings(servers)?);
    let replay = Replay::run(&addresses, &shape, &expected)?;
    let (calls, cpu) = (Calls::read(world)?.since(&before.0), readings(servers)?);
    let [server, generator] = [0, 1].map(|place: usize| cpu[place].micros_since(&before.1[place]));
    let count = replay.latencies_count().max(1) as f64;
    let background = background.scaled(replay.took.as_secs_f64() / options.seconds.max(f64::MIN_POSITIVE));
    let (redis, postgres) = calls.beyond(&background);
    report.findings(&replay.found);
    report.round(
        Row::of("retries", variant.name)
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

/// CPU time of both servers together, and of the generator.
fn readings(servers: &[Server; SERVERS]) -> Result<[Cpu; 2]> {
    let pids = servers.each_ref().map(|server| server.process.pid());
    Ok([Cpu::of(&pids)?, Cpu::of_threads(std::process::id())?])
}

/// What the issue promises. A call that is counted once in a thousand replays is none of theirs.
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

//! `retries`: the cost of replaying a known answer, and the proof that an idempotency key has one effect.
//!
//! First people buy seats at two servers. Then their requests are replayed at both servers over many
//! keep-alive connections with several requests in flight each, as browsers and API clients do after an
//! outage. A connection sends its next request when one is answered. Every answer is compared, byte by
//! byte, with the first one. Redis and Postgres count the calls they receive meanwhile.
//! Finally one of two servers is killed while both process the same requests.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::cmd;
use serde_json::json;
use uuid::Uuid;

use crate::RunOptions;
use crate::cpu::Cpu;
use crate::http::{self, id_of};
use crate::purchase::{PurchaseStep, Request};
use crate::report::{Bound, Report, ReportRow};
use crate::world::{BenchServer, RunPaths, World};

mod crash;
mod replay;

pub use replay::{Expected, LoadShape, Replay};

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
    /// Buyers while a server is killed; 0 to kill none.
    #[arg(long, default_value_t = 200)]
    crash_buyers: u32,
}

struct ReplayVariant {
    name: &'static str,
    in_flight: usize,
    more_headers: &'static str,
}

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: RetriesOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        // Without a crash: the effects of a dead server are taken over after a minute.
        (options.buyers, options.crash_buyers, options.seconds) = (20, 0, 0.5);
    }
    let mut world = World::create(paths)?;
    let (simulator, _payments) = world.simulator()?;
    let servers = [world.server("rowlock-1", Some(simulator))?, world.server("rowlock-2", Some(simulator))?];
    let addresses = servers.each_ref().map(|server| server.address);
    eprintln!("  {} people buy {} seats each", options.buyers, options.seats_each);
    let answered = make_purchases(&mut world, &addresses, &options)?;
    // Each request is replayed once at each server, so that both have every answer in memory.
    let warm_up = LoadShape { connections: options.connections, in_flight: WARM_UP_IN_FLIGHT, duration: None };
    report.findings(&Replay::run(&addresses, &warm_up, &expected_answers(&answered, ""))?.found);
    let variants = [
        ReplayVariant { name: "candidate", in_flight: options.in_flight, more_headers: "" },
        ReplayVariant { name: "one_in_flight", in_flight: 1, more_headers: "" },
        ReplayVariant { name: "uncached", in_flight: options.in_flight, more_headers: BYPASS_REPLAY_CACHE },
    ];
    for round in 1..=run.rounds {
        for variant in &variants {
            one_round(&mut world, &servers, &options, variant, &answered, round, report)?;
        }
    }
    drop(servers);
    let crashes = if options.crash_buyers > 0 { run.rounds } else { 0 };
    for round in 1..=crashes {
        crash::one_round(&mut world, simulator, options.crash_buyers, round, report)?;
    }
    report.summarise();
    promises(report);
    Ok(())
}

/// A request and its first answer.
struct AnsweredRequest {
    request: Request,
    visitor: String,
    status: u16,
    body: Vec<u8>,
}

/// Lets every buyer hold, book and pay, alternating between the servers.
fn make_purchases(
    world: &mut World,
    servers: &[SocketAddr; SERVERS],
    options: &RetriesOptions,
) -> Result<Vec<AnsweredRequest>> {
    // A room has rows of a hundred seats.
    let show = world.shows((options.buyers * options.seats_each).next_multiple_of(100), 1)?[0];
    let mut answered = Vec::new();
    for buyer in 0..options.buyers {
        let (server, visitor) = (servers[buyer as usize % SERVERS], world.random.hex());
        let mut send = |step: PurchaseStep, expected: u16| -> Result<Uuid> {
            let request = step.request(show.id, buyer * options.seats_each..(buyer + 1) * options.seats_each);
            let (status, body) = http::ask(server, &request.bytes(&visitor, ""))?;
            let text = || String::from_utf8_lossy(&body).into_owned();
            ensure!(status == expected, "{} is answered with {status}: {}", request.path, text());
            let id = id_of(&body).with_context(|| format!("no id in {}", text()))?;
            answered.push(AnsweredRequest { request, visitor: visitor.clone(), status, body });
            Ok(id)
        };
        let hold = send(PurchaseStep::Hold, 201)?;
        let booking = send(PurchaseStep::Book(hold), 201)?;
        send(PurchaseStep::Pay(booking), 200)?;
    }
    Ok(answered)
}

/// Returns the requests with their expected answers.
fn expected_answers(answered: &[AnsweredRequest], more_headers: &str) -> Vec<Expected> {
    let expected = answered.iter().map(|AnsweredRequest { request, visitor, status, body }| Expected {
        request: request.bytes(visitor, more_headers),
        status: *status,
        body: body.clone(),
    });
    expected.collect()
}

fn one_round(
    world: &mut World,
    servers: &[BenchServer; SERVERS],
    options: &RetriesOptions,
    variant: &ReplayVariant,
    answered: &[AnsweredRequest],
    round: u32,
    report: &mut Report,
) -> Result<()> {
    let expected = expected_answers(answered, variant.more_headers);
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
    let count = replay.answers.max(1) as f64;
    let background = background.scaled(replay.took.as_secs_f64() / options.seconds.max(f64::MIN_POSITIVE));
    let (redis, postgres) = calls.minus_background(&background);
    report.checked_round(
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
            .with("postgres_calls", calls.postgres),
        &replay.found,
    );
    Ok(())
}

/// Reads the CPU time of both servers together, and of the generator.
fn readings(servers: &[BenchServer; SERVERS]) -> Result<[Cpu; 2]> {
    let pids = servers.each_ref().map(|server| server.process.pid());
    Ok([Cpu::of(&pids)?, Cpu::of_threads(std::process::id())?])
}

/// Compares the medians with the promised bounds. Up to one call in a thousand replays counts as noise.
fn promises(report: &Report) {
    const NONE: f64 = 0.001;
    for (what, key, bound) in [
        ("replays a second", "replays_per_s", Bound::AtLeast(60_000.0)),
        ("goal: replays a second", "replays_per_s", Bound::AtLeast(100_000.0)),
        ("server CPU of a replay, microseconds", "server_cpu_us_per_op", Bound::AtMost(9.0)),
        ("Redis calls a replay, the background's taken off", "redis_calls_per_op", Bound::AtMost(NONE)),
        ("Postgres calls a replay, the background's taken off", "postgres_calls_per_op", Bound::AtMost(NONE)),
    ] {
        report.promise(what, report.median(&[("variant", json!("candidate"))], key), bound);
    }
    let most = report.extremes(&[("variant", json!("one_killed"))], "effects_per_key");
    for (bound, found) in
        [(Bound::AtLeast(1.0), most.map(|(least, _)| least)), (Bound::AtMost(1.0), most.map(|(_, most)| most))]
    {
        report.promise("effects of a key, one of two servers killed", found, bound);
    }
}

/// Calls so far, or between two reads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StoreCalls {
    /// Commands that Redis ran, including those inside of scripts.
    redis: f64,
    /// Transactions that ended in this run's database; a single statement is one.
    postgres: f64,
}

impl StoreCalls {
    /// Reads both counters. The read itself is counted, the same number each time.
    fn read(world: &mut World) -> Result<Self> {
        let stats: String = cmd("INFO").arg("commandstats").query(world.store.connection())?;
        let ended = world
            .count("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")?;
        Ok(Self { redis: commands(&stats), postgres: ended as f64 })
    }

    fn since(&self, earlier: &Self) -> Self {
        Self { redis: self.redis - earlier.redis, postgres: self.postgres - earlier.postgres }
    }

    /// Scales the calls to `factor` times the duration.
    fn scaled(&self, factor: f64) -> Self {
        Self { redis: self.redis * factor, postgres: self.postgres * factor }
    }

    /// Subtracts the background: (Redis, Postgres). The counters are not exact, so negative results become 0.
    fn minus_background(&self, background: &Self) -> (f64, f64) {
        ((self.redis - background.redis).max(0.0), (self.postgres - background.postgres).max(0.0))
    }
}

/// Sums the calls of lines such as `cmdstat_get:calls=17,usec=…`.
fn commands(stats: &str) -> f64 {
    let calls = stats.lines().filter_map(|line| {
        line.strip_prefix("cmdstat_")?.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_counted_and_the_background_is_subtracted() {
        let stats =
            "# Commandstats\r\ncmdstat_get:calls=17,usec=40\r\ncmdstat_config|get:calls=3,usec=1\r\nother:calls=9";
        assert!((commands(stats) - 20.0).abs() < f64::EPSILON);
        let of = |redis, postgres| StoreCalls { redis, postgres };
        let during = of(120.0, 40.0).since(&of(20.0, 10.0));
        assert_eq!(during.minus_background(&of(45.0, 40.0).scaled(2.0)), (10.0, 0.0));
    }
}

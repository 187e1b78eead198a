//! `on-sale`: a concert's on-sale. A crowd buys through the waiting room of a show on two replicas. During the sale
//! every replica is restarted, one after the other, and Redis' master is killed.
//!
//! Invariants: every seat is sold exactly once; a person enters only after their position was called; positions are
//! called in order and at most at the configured rate; memory does not grow; every refusal has a code and, if it
//! reports overload, a `Retry-After` header.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::RunOptions;
use crate::checker::Findings;
use crate::http::{self, number_after, text_after};
use crate::random::Random;
use crate::report::{Bound, Report, ReportRow};
use crate::waiting_room::place_of;
use crate::world::{BenchServer, RunPaths, Show, World, free_port, wait_until};

mod call_monitor;
mod client;
mod crowd;
mod sentinel_redis;

use call_monitor::{CallMonitor, room_key};
use client::CrowdClient;
use crowd::{Crowd, Person};
use sentinel_redis::SentinelRedis;

const REPLICAS: usize = 2;
const SALE_TIMEOUT: Duration = Duration::from_secs(900);
/// Timeout after the sale for the remaining effects: marks on the map and mails.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Share of sold seats at which the replicas are restarted, one after the other.
const RESTART_AT: f64 = 0.2;
/// Share of sold seats at which Redis' master is killed.
const FAIL_OVER_AT: f64 = 0.5;
/// Share of sold seats at which memory is read, to compare it with the end.
const MEASURE_AT: f64 = 0.6;
/// Maximum growth of a replica's memory from there to the end: caches fill, queues must not.
const MOST_GROWTH_BYTES: f64 = 64.0 * 1_048_576.0;
/// Threads that try to enter before their turn.
const QUEUE_JUMPERS: usize = 2;
/// These people are from the last 1/N of the line.
const QUEUE_JUMPER_SHARE: usize = 10;
/// Timeout for every replica to know the waiting room, and for the room to open.
const ROOM_TIMEOUT: Duration = Duration::from_secs(20);

/// Options of `on-sale`.
#[derive(Clone, Debug, clap::Args)]
pub struct OnSaleOptions {
    /// Number of seats; a multiple of 100.
    #[arg(long, default_value_t = 50_000)]
    seats: u32,
    /// People who join the waiting room.
    #[arg(long, default_value_t = 20_000)]
    people: usize,
    /// Seats per person, 1 to 10.
    #[arg(long, default_value_t = 10)]
    each: u32,
    /// People admitted per second.
    #[arg(long, default_value_t = 100)]
    per_second: u32,
    /// Seconds until the room opens. People who join later get a position behind the drawn ones.
    #[arg(long, default_value_t = 30)]
    opens_in: u64,
    /// Concurrent workers.
    #[arg(long, default_value_t = 64)]
    workers: usize,
}

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: OnSaleOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.seats, options.people, options.opens_in) = (2_000, 1_000, 8);
        options.per_second = 20;
    }
    ensure!((1..=10).contains(&options.each), "one person may have 10 seats");
    let wanted = options.people as u64 * u64::from(options.each);
    ensure!(wanted >= u64::from(options.seats), "so few people cannot buy {} seats", options.seats);
    let mut redis = SentinelRedis::start(&paths.logs)?;
    let paths = RunPaths { redis_url: redis.master_url(), ..paths.clone() };
    let mut world = World::create(&paths)?;
    let (simulator, _payments) = world.simulator()?;
    let url = redis.url();
    let mut replicas = Vec::new();
    for number in 1..=REPLICAS {
        replicas.push(replica(&world, number, free_port()?, simulator, &url)?);
    }
    let addresses: Vec<SocketAddr> = replicas.iter().map(|replica| replica.address).collect();
    let show = world.shows(options.seats, 1)?[0];
    let opened = open_room(&world, &show, &addresses, &options)?;
    let crowd = Crowd::new(&addresses, show, options.each);
    let mut people = crowd.join(options.people, options.workers);
    eprintln!("        {} people have joined", people.len());
    let mut found = assign_places(addresses[0], &show, &mut people, opened)?;
    let began = Instant::now();
    let sale = RunningSale {
        crowd: &crowd,
        people: &people,
        world: &mut world,
        redis: &mut redis,
        replicas: &mut replicas,
        simulator,
    };
    let figures = sale.run(&show, &options)?;
    let took = began.elapsed();
    found.join(crowd.findings());
    found.join(world.check_sold_out(&replicas, &show, &crowd.bought(), SETTLE_TIMEOUT)?);
    let growth = figures.growth(&replicas)?;
    if growth > MOST_GROWTH_BYTES {
        found.add(|| format!("a replica grew by {growth} bytes"));
    }
    crowd.refusal_lines().iter().for_each(|line| eprintln!("        refused: {line}"));
    let row = ReportRow::of("on-sale", "candidate").with("seats", options.seats).with("people", people.len());
    report.checked_round(
        crowd
            .add_figures(row)
            .figure("seconds", took.as_secs_f64())
            .figure("failover_s", figures.failover.as_secs_f64())
            .figure("replica_growth_bytes", growth)
            .figure("redis_growth_bytes", redis.memory()? as f64 - figures.redis_bytes as f64),
        &found,
    );
    eprintln!();
    let (seats, sold) = (f64::from(options.seats), Some(crowd.bought().len() as f64));
    report.promise("seats sold", sold, Bound::AtLeast(seats));
    report.promise("seats sold", sold, Bound::AtMost(seats));
    let description = "bytes a replica grew by in the second part of the sale";
    report.promise(description, Some(growth), Bound::AtMost(MOST_GROWTH_BYTES));
    Ok(())
}

fn replica(
    world: &World,
    number: usize,
    address: SocketAddr,
    simulator: SocketAddr,
    redis: &str,
) -> Result<BenchServer> {
    world.server_at(address, &format!("rowlock-{number}"), Some(simulator), &[("REDIS_URL", redis)])
}

/// Turns the waiting room on and waits until every replica knows it. Returns its opening time.
fn open_room(world: &World, show: &Show, addresses: &[SocketAddr], options: &OnSaleOptions) -> Result<Instant> {
    let opens_in = Duration::from_secs(options.opens_in);
    // Postgres formats the time as RFC 3339.
    let opens_at_text: String = world.runtime.block_on(
        sqlx::query_scalar(
            "SELECT to_char((now() + make_interval(secs => $1)) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
        )
        .bind(opens_in.as_secs_f64())
        .fetch_one(&world.pg),
    )?;
    let opens_at = Instant::now() + opens_in;
    world.command(&[
        "waiting-room",
        "on",
        &show.id.to_string(),
        "--opens-at",
        &opens_at_text,
        "--per-second",
        &options.per_second.to_string(),
        "--reason",
        "On sale.",
    ])?;
    for address in addresses {
        let knows = wait_until(ROOM_TIMEOUT, POLL_INTERVAL, || Ok(http::get(*address, &queue_of(show))?.0 == 200))?;
        ensure!(knows, "{address} does not know the waiting room");
    }
    Ok(opens_at)
}

fn queue_of(show: &Show) -> String {
    format!("/api/v1/shows/{}/queue", show.id)
}

/// Waits for the opening and computes everyone's position from the published key. Sorts the people by position.
fn assign_places(address: SocketAddr, show: &Show, people: &mut [Person], opens_at: Instant) -> Result<Findings> {
    std::thread::sleep(opens_at.saturating_duration_since(Instant::now()));
    let began = Instant::now();
    let (key, drawn) = loop {
        let (_, body) = http::get(address, &queue_of(show))?;
        if let (Some(key), Some(drawn)) = (text_after(&body, "key"), number_after(&body, "people")) {
            break (key.to_owned(), drawn);
        }
        ensure!(began.elapsed() < ROOM_TIMEOUT, "the room does not open: {}", String::from_utf8_lossy(&body));
        std::thread::sleep(POLL_INTERVAL);
    };
    let bytes = (0..key.len() / 2).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16));
    let key = bytes.collect::<Result<Vec<u8>, _>>().context("the key is not hex")?;
    let mut found = Findings::default();
    for person in people.iter_mut().filter(|person| person.number < drawn) {
        person.place = place_of(&key, drawn, person.number);
    }
    people.sort_by_key(|person| person.place);
    for pair in people.windows(2).filter(|pair| pair[0].place == pair[1].place) {
        found.add(|| format!("tickets {} and {} have the same position", pair[0].number, pair[1].number));
    }
    Ok(found)
}

struct RunningSale<'a> {
    crowd: &'a Crowd<'a>,
    people: &'a [Person],
    world: &'a mut World,
    redis: &'a mut SentinelRedis,
    replicas: &'a mut Vec<BenchServer>,
    simulator: SocketAddr,
}

struct SaleFigures {
    failover: Duration,
    /// Memory of each replica, bytes, after the last failure was injected.
    bytes: Vec<u64>,
    redis_bytes: u64,
}

impl SaleFigures {
    /// Returns the maximum growth of a replica, bytes.
    fn growth(&self, replicas: &[BenchServer]) -> Result<f64> {
        let mut most = 0.0_f64;
        for (before, replica) in self.bytes.iter().zip(replicas) {
            most = most.max(replica.process.memory()? as f64 - *before as f64);
        }
        Ok(most)
    }
}

impl RunningSale<'_> {
    fn run(mut self, show: &Show, options: &OnSaleOptions) -> Result<SaleFigures> {
        let is_over = AtomicBool::new(false);
        let (crowd, people) = (self.crowd, self.people);
        let monitor = CallMonitor {
            crowd,
            people: people.len() as u64,
            per_second: options.per_second,
            room: room_key(self.world, show)?,
            urls: [self.redis.master_url(), self.redis.replica_url()],
            is_over: &is_over,
        };
        std::thread::scope(|threads| {
            threads.spawn(|| monitor.run());
            for number in 0..QUEUE_JUMPERS {
                let is_over = &is_over;
                threads.spawn(move || jump_queue(crowd, people, number, is_over));
            }
            let buying = threads.spawn(|| crowd.buy(people, options.workers));
            let figures = self.inject_failures();
            crowd.end();
            let _ = buying.join();
            is_over.store(true, Ordering::Relaxed);
            figures
        })
    }

    /// Injects the failures in order: restarts and the failover.
    fn inject_failures(&mut self) -> Result<SaleFigures> {
        self.wait_for(RESTART_AT)?;
        for number in 1..=self.replicas.len() {
            let address = self.replicas[0].address;
            // A graceful stop, as operators do it; the new process goes to the end of the list.
            drop(self.replicas.remove(0));
            self.replicas.push(replica(self.world, number, address, self.simulator, &self.redis.url())?);
        }
        eprintln!("        every replica was restarted; {:.0} % are sold", self.crowd.progress() * 100.0);
        self.wait_for(FAIL_OVER_AT)?;
        let failover = self.redis.fail_over()?;
        self.world.store = self.world.store.at(&self.redis.replica_url())?;
        eprintln!("        Redis' replica took over within {:.1} s", failover.as_secs_f64());
        self.wait_for(MEASURE_AT)?;
        let bytes = self.replicas.iter().map(|replica| replica.process.memory()).collect::<Result<Vec<u64>>>()?;
        let redis_bytes = self.redis.memory()?;
        self.wait_for(1.0)?;
        Ok(SaleFigures { failover, bytes, redis_bytes })
    }

    fn wait_for(&self, share: f64) -> Result<()> {
        let began = Instant::now();
        while self.crowd.progress() < share {
            if self.crowd.is_over() || began.elapsed() > SALE_TIMEOUT {
                let sold = self.crowd.progress() * 100.0;
                let found = self.crowd.findings();
                bail!("only {sold:.1} % are sold after {} s; {:?}", began.elapsed().as_secs(), found.first());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Tries again and again to enter as someone from the end of the line.
fn jump_queue(crowd: &Crowd<'_>, people: &[Person], number: usize, is_over: &AtomicBool) {
    let (mut client, mut random) = (CrowdClient::new(crowd.addresses, number), Random::fresh());
    let last = &people[people.len() - people.len() / QUEUE_JUMPER_SHARE..];
    while !is_over.load(Ordering::Relaxed) && !last.is_empty() {
        let person = &last[random.below(last.len() as u64) as usize];
        if crowd.called.load(Ordering::Relaxed) < person.place
            && let Err(error) = crowd.jump_queue(&mut client, person)
        {
            crowd.add_violation(|| format!("a queue jumper got no answer: {error:#}"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

//! `on-sale`: the concert. A crowd comes through the waiting room of a show on two replicas, and while it buys every
//! replica is restarted, one after the other, and Redis' master dies.
//!
//! What must hold: every seat is sold and none twice; nobody is let in before their place was called, and places are
//! called in order and no faster than was said; memory stays what it was; whoever is refused is told why and, if it is
//! for too much, when to come back.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::Run;
use crate::checker::{self, BOOKED, Findings};
use crate::http::{self, number_after, text_after};
use crate::random::Random;
use crate::report::{Bound, Report, Row};
use crate::waiting_room::place_of;
use crate::world::{Places, Server, Show, World, free_port};

mod client;
mod crowd;
mod requests;
mod watch;
mod watched_redis;

use client::Client;
use crowd::{Crowd, Person};
use watch::{Watch, room_of};
use watched_redis::WatchedRedis;

/// Replicas.
const REPLICAS: usize = 2;
/// The sale may take this long from its opening.
const SALE_WITHIN: Duration = Duration::from_secs(900);
/// Marks on the map and mails may take this long after it.
const QUIET_WITHIN: Duration = Duration::from_secs(300);
/// How often the door's counter is read.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The share of the seats that are sold when the replicas are restarted, one after the other…
const RESTART_AT: f64 = 0.2;
/// …when Redis' master dies…
const FAIL_OVER_AT: f64 = 0.5;
/// …and when memory is read, to be compared with the end.
const MEASURE_AT: f64 = 0.6;
/// Memory a replica may grow by from there to the end: caches fill, and nothing may pile up.
const MOST_GROWTH_BYTES: f64 = 64.0 * 1_048_576.0;
/// People who try to come in before their turn, again and again.
const PUSHERS: usize = 2;
/// The last of the line, from whom those are.
const PUSHING_SHARE: usize = 10;
/// Until the room is known everywhere.
const KNOWN_WITHIN: Duration = Duration::from_secs(20);

/// What `on-sale` takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seats; a multiple of 100.
    #[arg(long, default_value_t = 50_000)]
    seats: u32,
    /// People at the door.
    #[arg(long, default_value_t = 20_000)]
    people: usize,
    /// Seats each wants, 1 to 10.
    #[arg(long, default_value_t = 10)]
    each: u32,
    /// People let in a second.
    #[arg(long, default_value_t = 100)]
    per_second: u32,
    /// Seconds until the room opens. Whoever joins later stands behind those who are drawn.
    #[arg(long, default_value_t = 30)]
    opens_in: u64,
    /// People who do something at a time.
    #[arg(long, default_value_t = 64)]
    side_by_side: usize,
}

/// Runs it.
pub fn run(places: &Places, run: &Run, mut options: Options, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.seats, options.people, options.opens_in) = (2_000, 1_000, 8);
        options.per_second = 20;
    }
    ensure!((1..=10).contains(&options.each), "one person may have 10 seats");
    let wanting = options.people as u64 * u64::from(options.each);
    ensure!(wanting >= u64::from(options.seats), "so few people cannot buy {} seats", options.seats);
    let mut redis = WatchedRedis::start(&places.logs)?;
    let places = Places { redis_url: redis.master_url(), ..places.clone() };
    let mut world = World::make(&places)?;
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
    let mut people = crowd.join(options.people, options.side_by_side);
    report.say(&format!("        {} people have joined", people.len()));
    let mut found = Findings::default();
    found.join(draw(&addresses, &show, &mut people, opened)?);
    let began = Instant::now();
    let sale = Sale { crowd: &crowd, people: &people, show, options: &options };
    let told = sale.hold(&mut world, &mut redis, &mut replicas, simulator, report)?;
    let took = began.elapsed();
    found.join(crowd.findings());
    found.join(compare(&mut world, &replicas, &show, &crowd)?);
    let growth = told.growth(&replicas)?;
    if growth > MOST_GROWTH_BYTES {
        found.add(|| format!("a replica grew by {growth} bytes"));
    }
    crowd.refused().iter().for_each(|line| report.say(&format!("        refused: {line}")));
    let row = Row::of("on-sale", "candidate").with("seats", options.seats).with("people", people.len());
    report.round(
        crowd
            .told(row)
            .figure("seconds", took.as_secs_f64())
            .figure("failover_s", told.failover.as_secs_f64())
            .figure("replica_growth_bytes", growth)
            .figure("redis_growth_bytes", redis.memory()? as f64 - told.redis_bytes as f64)
            .with("violations", found.count()),
    );
    report.findings(&found);
    report.say("");
    let (seats, sold) = (f64::from(options.seats), Some(crowd.bought().len() as f64));
    report.promise("seats sold", sold, Bound::AtLeast(seats));
    report.promise("seats sold", sold, Bound::AtMost(seats));
    let late = "bytes a replica grew by in the second part of the sale";
    report.promise(late, Some(growth), Bound::AtMost(MOST_GROWTH_BYTES));
    Ok(())
}

/// What everybody was told, against Postgres, Redis and the map of every replica, once all is quiet.
fn compare(world: &mut World, replicas: &[Server], show: &Show, crowd: &Crowd<'_>) -> Result<Findings> {
    let mut found = wait_until_quiet(world, replicas, show)?;
    let stored = world.store.stored(show)?;
    found.join(checker::sale(&crowd.bought(), &world.ledger(show)?, &stored.map));
    for (number, replica) in (1..).zip(replicas) {
        found.join(checker::view(&format!("replica {number}"), &states(replica, show)?, &stored.map));
    }
    Ok(found)
}

fn replica(world: &World, number: usize, address: SocketAddr, simulator: SocketAddr, redis: &str) -> Result<Server> {
    world.server_at(address, &format!("rowlock-{number}"), Some(simulator), &[("REDIS_URL", redis)])
}

/// Switches the room on and waits until every replica knows it. When it opens.
fn open_room(world: &World, show: &Show, addresses: &[SocketAddr], options: &Options) -> Result<Instant> {
    let opens_in = Duration::from_secs(options.opens_in);
    // As RFC 3339, by Postgres: no calendar of our own.
    let words: String = world.runtime.block_on(
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
        &words,
        "--per-second",
        &options.per_second.to_string(),
        "--reason",
        "On sale.",
    ])?;
    let began = Instant::now();
    for address in addresses {
        while http::get(*address, &queue_of(show))?.0 != 200 {
            ensure!(began.elapsed() < KNOWN_WITHIN, "{address} does not hear of the waiting room");
            std::thread::sleep(LOOK_EVERY);
        }
    }
    Ok(opens_at)
}

fn queue_of(show: &Show) -> String {
    format!("/api/v1/shows/{}/queue", show.id)
}

/// Waits for the opening, and gives everybody the place that follows from what is published then. People are in the
/// order of their places afterwards.
fn draw(addresses: &[SocketAddr], show: &Show, people: &mut [Person], opens_at: Instant) -> Result<Findings> {
    std::thread::sleep(opens_at.saturating_duration_since(Instant::now()));
    let began = Instant::now();
    let (key, drawn) = loop {
        let (_, body) = http::get(addresses[0], &queue_of(show))?;
        if let (Some(key), Some(drawn)) = (text_after(&body, "key"), number_after(&body, "people")) {
            break (key.to_owned(), drawn);
        }
        ensure!(began.elapsed() < KNOWN_WITHIN, "the room does not open: {}", String::from_utf8_lossy(&body));
        std::thread::sleep(LOOK_EVERY);
    };
    let bytes = (0..key.len() / 2).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16));
    let key = bytes.collect::<Result<Vec<u8>, _>>().context("the key is no hex")?;
    let mut found = Findings::default();
    for person in people.iter_mut().filter(|person| person.number < drawn) {
        person.place = place_of(&key, drawn, person.number);
    }
    people.sort_by_key(|person| person.place);
    for pair in people.windows(2).filter(|pair| pair[0].place == pair[1].place) {
        found.add(|| format!("tickets {} and {} have one place", pair[0].number, pair[1].number));
    }
    Ok(found)
}

/// The sale itself.
struct Sale<'a> {
    crowd: &'a Crowd<'a>,
    people: &'a [Person],
    show: Show,
    options: &'a Options,
}

/// What was seen meanwhile.
struct Meanwhile {
    failover: Duration,
    /// Memory of each replica, bytes, when there was nothing left to be restarted.
    bytes: Vec<u64>,
    redis_bytes: u64,
}

impl Meanwhile {
    /// The most a replica grew by, bytes.
    fn growth(&self, replicas: &[Server]) -> Result<f64> {
        let mut most = 0.0_f64;
        for (before, replica) in self.bytes.iter().zip(replicas) {
            most = most.max(replica.process.memory()? as f64 - *before as f64);
        }
        Ok(most)
    }
}

impl Sale<'_> {
    fn hold(
        &self,
        world: &mut World,
        redis: &mut WatchedRedis,
        replicas: &mut Vec<Server>,
        simulator: SocketAddr,
        report: &Report,
    ) -> Result<Meanwhile> {
        let is_over = AtomicBool::new(false);
        let room = room_of(world, &self.show)?;
        let watch = Watch {
            crowd: self.crowd,
            people: self.people.len() as u64,
            per_second: self.options.per_second,
            room,
            urls: [redis.master_url(), redis.replica_url()],
            is_over: &is_over,
        };
        std::thread::scope(|threads| {
            threads.spawn(|| watch.called());
            for pusher in 0..PUSHERS {
                let is_over = &is_over;
                threads.spawn(move || self.push(pusher, is_over));
            }
            let buying = threads.spawn(|| self.crowd.buy(self.people, self.options.side_by_side));
            let told = self.disturb(world, redis, replicas, simulator, report);
            self.crowd.end();
            let _ = buying.join();
            is_over.store(true, Ordering::Relaxed);
            told
        })
    }

    /// What goes wrong on the way, in its order.
    fn disturb(
        &self,
        world: &mut World,
        redis: &mut WatchedRedis,
        replicas: &mut Vec<Server>,
        simulator: SocketAddr,
        report: &Report,
    ) -> Result<Meanwhile> {
        self.wait_for(RESTART_AT)?;
        for number in 1..=replicas.len() {
            let address = replicas[0].address;
            // Stopped as operators stop it; the next one takes its place in the list behind the others.
            drop(replicas.remove(0));
            replicas.push(replica(world, number, address, simulator, &redis.url())?);
        }
        report.say(&format!("        every replica was restarted; {:.0} % are sold", self.crowd.progress() * 100.0));
        self.wait_for(FAIL_OVER_AT)?;
        let failover = redis.fail_over()?;
        world.store = world.store.at(&redis.replica_url())?;
        report.say(&format!("        Redis' replica took over within {:.1} s", failover.as_secs_f64()));
        self.wait_for(MEASURE_AT)?;
        let bytes = replicas.iter().map(|replica| replica.process.memory()).collect::<Result<Vec<u64>>>()?;
        let redis_bytes = redis.memory()?;
        self.wait_for(1.0)?;
        Ok(Meanwhile { failover, bytes, redis_bytes })
    }

    fn wait_for(&self, share: f64) -> Result<()> {
        let began = Instant::now();
        while self.crowd.progress() < share {
            if self.crowd.is_over() || began.elapsed() > SALE_WITHIN {
                let sold = self.crowd.progress() * 100.0;
                let found = self.crowd.findings();
                bail!("only {sold:.1} % are sold after {} s; {:?}", began.elapsed().as_secs(), found.first());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Some of the last in line do not wait.
    fn push(&self, pusher: usize, is_over: &AtomicBool) {
        let addresses = self.crowd.addresses();
        let (mut client, mut random) = (Client::new(addresses, pusher), Random::fresh());
        let last = &self.people[self.people.len() - self.people.len() / PUSHING_SHARE..];
        while !is_over.load(Ordering::Relaxed) && !last.is_empty() {
            let person = &last[random.below(last.len() as u64) as usize];
            if self.crowd.called.load(Ordering::Relaxed) < person.place
                && let Err(error) = self.crowd.pushes(&mut client, person)
            {
                self.crowd.complain(|| format!("somebody who pushed got no answer: {error:#}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Waits until every replica shows every seat as sold and no effect is left to be done.
fn wait_until_quiet(world: &World, replicas: &[Server], show: &Show) -> Result<Findings> {
    let began = Instant::now();
    let mut found = Findings::default();
    loop {
        let mut quiet = world.open_effects()? == 0;
        for replica in replicas {
            quiet &= states(replica, show)?.iter().all(|state| *state == BOOKED);
        }
        if quiet {
            return Ok(found);
        }
        if began.elapsed() > QUIET_WITHIN {
            let open = world.open_effects()?;
            found.add(|| format!("the map is not sold out long after the sale, or {open} effects are open"));
            return Ok(found);
        }
        std::thread::sleep(LOOK_EVERY * 10);
    }
}

fn states(server: &Server, show: &Show) -> Result<Vec<u8>> {
    let (_, body) = http::get(server.address, &show.seats_path())?;
    Ok(text_after(&body, "states").unwrap_or_default().bytes().map(|digit| digit.wrapping_sub(b'0')).collect())
}

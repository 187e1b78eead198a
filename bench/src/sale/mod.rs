//! `sale`: from a tap to a ticket, as fast as the machine goes. Every buyer holds four seats, checks out and
//! pays with a card that is approved at once, as the page of a show does: in one request. A sale counts when the buyer
//! was told CONFIRMED.
//!
//! The server that commits many sales in a transaction takes turns with the same server that commits each by
//! itself, and with itself where buyers check out first and pay in a request of its own. Money is taken by the payment simulator, over HTTP and with its signed webhooks, as in the demo:
//! its CPU time is told beside the others'.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::Run;
use crate::checker::{self, Findings};
use crate::cpu::Cpu;
use crate::http::{self, Limits};
use crate::report::{Bound, Report, Row};
use crate::world::{Places, Process, Server, Show, World};

mod buyers;

use buyers::{Buyers, SEATS_EACH};

/// From the last sale begun to its answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Effects of the sales (marks on the map, mails, webhooks heard) may take this long after them.
const QUIET_WITHIN: Duration = Duration::from_secs(120);
/// How often it is looked whether they are done.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Sales a second that are promised, and those that are aimed at.
const PROMISED_PER_S: f64 = 2_000.0;
const GOAL_PER_S: f64 = 4_000.0;
/// Times the rate of the baseline.
const PROMISED_RATIO: f64 = 4.0;
/// CPU of server, Redis and Postgres a sale, microseconds: a fifth of what a competent Node build took.
const PROMISED_CPU_US: f64 = 320.0;

/// One way to sell.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    /// Setting of the server.
    commits: &'static str,
    /// Whether buyers check out and pay in one request.
    at_once: bool,
}

const CANDIDATE: &str = "candidate";
const BASELINE: &str = "interactive";
const VARIANTS: [Variant; 3] = [
    Variant { name: CANDIDATE, commits: "batched", at_once: true },
    Variant { name: "two_requests", commits: "batched", at_once: false },
    Variant { name: BASELINE, commits: "interactive", at_once: true },
];

/// What `sale` takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How long buyers come, seconds; whoever has begun then may finish.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Buyers at the same moment, each on a keep-alive connection.
    #[arg(long, default_value_t = 1_024)]
    buyers: usize,
    /// Shows on sale, filled one seat after the other, in turns.
    #[arg(long, default_value_t = 4)]
    shows: usize,
    /// Seats of a show.
    #[arg(long, default_value_t = 50_000)]
    seats: u32,
    /// One variant alone.
    #[arg(long)]
    only: Option<String>,
}

/// Runs it.
pub fn run(places: &Places, run: &Run, mut options: Options, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.seconds, options.buyers, options.shows, options.seats) = (1.0, 32, 2, 10_000);
    }
    let mut world = World::make(places)?;
    for setting in ["synchronous_commit", "fsync", "full_page_writes"] {
        let value = world.postgres_setting(setting)?;
        ensure!(value == "on", "Postgres runs with {setting} = {value}: its sales would not be durable");
    }
    let (address, simulator) = world.simulator()?;
    for round in 1..=run.rounds {
        // Who goes first has the emptier tables: they take turns at that, too.
        let first = (round as usize - 1) % VARIANTS.len();
        for variant in (0..VARIANTS.len()).map(|place| VARIANTS[(first + place) % VARIANTS.len()]) {
            if options.only.as_ref().is_some_and(|only| only != variant.name) {
                continue;
            }
            let settings = [("COMMITS", variant.commits)];
            let server = world.server_with(&format!("rowlock-{}", variant.name), Some(address), &settings)?;
            one_round(&mut world, &server, &simulator, &options, (variant, round), report)?;
        }
    }
    report.summarise();
    report.say("");
    promises(report);
    Ok(())
}

fn promises(report: &mut Report) {
    let of = |variant: &str, key: &str, report: &Report| report.median(&[("variant", json!(variant))], key);
    let rate = of(CANDIDATE, "bookings_per_s", report);
    report.promise("bookings/s", rate, Bound::AtLeast(PROMISED_PER_S));
    report.promise("bookings/s, the goal", rate, Bound::AtLeast(GOAL_PER_S));
    let ratio = rate.zip(of(BASELINE, "bookings_per_s", report)).map(|(ours, base)| ours / base.max(f64::MIN_POSITIVE));
    report.promise("bookings/s against one by one", ratio, Bound::AtLeast(PROMISED_RATIO));
    let cpu = of(CANDIDATE, "cpu_us_per_sale", report);
    report.promise("CPU of server, Redis and Postgres a sale, µs", cpu, Bound::AtMost(PROMISED_CPU_US));
}

/// CPU times of server, Redis, Postgres, simulator and generator.
fn readings(world: &World, server: &Server, simulator: &Process) -> Result<[Cpu; 5]> {
    let generator = Cpu::of_threads(std::process::id())?;
    Ok([server.process.cpu()?, world.store.cpu()?, world.postgres_cpu()?, simulator.cpu()?, generator])
}

fn one_round(
    world: &mut World,
    server: &Server,
    simulator: &Process,
    options: &Options,
    (variant, round): (Variant, u32),
    report: &mut Report,
) -> Result<()> {
    let shows = world.shows(options.seats, options.shows)?;
    // On sale day somebody has looked before the rush: the maps are there.
    for show in &shows {
        http::get(server.address, &show.seats_path())?;
    }
    let come_for = Duration::from_secs_f64(options.seconds);
    let mut buyers = Buyers::new(&shows, server.address, come_for, variant.at_once);
    let patience = Duration::from_secs_f64(options.seconds) + PATIENCE;
    let before = readings(world, server, simulator)?;
    http::run(&[server.address], &Limits { connections: options.buyers, patience }, &mut buyers)?;
    let last_sale = Instant::now();
    let mut found = wait_until_quiet(world)?;
    let drained = last_sale.elapsed();
    let after = readings(world, server, simulator)?;
    found.join(check(world, server, &shows, &buyers)?);

    let sales = buyers.sales() as f64;
    let each: Vec<f64> =
        before.iter().zip(&after).map(|(before, after)| after.micros_since(before) / sales.max(1.0)).collect();
    let mut row = Row::of("sale", variant.name)
        .with("round", round)
        .with("sales", buyers.sales())
        .figure("bookings_per_s", sales / buyers.selling_seconds().max(1e-3))
        .latencies(&buyers.purchases)
        .figure("hold_p99_ms", buyers.holding.quantile_ms(0.99));
    if !variant.at_once {
        row = row.figure("book_p99_ms", buyers.booking.quantile_ms(0.99));
    }
    row = row
        .figure("pay_p99_ms", buyers.paying.quantile_ms(0.99))
        .figure("effects_done_after_s", drained.as_secs_f64())
        .figure("cpu_us_per_sale", each[..3].iter().sum());
    for (name, micros) in ["server", "redis", "postgres", "simulator", "generator"].iter().zip(&each) {
        row = row.figure(&format!("{name}_cpu_us_per_op"), *micros);
    }
    report.round(row.with("errors", buyers.errors()).with("violations", found.count()));
    buyers.errors_told().iter().for_each(|told| report.say(&format!("        {told}")));
    report.findings(&found);
    shows.iter().try_for_each(|show| world.store.forget(show))
}

/// Compares what buyers were told with claims, tickets and payments, and with the map in Redis and at the server.
fn check(world: &mut World, server: &Server, shows: &[Show], buyers: &Buyers) -> Result<Findings> {
    let mut found = Findings::default();
    for (place, show) in shows.iter().enumerate() {
        let stored = world.store.stored(show)?;
        found.join(checker::sale(&buyers.bought(place), &world.ledger(show)?, &stored.map));
        let (_, body) = http::get(server.address, &show.seats_path())?;
        let states = http::text_after(&body, "states").unwrap_or_default();
        let seen: Vec<u8> = states.bytes().map(|digit| digit.wrapping_sub(b'0')).collect();
        found.join(checker::view("the server", &seen, &stored.map));
        if !stored.holds.is_empty() {
            let left = stored.holds.len();
            found.add(|| format!("{left} holds are left, and everybody has bought"));
        }
    }
    if buyers.unfinished() > 0 {
        found.add(|| format!("{} buyers of {SEATS_EACH} seats do not know how it ended", buyers.unfinished()));
    }
    Ok(found)
}

/// Waits until every effect of the sales is done and the gateway has been heard about each: the CPU that takes is theirs.
fn wait_until_quiet(world: &World) -> Result<Findings> {
    let began = Instant::now();
    let mut found = Findings::default();
    loop {
        let mut open = world.open_effects()?;
        if open == 0 {
            open = world.unheard_charges()?;
        }
        if open == 0 {
            return Ok(found);
        }
        if began.elapsed() > QUIET_WITHIN {
            found.add(|| format!("{open} effects are open {} s after the last sale", QUIET_WITHIN.as_secs()));
            return Ok(found);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

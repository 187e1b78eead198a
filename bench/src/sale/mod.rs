//! `sale`: throughput of complete purchases. Every buyer holds four seats, then checks out and pays in one request, as
//! the page of a show does, with a card that is approved at once. A sale counts when the buyer got CONFIRMED.
//!
//! A second variant checks out and pays in two requests. The payment simulator takes the money over HTTP with signed
//! webhooks, as in the demo; its CPU time is reported separately.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::RunOptions;
use crate::checker::{self, Findings};
use crate::cpu::Cpu;
use crate::http::{self, LoadLimits};
use crate::report::{Bound, Report, ReportRow};
use crate::world::{BenchServer, Process, RunPaths, Show, World};

mod buyers;

use buyers::{Buyers, SEATS_EACH};

/// Timeout of the last sale.
const LAST_SALE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout after the sales for their effects: marks on the map, mails and webhooks.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Promised sales per second.
const PROMISED_PER_S: f64 = 2_000.0;
const GOAL_PER_S: f64 = 4_000.0;
/// Promised CPU time of server, Redis and Postgres per sale, microseconds: a fifth of a competent Node implementation's.
const PROMISED_CPU_US: f64 = 320.0;

/// A variant of the buyers.
#[derive(Clone, Copy)]
struct SaleVariant {
    name: &'static str,
    /// Set when buyers check out and pay in one request.
    in_one_request: bool,
}

const CANDIDATE: &str = "candidate";
const VARIANTS: [SaleVariant; 2] = [
    SaleVariant { name: CANDIDATE, in_one_request: true },
    SaleVariant { name: "two_requests", in_one_request: false },
];

/// Options of `sale`.
#[derive(Clone, Debug, clap::Args)]
pub struct SaleOptions {
    /// Seconds in which new buyers start; started ones may finish.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Concurrent buyers, each on a keep-alive connection.
    #[arg(long, default_value_t = 1_024)]
    buyers: usize,
    /// Number of shows, filled in turns, one seat after the other.
    #[arg(long, default_value_t = 4)]
    shows: usize,
    /// Seats of a show.
    #[arg(long, default_value_t = 50_000)]
    seats: u32,
    /// Run this variant only.
    #[arg(long)]
    only: Option<String>,
}

/// Runs it.
pub fn run(paths: &RunPaths, run: &RunOptions, mut options: SaleOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.seconds, options.buyers, options.shows, options.seats) = (1.0, 32, 2, 10_000);
    }
    let mut world = World::create(paths)?;
    for setting in ["synchronous_commit", "fsync", "full_page_writes"] {
        let value = world.postgres_setting(setting)?;
        ensure!(value == "on", "Postgres runs with {setting} = {value}: its sales would not be durable");
    }
    let (address, simulator) = world.simulator()?;
    for round in 1..=run.rounds {
        // The first variant of a round has the emptiest tables, so the order rotates.
        let first = (round as usize - 1) % VARIANTS.len();
        for variant in (0..VARIANTS.len()).map(|place| VARIANTS[(first + place) % VARIANTS.len()]) {
            if options.only.as_ref().is_some_and(|only| only != variant.name) {
                continue;
            }
            let server = world.server(&format!("rowlock-{}", variant.name), Some(address))?;
            one_round(&mut world, &server, &simulator, &options, (variant, round), report)?;
        }
    }
    report.summarise();
    report.print_line("");
    promises(report);
    Ok(())
}

fn promises(report: &mut Report) {
    let of = |variant: &str, key: &str, report: &Report| report.median(&[("variant", json!(variant))], key);
    let rate = of(CANDIDATE, "bookings_per_s", report);
    report.promise("bookings/s", rate, Bound::AtLeast(PROMISED_PER_S));
    report.promise("bookings/s, the goal", rate, Bound::AtLeast(GOAL_PER_S));
    let cpu = of(CANDIDATE, "cpu_us_per_sale", report);
    report.promise("CPU of server, Redis and Postgres a sale, µs", cpu, Bound::AtMost(PROMISED_CPU_US));
}

/// Reads the CPU times of server, Redis, Postgres, simulator and generator.
fn readings(world: &World, server: &BenchServer, simulator: &Process) -> Result<[Cpu; 5]> {
    let generator = Cpu::of_threads(std::process::id())?;
    Ok([server.process.cpu()?, world.store.cpu()?, world.postgres_cpu()?, simulator.cpu()?, generator])
}

fn one_round(
    world: &mut World,
    server: &BenchServer,
    simulator: &Process,
    options: &SaleOptions,
    (variant, round): (SaleVariant, u32),
    report: &mut Report,
) -> Result<()> {
    let shows = world.shows(options.seats, options.shows)?;
    // The first request builds the map of a show; on a sale day that happens before the rush.
    for show in &shows {
        http::get(server.address, &show.seats_path())?;
    }
    let arrive_for = Duration::from_secs_f64(options.seconds);
    let mut buyers = Buyers::new(&shows, server.address, arrive_for, variant.in_one_request);
    let timeout = Duration::from_secs_f64(options.seconds) + LAST_SALE_TIMEOUT;
    let before = readings(world, server, simulator)?;
    http::run(&[server.address], &LoadLimits { connections: options.buyers, timeout }, &mut buyers)?;
    let last_sale = Instant::now();
    let mut found = wait_until_settled(world)?;
    let drained = last_sale.elapsed();
    let after = readings(world, server, simulator)?;
    found.join(check(world, server, &shows, &buyers)?);

    let sales = buyers.sales() as f64;
    let each: Vec<f64> =
        before.iter().zip(&after).map(|(before, after)| after.micros_since(before) / sales.max(1.0)).collect();
    let mut row = ReportRow::of("sale", variant.name)
        .with("round", round)
        .with("sales", buyers.sales())
        .figure("bookings_per_s", sales / buyers.selling_seconds().max(1e-3))
        .latencies(&buyers.purchases)
        .figure("hold_p99_ms", buyers.holding.quantile_ms(0.99));
    if !variant.in_one_request {
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
    buyers.error_lines().iter().for_each(|line| report.print_line(&format!("        {line}")));
    report.findings(&found);
    shows.iter().try_for_each(|show| world.store.delete_show(show))
}

/// Compares the confirmed purchases with claims, tickets and payments, and with the maps in Redis and at the server.
fn check(world: &mut World, server: &BenchServer, shows: &[Show], buyers: &Buyers) -> Result<Findings> {
    let mut found = Findings::default();
    for (place, show) in shows.iter().enumerate() {
        let stored = world.store.stored(show)?;
        found.join(checker::sale(&buyers.bought(place), &world.ledger(show)?, &stored.map));
        found.join(checker::view("the server", &server.seat_states(show)?, &stored.map));
        if !stored.holds.is_empty() {
            let left = stored.holds.len();
            found.add(|| format!("{left} holds are left after all purchases"));
        }
    }
    if buyers.unfinished() > 0 {
        found.add(|| format!("{} buyers of {SEATS_EACH} seats have no final answer", buyers.unfinished()));
    }
    Ok(found)
}

/// Waits until every effect of the sales is done and every webhook has arrived: their CPU time belongs to the sales.
fn wait_until_settled(world: &World) -> Result<Findings> {
    let began = Instant::now();
    let mut found = Findings::default();
    loop {
        let mut open = world.pending_effects()?;
        if open == 0 {
            open = world.charges_without_webhook()?;
        }
        if open == 0 {
            return Ok(found);
        }
        if began.elapsed() > SETTLE_TIMEOUT {
            found.add(|| format!("{open} effects are open {} s after the last sale", SETTLE_TIMEOUT.as_secs()));
            return Ok(found);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

//! `storm`: 10,000 visitors arrive within a second at two servers that share the stores. Every seat must
//! be sold exactly once.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::RunOptions;
use crate::arrivals::{Spacing, schedule};
use crate::checker;
use crate::http::{self, LoadLimits};
use crate::report::{Bound, Report, ReportRow};
use crate::world::{BenchServer, RunPaths, World};

mod visitors;

use visitors::Visitors;

/// Timeout of a round.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout after the sale for its effects: marks on the map and mails.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of servers that share the stores.
const SERVERS: usize = 2;

/// Options of `storm`.
#[derive(Clone, Debug, clap::Args)]
pub struct StormOptions {
    /// Visitors, each of whom wants one seat.
    #[arg(long, default_value_t = 10_000)]
    visitors: u32,
    /// Seats.
    #[arg(long, default_value_t = 300)]
    seats: u32,
    /// Rounds, each with a new show.
    #[arg(long, default_value_t = 50)]
    storms: u32,
    /// Seconds within which all visitors arrive.
    #[arg(long, default_value_t = 1.0)]
    arrive_within: f64,
    /// Keep-alive connections to each server.
    #[arg(long, default_value_t = 250)]
    connections: usize,
}

/// Runs it.
pub fn run(paths: &RunPaths, run: &RunOptions, mut options: StormOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.visitors, options.storms) = (1_000, 1);
    }
    let mut world = World::create(paths)?;
    let (simulator, _payments) = world.simulator()?;
    let servers = [world.server("rowlock-1", Some(simulator))?, world.server("rowlock-2", Some(simulator))?];
    for round in 1..=options.storms {
        one_round(&mut world, &servers, &options, round, report)?;
    }
    report.summarise();
    report.print_line("");
    let sold = report.extremes(&[("variant", json!("candidate"))], "sold");
    for (name, sold) in [("fewest", sold.map(|(least, _)| least)), ("most", sold.map(|(_, most)| most))] {
        let seats = f64::from(options.seats);
        report.promise(&format!("{name} seats sold in a round"), sold, Bound::AtLeast(seats));
        report.promise(&format!("{name} seats sold in a round"), sold, Bound::AtMost(seats));
    }
    Ok(())
}

fn one_round(
    world: &mut World,
    servers: &[BenchServer; SERVERS],
    options: &StormOptions,
    round: u32,
    report: &mut Report,
) -> Result<()> {
    let show = world.shows(options.seats, 1)?[0];
    for server in servers {
        http::get(server.address, &show.seats_path())?;
    }
    let rate = f64::from(options.visitors) / options.arrive_within;
    // Longer than needed: the last arrivals of a random schedule may be late.
    let arrivals = schedule(Spacing::Poisson, rate, options.arrive_within * 1.5 + 1.0, &mut world.random);
    let arrivals = arrivals.into_iter().take(options.visitors as usize).collect();
    let addresses = servers.each_ref().map(|server| server.address);
    let mut visitors = Visitors::new(arrivals, &show, &addresses);
    let limits = LoadLimits { connections: options.connections, timeout: TIMEOUT };
    let cpu = |world: &World| -> Result<[crate::cpu::Cpu; 4]> {
        let [first, second] = servers.each_ref().map(|server| server.process.cpu());
        Ok([first?, second?, world.store.cpu()?, world.postgres_cpu()?])
    };
    let before = cpu(world)?;
    http::run(&addresses, &limits, &mut visitors)?;
    let [first, second, redis, postgres] = cpu(world)?;
    let bought = visitors.bought();
    let mut found = world.wait_until_sold_out(servers, &show, SETTLE_TIMEOUT)?;
    let stored = world.store.stored(&show)?;
    found.join(checker::sale(&bought, &world.ledger(&show)?, &stored.map));
    found.join(visitors.check_outcomes(options.visitors));
    for (number, server) in (1..).zip(servers) {
        found.join(checker::view(&format!("server {number}"), &server.seat_states(&show)?, &stored.map));
    }
    let each = |micros: f64| micros / f64::from(options.visitors);
    report.round(
        ReportRow::of("storm", "candidate")
            .with("round", round)
            .with("seats", options.seats)
            .with("visitors", options.visitors)
            .with("sold", bought.len())
            .latencies(&visitors.first_answers)
            .figure("purchase_p99_ms", visitors.purchases.quantile_ms(0.99))
            .figure("bookings_per_s", bought.len() as f64 / visitors.selling_seconds().max(1e-3))
            .figure("server_cpu_us_per_op", each(first.micros_since(&before[0]) + second.micros_since(&before[1])))
            .figure("redis_cpu_us_per_op", each(redis.micros_since(&before[2])))
            .figure("postgres_cpu_us_per_op", each(postgres.micros_since(&before[3])))
            .with("errors", visitors.errors())
            .with("violations", found.count()),
    );
    visitors.error_lines().iter().for_each(|line| report.print_line(&format!("        {line}")));
    report.findings(&found);
    world.store.delete_show(&show)
}

//! Attempts over HTTP: one visitor per attempt, on keep-alive connections, in an open loop.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;

use super::LocksOptions;
use super::attempt_load::{AttemptLoad, Expected};
use super::request::Template;
use crate::RunOptions;
use crate::arrivals::schedule;
use crate::checker::{self, Findings, Grant};
use crate::cpu::Cpu;
use crate::http::{self, LoadLimits};
use crate::report::{Report, ReportRow};
use crate::world::{BenchServer, Show, World};

/// Timeout of a phase until its last answer: this many times its length, plus `TIMEOUT`.
const TIMEOUT_FACTOR: f64 = 4.0;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Distance in seats between consecutive attempts: a prime, so that every seat is used.
const STRIDE: u64 = 7_919;

/// Runs all rounds of all rates.
pub fn run(world: &mut World, run: &RunOptions, options: &LocksOptions, report: &mut Report) -> Result<()> {
    report.print_line("  attempts over HTTP");
    let server = world.server("rowlock", None)?;
    for round in 1..=run.rounds {
        for rate in &options.rates {
            one_round(world, &server, options, *rate, round, report)?;
        }
    }
    Ok(())
}

fn one_round(
    world: &mut World,
    server: &BenchServer,
    options: &LocksOptions,
    rate: u32,
    round: u32,
    report: &mut Report,
) -> Result<()> {
    let free = schedule(options.arrivals, f64::from(rate), options.seconds, &mut world.random);
    let held = schedule(options.arrivals, f64::from(rate), options.seconds, &mut world.random);
    let shows = world.shows(options.seats, free.len().div_ceil(options.seats as usize))?;
    let templates: Vec<_> = shows.iter().map(|show| Template::hold(server.address, show.id)).collect();
    // The first request builds the map of a show; on a sale day that happens before the rush.
    for show in &shows {
        http::get(server.address, &show.seats_path())?;
    }
    let attempts = free.iter().zip(0_u64..).map(|(due, number)| {
        let (show, place) = (number / u64::from(options.seats), number % u64::from(options.seats));
        (show as usize, (place * STRIDE % u64::from(options.seats)) as u32, *due)
    });
    let mut granted = AttemptLoad::new(attempts.collect(), &templates, Expected::Granted);
    let granted_row = measure(world, server, options, &mut granted)?;

    let taken: Vec<(usize, u32)> = (0..)
        .zip(&granted.grants)
        .flat_map(|(show, grants)| grants.iter().map(move |grant| (show, grant.seat)))
        .collect();
    anyhow::ensure!(!taken.is_empty(), "no seat was granted at all: {:?}", granted.error_lines());
    let attempts = held.iter().map(|due| {
        let (show, seat) = taken[world.random.below(taken.len() as u64) as usize];
        (show, seat, *due)
    });
    let mut refused = AttemptLoad::new(attempts.collect(), &templates, Expected::Refused);
    let refused_row = measure(world, server, options, &mut refused)?;

    let mut found = Findings::default();
    for (place, show) in shows.iter().enumerate() {
        let grants: Vec<Grant> = granted.grants[place].iter().chain(&refused.grants[place]).copied().collect();
        let unanswered = granted.unanswered[place].union(&refused.unanswered[place]).copied().collect();
        found.join(check(world, server, show, &grants, &unanswered)?);
        world.store.delete_show(show)?;
    }
    report.findings(&found);
    for (phase, row, load) in [("granted", granted_row, &granted), ("refused", refused_row, &refused)] {
        let row = row.with("phase", phase).with("layer", "http").with("round", round).with("rate_per_s", rate);
        report.round(row.with("errors", load.error_count()).with("violations", found.count()));
        load.error_lines().iter().for_each(|line| report.print_line(&format!("        {phase}: {line}")));
    }
    report.print_line(&format!("        checked: {} violations", found.count()));
    Ok(())
}

fn measure(
    world: &World,
    server: &BenchServer,
    options: &LocksOptions,
    load: &mut AttemptLoad<'_>,
) -> Result<ReportRow> {
    let timeout = TIMEOUT + Duration::from_secs_f64(options.seconds * TIMEOUT_FACTOR);
    let limits = LoadLimits { connections: options.connections, timeout };
    let me = std::process::id();
    let readings = || -> Result<[Cpu; 4]> {
        Ok([server.process.cpu()?, world.store.cpu()?, world.postgres_cpu()?, Cpu::of_threads(me)?])
    };
    let before = readings()?;
    let began = std::time::Instant::now();
    http::run(&[server.address], &limits, load)?;
    let took = began.elapsed();
    let after = readings()?;
    let mut row = ReportRow::of("locks", "candidate")
        .with("attempts", load.attempts())
        .figure("done_per_s", load.attempts() as f64 / took.as_secs_f64())
        .latencies(&load.latencies)
        .figure("sent_late_p99_ms", load.delays.quantile_ms(0.99));
    let names = ["server", "redis", "postgres", "generator"];
    for ((name, before), after) in names.iter().zip(&before).zip(&after) {
        let micros = after.micros_since(before) / load.attempts() as f64;
        row = row.figure(&format!("{name}_cpu_us_per_op"), micros);
    }
    Ok(row)
}

/// Compares the clients' grants with Redis, the server's map and Postgres.
fn check(
    world: &mut World,
    server: &BenchServer,
    show: &Show,
    grants: &[Grant],
    unanswered: &BTreeSet<u32>,
) -> Result<Findings> {
    let stored = world.store.stored(show)?;
    let mut found = checker::holds(grants, unanswered, &stored);
    let (_, body) = http::get(server.address, &show.seats_path())?;
    let states = http::text_after(&body, "states").unwrap_or_default();
    let seen: Vec<u8> = states.bytes().map(|digit| digit - b'0').collect();
    found.join(checker::view("the server", &seen, &stored.map));
    let ledger = world.ledger(show)?;
    if !ledger.sold.is_empty() || !ledger.tickets.is_empty() || ledger.open_claims > 0 {
        found.add(|| {
            format!(
                "no attempt was paid, and Postgres has {} claims and {} tickets",
                ledger.sold.len(),
                ledger.tickets.len()
            )
        });
    }
    Ok(found)
}

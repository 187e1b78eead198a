//! Attempts over HTTP: one visitor per attempt, on keep-alive connections, in an open loop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use uuid::Uuid;

use super::LocksOptions;
use crate::RunOptions;
use crate::arrivals::schedule;
use crate::checker::{self, Findings, Grant};
use crate::cpu::Cpu;
use crate::histogram::Histogram;
use crate::http::{self, ErrorCounts, HttpAnswer, Load, LoadLimits, Next, id_of, number_after, text_after};
use crate::random::Random;
use crate::report::{Report, ReportRow};
use crate::world::{BenchServer, Show, World};

/// Timeout of a phase until its last answer: this many times its length, plus `TIMEOUT`.
const TIMEOUT_FACTOR: f64 = 4.0;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Distance in seats between consecutive attempts: a prime, so that every seat is used.
const STRIDE: u64 = 7_919;

pub fn run(world: &mut World, run: &RunOptions, options: &LocksOptions, report: &mut Report) -> Result<()> {
    eprintln!("  attempts over HTTP");
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
    anyhow::ensure!(!taken.is_empty(), "no seat was granted at all: {:?}", granted.errors.lines());
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
        report.round(row.with("errors", load.errors.count()).with("violations", found.count()));
        load.errors.lines().iter().take(MAX_ERROR_LINES).for_each(|line| eprintln!("        {phase}: {line}"));
    }
    eprintln!("        checked: {} violations", found.count());
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
    let attempts = load.attempts.len();
    Ok(ReportRow::of("locks", "candidate")
        .with("attempts", attempts)
        .figure("done_per_s", attempts as f64 / took.as_secs_f64())
        .latencies(&load.latencies)
        .figure("sent_late_p99_ms", load.delays.quantile_ms(0.99))
        .cpu_per_op(["server", "redis", "postgres", "generator"], &before, &after, attempts as f64))
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
    found.join(checker::view("the server", &server.seat_states(show)?, &stored.map));
    let ledger = world.ledger(show)?;
    if !ledger.sold.is_empty() || !ledger.tickets.is_empty() || ledger.open_claims > 0 {
        let (claims, tickets) = (ledger.sold.len(), ledger.tickets.len());
        found.add(|| format!("no attempt was paid, and Postgres has {claims} claims and {tickets} tickets"));
    }
    Ok(found)
}

/// The expected answer to every attempt of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// 201: the seat is granted.
    Granted,
    /// 423: another visitor holds the seat.
    Refused,
}

const MAX_ERROR_LINES: usize = 5;

/// A load of many visitors with one attempt at a seat each, sent in order when they fall due.
struct AttemptLoad<'a> {
    /// Show (by index), seat, and instant to send at, nanoseconds from the start.
    attempts: Vec<(usize, u32, u64)>,
    templates: &'a [Template],
    expected: Expected,
    random: Random,
    sent: usize,
    /// From the intended instant to the last byte of the answer.
    latencies: Histogram,
    /// From the intended instant to the sending. A delay means that the generator or all connections were busy.
    delays: Histogram,
    /// Grants by show.
    grants: Vec<Vec<Grant>>,
    /// Seats of attempts that got no answer, by show.
    unanswered: Vec<BTreeSet<u32>>,
    errors: ErrorCounts,
}

impl<'a> AttemptLoad<'a> {
    fn new(attempts: Vec<(usize, u32, u64)>, templates: &'a [Template], expected: Expected) -> Self {
        Self {
            attempts,
            templates,
            expected,
            random: Random::fresh(),
            sent: 0,
            latencies: Histogram::default(),
            delays: Histogram::default(),
            grants: vec![Vec::new(); templates.len()],
            unanswered: vec![BTreeSet::new(); templates.len()],
            errors: ErrorCounts::default(),
        }
    }
}

impl Load for AttemptLoad<'_> {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let Some((show, seat, due)) = self.attempts.get(self.sent).copied() else { return Next::Done };
        if due > now {
            return Next::At(due);
        }
        self.templates[show].fill(&mut self.random, seat, out);
        self.delays.record(now - due);
        self.sent += 1;
        Next::Send((self.sent - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let (show, seat, due) = self.attempts[ticket as usize];
        self.latencies.record(now.saturating_sub(due));
        let right = match answer.status {
            201 => {
                // The checker needs every grant, unexpected ones too.
                match id_of(answer.body) {
                    Some(hold) => self.grants[show].push(Grant { seat, hold }),
                    None => self.errors.add("201 without a hold".into()),
                }
                self.expected == Expected::Granted
            }
            423 => self.expected == Expected::Refused && number_after(answer.body, "seat") == Some(u64::from(seat)),
            _ => false,
        };
        if !right {
            let code = text_after(answer.body, "code").unwrap_or("no code");
            self.errors.add(format!("{} {code}", answer.status));
            if answer.status >= 500 {
                self.unanswered[show].insert(seat);
            }
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        let (show, seat, due) = self.attempts[ticket as usize];
        self.latencies.record(now.saturating_sub(due));
        self.unanswered[show].insert(seat);
        self.errors.add(format!("no answer: {why}"));
    }
}

/// Width of a seat number. JSON allows the leading spaces of a shorter one.
const SEAT_WIDTH: usize = 6;
const HEX_WIDTH: usize = 32;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes of an attempt with blanks for visitor, key and seat, and the offsets of the blanks.
struct Template {
    bytes: Vec<u8>,
    visitor: usize,
    key: usize,
    seat: usize,
}

impl Template {
    /// Creates the template of `POST /shows/{show}/holds` for one seat, with visitor cookie and idempotency key.
    fn hold(server: SocketAddr, show: Uuid) -> Self {
        let blank = "0".repeat(HEX_WIDTH);
        let body = format!("{{\"seats\":[{}]}}", " ".repeat(SEAT_WIDTH));
        let mut bytes = format!(
            "POST /api/v1/shows/{show}/holds HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nCookie: rowlock_visitor=",
            body.len()
        )
        .into_bytes();
        let visitor = bytes.len();
        bytes.extend_from_slice(format!("{blank}\r\nIdempotency-Key: ").as_bytes());
        let key = bytes.len();
        bytes.extend_from_slice(format!("{blank}\r\n\r\n{body}").as_bytes());
        let seat = bytes.len() - SEAT_WIDTH - "]}".len();
        Self { bytes, visitor, key, seat }
    }

    /// Appends the attempt of a new visitor.
    fn fill(&self, random: &mut Random, seat: u32, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        let filled = &mut out[from..];
        write_hex(random, &mut filled[self.visitor..self.visitor + HEX_WIDTH]);
        write_hex(random, &mut filled[self.key..self.key + HEX_WIDTH]);
        let mut rest = seat;
        for place in (self.seat..self.seat + SEAT_WIDTH).rev() {
            filled[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
}

fn write_hex(random: &mut Random, place: &mut [u8]) {
    for half in place.chunks_mut(HEX_WIDTH / 2) {
        let mut bits = random.bits();
        for byte in half {
            *byte = DIGITS[(bits & 15) as usize];
            bits >>= 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_template_requests_the_seat_as_a_new_visitor() {
        let template = Template::hold("127.0.0.1:3000".parse().expect("an address"), Uuid::from_u128(7));
        let mut random = Random::from_seed(1);
        let mut written = |seat| {
            let mut out = Vec::new();
            template.fill(&mut random, seat, &mut out);
            String::from_utf8(out).expect("text")
        };
        let (first, second) = (written(46), written(123_456));
        let (head, body) = first.split_once("\r\n\r\n").expect("a head and a body");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body, serde_json::json!({"seats": [46]}));
        assert!(second.ends_with("[123456]}"));
        assert!(head.starts_with("POST /api/v1/shows/00000000-0000-0000-0000-000000000007/holds HTTP/1.1\r\n"));
        let value = |text: &str, name: &str| {
            let from = text.find(name).expect("a header") + name.len();
            text[from..from + HEX_WIDTH].to_owned()
        };
        for name in ["rowlock_visitor=", "Idempotency-Key: "] {
            assert!(value(head, name).bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert_ne!(value(&first, name), value(&second, name));
        }
    }
}

//! `storm`: 10,000 visitors arrive within a second at two servers that share the stores. Every seat must
//! be sold exactly once.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use uuid::Uuid;

use crate::RunOptions;
use crate::arrivals::{Spacing, schedule};
use crate::checker::Findings;
use crate::cpu::Cpu;
use crate::histogram::Histogram;
use crate::http::{self, ErrorCounts, HttpAnswer, Load, LoadLimits, Next, text_after};
use crate::purchase::{PurchaseStep, StepOutcome};
use crate::random::Random;
use crate::report::{Bound, Report, ReportRow};
use crate::world::{BenchServer, RunPaths, Show, World};

const TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout after the sale for its effects: marks on the map and mails.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
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

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: StormOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.visitors, options.storms, options.connections) = (600, 1, 50);
    }
    let mut world = World::create(paths)?;
    let (simulator, _payments) = world.simulator()?;
    let servers = [world.server("rowlock-1", Some(simulator))?, world.server("rowlock-2", Some(simulator))?];
    for round in 1..=options.storms {
        one_round(&mut world, &servers, &options, round, report)?;
    }
    report.summarise();
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
    let mut visitors = Visitors::new(arrivals, &show, SERVERS);
    let limits = LoadLimits { connections: options.connections, timeout: TIMEOUT };
    let cpu = |world: &World| -> Result<[Cpu; 4]> {
        let [first, second] = servers.each_ref().map(|server| server.process.cpu());
        Ok([first?, second?, world.store.cpu()?, world.postgres_cpu()?])
    };
    let before = cpu(world)?;
    http::run(&addresses, &limits, &mut visitors)?;
    let [first, second, redis, postgres] = cpu(world)?;
    let bought = visitors.bought();
    let mut found = world.check_sold_out(servers, &show, &bought, SETTLE_TIMEOUT)?;
    found.join(visitors.check_outcomes(options.visitors));
    let each = |micros: f64| micros / f64::from(options.visitors);
    report.checked_round(
        ReportRow::of("storm", "candidate")
            .with("round", round)
            .with("seats", options.seats)
            .with("visitors", options.visitors)
            .with("sold", bought.len())
            .latencies(&visitors.first_answers)
            .figure("purchase_p99_ms", visitors.purchases.quantile_ms(0.99))
            .figure("bookings_per_s", bought.len() as f64 / (visitors.last_sale as f64 / 1e9).max(1e-3))
            .figure("server_cpu_us_per_op", each(first.micros_since(&before[0]) + second.micros_since(&before[1])))
            .figure("redis_cpu_us_per_op", each(redis.micros_since(&before[2])))
            .figure("postgres_cpu_us_per_op", each(postgres.micros_since(&before[3])))
            .with("errors", visitors.errors.count()),
        &found,
    );
    visitors.errors.lines().iter().for_each(|line| eprintln!("        {line}"));
    world.store.delete_show(&show)
}

/// Delay before a step is retried after 429, 503 or `still_running`.
const RETRY_DELAY_NS: u64 = 200_000_000;
/// Maximum number of retries; then the step is an error.
const MAX_TRIES: u32 = 20;
/// Distance in seats between consecutive visitors.
const STRIDE: u32 = 7;

#[derive(Clone, Copy, Debug)]
struct VisitorTask {
    visitor: u32,
    step: PurchaseStep,
    due: u64,
    tries: u32,
}

struct VisitorState {
    cookie: String,
    seat: u32,
    arrived: u64,
    outcome: VisitorOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisitorOutcome {
    Open,
    Bought(Uuid),
    RefusedWithSeat,
    Error,
}

/// A load of visitors who each try to hold one seat, and pay at once if they get it.
#[derive(Default)]
struct Visitors {
    people: Vec<VisitorState>,
    show: Uuid,
    /// First steps by server, in order of arrival.
    arriving: Vec<VecDeque<VisitorTask>>,
    /// Later steps by server; they have priority over new visitors.
    next_steps: Vec<VecDeque<VisitorTask>>,
    in_flight: Vec<VisitorTask>,
    open: usize,
    last_sale: u64,
    errors: ErrorCounts,
    /// From arrival to the answer to the hold.
    first_answers: Histogram,
    /// From arrival to a paid booking.
    purchases: Histogram,
}

impl Visitors {
    /// Creates one visitor per arrival, spread over the seats and the servers.
    fn new(arrivals: Vec<u64>, show: &Show, servers: usize) -> Self {
        let mut random = Random::fresh();
        let mut arriving = vec![VecDeque::new(); servers];
        let mut people = Vec::new();
        for (number, arrived) in (0_u32..).zip(arrivals) {
            // Two consecutive visitors want the same seat, at different servers.
            let seat = number / servers as u32 * STRIDE % show.seats;
            people.push(VisitorState { cookie: random.hex(), seat, arrived, outcome: VisitorOutcome::Open });
            let task = VisitorTask { visitor: number, step: PurchaseStep::Hold, due: arrived, tries: 0 };
            arriving[number as usize % servers].push_back(task);
        }
        let next_steps = vec![VecDeque::new(); servers];
        Self { open: people.len(), people, show: show.id, arriving, next_steps, ..Self::default() }
    }

    fn bought(&self) -> Vec<(u32, Uuid)> {
        let bought = self.people.iter().filter_map(|visitor| match visitor.outcome {
            VisitorOutcome::Bought(booking) => Some((visitor.seat, booking)),
            VisitorOutcome::Open | VisitorOutcome::RefusedWithSeat | VisitorOutcome::Error => None,
        });
        bought.collect()
    }

    /// Checks that every visitor bought a seat or got a refusal that names the seat.
    fn check_outcomes(&self, expected: u32) -> Findings {
        let mut found = Findings::default();
        let is_final =
            |visitor: &&VisitorState| !matches!(visitor.outcome, VisitorOutcome::Open | VisitorOutcome::Error);
        let ended = self.people.iter().filter(is_final).count();
        if ended != expected as usize {
            found.add(|| format!("{ended} of {expected} visitors have a final answer"));
        }
        found
    }

    fn end(&mut self, visitor: u32, outcome: VisitorOutcome) {
        self.people[visitor as usize].outcome = outcome;
        self.open -= 1;
    }

    fn fail(&mut self, visitor: u32, kind: String) {
        self.errors.add(kind);
        self.end(visitor, VisitorOutcome::Error);
    }

    fn queue_step(&mut self, task: VisitorTask) {
        let server = task.visitor as usize % self.next_steps.len();
        self.next_steps[server].push_back(task);
    }

    fn retry(&mut self, task: VisitorTask, now: u64, why: &str) {
        if task.tries >= MAX_TRIES {
            self.fail(task.visitor, format!("given up: {why}"));
        } else {
            self.queue_step(VisitorTask { due: now + RETRY_DELAY_NS, tries: task.tries + 1, ..task });
        }
    }
}

impl Load for Visitors {
    fn next(&mut self, server: usize, now: u64, out: &mut Vec<u8>) -> Next {
        if self.open == 0 {
            return Next::Done;
        }
        let queues = [&mut self.next_steps[server], &mut self.arriving[server]];
        let soonest = queues.iter().filter_map(|queue| Some(queue.front()?.due)).min();
        let is_due = |queue: &&mut VecDeque<VisitorTask>| queue.front().is_some_and(|task| task.due <= now);
        let Some(task) = queues.into_iter().find(is_due).and_then(VecDeque::pop_front) else {
            return soonest.map_or(Next::AfterAnswer, Next::At);
        };
        let VisitorState { cookie, seat, .. } = &self.people[task.visitor as usize];
        task.step.request(self.show, *seat..*seat + 1).write(cookie, "", out);
        self.in_flight.push(task);
        Next::Send((self.in_flight.len() - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let task = self.in_flight[ticket as usize];
        let visitor = task.visitor;
        let since_arrival = now.saturating_sub(self.people[visitor as usize].arrived);
        let is_hold = matches!(task.step, PurchaseStep::Hold);
        if is_hold && task.tries == 0 {
            self.first_answers.record(since_arrival);
        }
        match task.step.outcome(answer) {
            StepOutcome::Retry(step, why) => self.retry(VisitorTask { step, ..task }, now, why),
            StepOutcome::Held(hold, _) => {
                self.queue_step(VisitorTask { visitor, step: PurchaseStep::Book(hold), due: now, tries: 0 });
            }
            StepOutcome::Booked(booking) => {
                self.queue_step(VisitorTask { visitor, step: PurchaseStep::Pay(booking), due: now, tries: 0 });
            }
            StepOutcome::Sold(booking) => {
                self.purchases.record(since_arrival);
                self.last_sale = now;
                self.end(visitor, VisitorOutcome::Bought(booking));
            }
            StepOutcome::Unexpected(code) => match answer.status {
                429 => self.retry(task, now, code),
                409 | 423 if is_hold && text_after(answer.body, "label").is_some() => {
                    self.end(visitor, VisitorOutcome::RefusedWithSeat);
                }
                status => self.fail(visitor, format!("{}: {status} {code}", task.step.name())),
            },
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        // The idempotency key makes a retry safe.
        self.retry(self.in_flight[ticket as usize], now, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_visitors() -> Visitors {
        Visitors::new(vec![0, 5], &Show { id: Uuid::from_u128(1), seats: 300 }, 2)
    }

    fn request(visitors: &mut Visitors, server: usize, now: u64) -> Option<(u32, String)> {
        let mut out = Vec::new();
        match visitors.next(server, now, &mut out) {
            Next::Send(ticket) => Some((ticket, String::from_utf8(out).expect("text"))),
            Next::At(_) | Next::AfterAnswer | Next::Done => None,
        }
    }

    fn answer(visitors: &mut Visitors, ticket: u32, status: u16, body: &str) {
        visitors.answered(ticket, 10, &HttpAnswer { status, body: body.as_bytes() });
    }

    #[test]
    fn one_visitor_buys_in_three_steps_and_the_other_is_refused_with_the_seat() {
        let mut visitors = two_visitors();
        let id = Uuid::from_u128(9);
        assert!(request(&mut visitors, 1, 4).is_none(), "the second has not arrived");
        for (path, status, body) in [
            ("/holds ", 201, format!(r#"{{"id":"{id}"}}"#)),
            ("/api/v1/bookings ", 201, format!(r#"{{"id":"{id}","state":"SEATS_LOCKED"}}"#)),
            ("/confirm ", 200, format!(r#"{{"id":"{id}","state":"CONFIRMED"}}"#)),
        ] {
            let (ticket, text) = request(&mut visitors, 0, 10).expect("a request");
            assert!(text.contains(path), "{text}");
            answer(&mut visitors, ticket, status, &body);
        }
        let (ticket, _) = request(&mut visitors, 1, 10).expect("a request");
        answer(&mut visitors, ticket, 423, r#"{"code":"seats_locked","seats":[{"seat":0,"label":"A1"}]}"#);
        assert_eq!(visitors.bought(), [(0, id)]);
        assert_eq!((visitors.check_outcomes(2).count(), visitors.errors.count()), (0, 0));
        assert!(matches!(visitors.next(0, 10, &mut Vec::new()), Next::Done));
    }

    #[test]
    fn a_503_is_retried_with_the_same_key() {
        let mut visitors = two_visitors();
        let (ticket, first) = request(&mut visitors, 0, 0).expect("a request");
        answer(&mut visitors, ticket, 503, r#"{"code":"overloaded"}"#);
        assert!(request(&mut visitors, 0, 10).is_none());
        let (_, second) = request(&mut visitors, 0, 10 + RETRY_DELAY_NS).expect("a request");
        assert_eq!(first, second);
        assert_eq!(visitors.check_outcomes(2).count(), 1);
    }
}

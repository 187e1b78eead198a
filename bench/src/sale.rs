//! `sale`: throughput of complete purchases. Every buyer holds four seats, then checks out and pays in one request, as
//! the page of a show does, with a card that is approved at once. A sale counts when the buyer got CONFIRMED.
//!
//! A second variant checks out and pays in two requests. The payment simulator takes the money over HTTP with signed
//! webhooks, as in the demo; its CPU time is reported separately.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use uuid::Uuid;

use crate::RunOptions;
use crate::checker::{self, Findings};
use crate::cpu::Cpu;
use crate::histogram::Histogram;
use crate::http::{self, ErrorCounts, HttpAnswer, Load, LoadLimits, Next};
use crate::purchase::{Api, PurchaseStep, RowlockApi, StepOutcome};
use crate::random::Random;
use crate::report::{Bound, Report, ReportRow};
use crate::world::{BenchServer, Process, RunPaths, Show, World, wait_until};

const LAST_SALE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout after the sales for their effects: marks on the map, mails and webhooks.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const PROMISED_PER_S: f64 = 2_000.0;
const GOAL_PER_S: f64 = 4_000.0;
/// Promised CPU time of server, Redis and Postgres per sale, microseconds: a fifth of a competent Node implementation's.
const PROMISED_CPU_US: f64 = 320.0;

const CANDIDATE: &str = "candidate";
const VARIANTS: [&str; 2] = [CANDIDATE, "two_requests"];

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
    #[arg(long, value_parser = VARIANTS)]
    only: Option<String>,
}

pub fn run(paths: &RunPaths, run: &RunOptions, mut options: SaleOptions, report: &mut Report) -> Result<()> {
    if run.quick {
        (options.seconds, options.buyers, options.shows, options.seats) = (1.0, 16, 2, 2_000);
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
            if options.only.as_ref().is_some_and(|only| only != variant) {
                continue;
            }
            let server = world.server(&format!("rowlock-{variant}"), Some(address))?;
            one_round(&mut world, &server, &simulator, &options, (variant, round), report)?;
        }
    }
    report.summarise();
    promises(report);
    Ok(())
}

fn promises(report: &Report) {
    let of = |key: &str| report.median(&[("variant", json!(CANDIDATE))], key);
    let rate = of("bookings_per_s");
    report.promise("bookings/s", rate, Bound::AtLeast(PROMISED_PER_S));
    report.promise("bookings/s, the goal", rate, Bound::AtLeast(GOAL_PER_S));
    let cpu = of("cpu_us_per_sale");
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
    (variant, round): (&str, u32),
    report: &mut Report,
) -> Result<()> {
    let shows = world.shows(options.seats, options.shows)?;
    // The first request builds the map of a show; on a sale day that happens before the rush.
    for show in &shows {
        http::get(server.address, &show.seats_path())?;
    }
    let arrive_for = Duration::from_secs_f64(options.seconds);
    let in_one_request = variant == CANDIDATE;
    let mut buyers = Buyers::new(&RowlockApi, &shows, arrive_for, in_one_request);
    let timeout = Duration::from_secs_f64(options.seconds) + LAST_SALE_TIMEOUT;
    let before = readings(world, server, simulator)?;
    http::run(&[server.address], &LoadLimits { connections: options.buyers, timeout }, &mut buyers)?;
    let last_sale = Instant::now();
    let mut found = wait_until_settled(world)?;
    let drained = last_sale.elapsed();
    let after = readings(world, server, simulator)?;
    found.join(check(world, server, &shows, &buyers)?);

    let sales = buyers.sales() as f64;
    let spent: f64 = (0..3).map(|place: usize| after[place].micros_since(&before[place])).sum();
    let mut row = ReportRow::of("sale", variant)
        .with("round", round)
        .with("sales", buyers.sales())
        .figure("bookings_per_s", sales / (buyers.last_sale as f64 / 1e9).max(1e-3))
        .latencies(&buyers.purchases)
        .figure("hold_p99_ms", buyers.holding.quantile_ms(0.99))
        .figure("pay_p99_ms", buyers.paying.quantile_ms(0.99))
        .figure("effects_done_after_s", drained.as_secs_f64())
        .figure("cpu_us_per_sale", spent / sales.max(1.0))
        .cpu_per_op(["server", "redis", "postgres", "simulator", "generator"], &before, &after, sales.max(1.0));
    if !in_one_request {
        row = row.figure("book_p99_ms", buyers.booking.quantile_ms(0.99));
    }
    report.checked_round(row.with("errors", buyers.errors.count()), &found);
    buyers.errors.lines().iter().for_each(|line| eprintln!("        {line}"));
    shows.iter().try_for_each(|show| world.store.delete_show(show))
}

/// Compares the confirmed purchases with claims, tickets and payments, and with the maps in Redis and at the server.
fn check(world: &mut World, server: &BenchServer, shows: &[Show], buyers: &Buyers<'_>) -> Result<Findings> {
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
pub fn wait_until_settled(world: &World) -> Result<Findings> {
    let (mut found, mut open) = (Findings::default(), 0);
    let is_settled = wait_until(SETTLE_TIMEOUT, POLL_INTERVAL, || {
        open = world.pending_effects()?;
        if open == 0 {
            open = world.charges_without_webhook()?;
        }
        Ok(open == 0)
    })?;
    if !is_settled {
        found.add(|| format!("{open} effects are open {} s after the last sale", SETTLE_TIMEOUT.as_secs()));
    }
    Ok(found)
}

/// Adjacent seats of a buyer.
const SEATS_EACH: u32 = 4;
/// Delay before a step is retried after 503 or `still_running`.
const RETRY_DELAY_NS: u64 = 100_000_000;
/// Maximum number of retries; then the step is an error.
const MAX_TRIES: u32 = 50;

#[derive(Clone, Copy, Debug)]
struct BuyerTask {
    buyer: u32,
    step: PurchaseStep,
    /// When the step was first sent, nanoseconds from the start.
    since: Option<u64>,
    /// When the step may be sent or retried, nanoseconds from the start.
    due: u64,
    tries: u32,
}

struct BuyerState {
    cookie: String,
    show: usize,
    first_seat: u32,
    arrived: u64,
    /// The booking, once CONFIRMED.
    bought: Option<Uuid>,
}

impl BuyerState {
    fn seats(&self) -> Range<u32> {
        self.first_seat..self.first_seat + SEATS_EACH
    }
}

/// A load of buyers, one per connection at a time: each holds seats that no other buyer wants, checks out and pays.
pub struct Buyers<'a> {
    api: &'a dyn Api,
    shows: Vec<Show>,
    random: Random,
    arrive_until: u64,
    /// Set when buyers check out and pay in one request.
    in_one_request: bool,
    people: Vec<BuyerState>,
    /// Steps after the first one; they have priority over new buyers.
    next_steps: VecDeque<BuyerTask>,
    in_flight: Vec<BuyerTask>,
    open: usize,
    /// When the last purchase was CONFIRMED, nanoseconds from the start.
    pub last_sale: u64,
    pub errors: ErrorCounts,
    /// From the first request to CONFIRMED.
    pub purchases: Histogram,
    /// From the first request of a hold to its answer.
    holding: Histogram,
    /// The same for checking out.
    booking: Histogram,
    /// The same for paying.
    paying: Histogram,
}

impl<'a> Buyers<'a> {
    /// Creates buyers for these shows; new ones start for `arrive_for`.
    pub fn new(api: &'a dyn Api, shows: &[Show], arrive_for: Duration, in_one_request: bool) -> Self {
        Self {
            api,
            shows: shows.to_vec(),
            random: Random::fresh(),
            arrive_until: arrive_for.as_nanos() as u64,
            in_one_request,
            people: Vec::new(),
            next_steps: VecDeque::new(),
            in_flight: Vec::new(),
            open: 0,
            last_sale: 0,
            errors: ErrorCounts::default(),
            purchases: Histogram::default(),
            holding: Histogram::default(),
            booking: Histogram::default(),
            paying: Histogram::default(),
        }
    }

    /// Returns the number of buyers whose booking is CONFIRMED.
    pub fn sales(&self) -> usize {
        self.people.iter().filter(|buyer| buyer.bought.is_some()).count()
    }

    /// Returns seat and booking of every CONFIRMED purchase in the show at this index.
    pub fn bought(&self, show: usize) -> Vec<(u32, Uuid)> {
        let buyers = self.people.iter().filter(|buyer| buyer.show == show);
        let seats = buyers.filter_map(|buyer| Some((buyer.seats(), buyer.bought?)));
        seats.flat_map(|(seats, booking)| seats.map(move |seat| (seat, booking))).collect()
    }

    /// Returns the number of buyers who began and bought no seats.
    pub fn unfinished(&self) -> usize {
        self.people.len() - self.sales()
    }

    /// Creates a buyer for the next free seats; `None` when all are taken or the time is over.
    fn start_buyer(&mut self, now: u64) -> Option<BuyerTask> {
        let number = self.people.len();
        let (show, index) = (number % self.shows.len(), (number / self.shows.len()) as u32);
        if now >= self.arrive_until || (index + 1) * SEATS_EACH > self.shows[show].seats {
            return None;
        }
        let cookie = self.random.hex();
        self.people.push(BuyerState { cookie, show, first_seat: index * SEATS_EACH, arrived: now, bought: None });
        self.open += 1;
        Some(BuyerTask { buyer: number as u32, step: PurchaseStep::Hold, since: None, due: now, tries: 0 })
    }

    fn queue_step(&mut self, buyer: u32, step: PurchaseStep, now: u64) {
        self.next_steps.push_back(BuyerTask { buyer, step, since: None, due: now, tries: 0 });
    }

    fn retry(&mut self, task: BuyerTask, now: u64, why: &str) {
        if task.tries >= MAX_TRIES {
            self.fail(format!("given up: {why}"));
        } else {
            self.next_steps.push_back(BuyerTask { due: now + RETRY_DELAY_NS, tries: task.tries + 1, ..task });
        }
    }

    fn fail(&mut self, kind: String) {
        self.errors.add(kind);
        self.open -= 1;
    }
}

impl Load for Buyers<'_> {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let due = self.next_steps.iter().position(|task| task.due <= now);
        let task = due.and_then(|index| self.next_steps.remove(index)).or_else(|| self.start_buyer(now));
        let Some(mut task) = task else {
            if self.open == 0 {
                return Next::Done;
            }
            return self.next_steps.iter().map(|task| task.due).min().map_or(Next::AfterAnswer, Next::At);
        };
        let buyer = &self.people[task.buyer as usize];
        self.api.write(task.step, self.shows[buyer.show].id, buyer.seats(), &buyer.cookie, out);
        task.since.get_or_insert(now);
        self.in_flight.push(task);
        Next::Send((self.in_flight.len() - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let task = self.in_flight[ticket as usize];
        let took = now.saturating_sub(task.since.unwrap_or(now));
        match self.api.outcome(task.step, answer) {
            StepOutcome::Retry(step, why) => self.retry(BuyerTask { step, ..task }, now, why),
            StepOutcome::Held(hold, total) => {
                self.holding.record(took);
                let total = total.filter(|_| self.in_one_request);
                let step = total.map_or(PurchaseStep::Book(hold), |total| PurchaseStep::Buy(hold, total));
                self.queue_step(task.buyer, step, now);
            }
            StepOutcome::Booked(booking) => {
                self.booking.record(took);
                self.queue_step(task.buyer, PurchaseStep::Pay(booking), now);
            }
            StepOutcome::Sold(booking) => {
                self.paying.record(took);
                let buyer = &mut self.people[task.buyer as usize];
                buyer.bought = Some(booking);
                self.purchases.record(now.saturating_sub(buyer.arrived));
                self.last_sale = now;
                self.open -= 1;
            }
            StepOutcome::Unexpected(code) => self.fail(format!("{}: {} {code}", task.step.name(), answer.status)),
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
    use crate::purchase::TOKEN;

    fn buyers(seats: u32, in_one_request: bool) -> Buyers<'static> {
        let show = Show { id: Uuid::from_u128(1), seats };
        Buyers::new(&RowlockApi, &[show], Duration::from_secs(1), in_one_request)
    }

    fn request(buyers: &mut Buyers<'_>, now: u64) -> Option<(u32, String)> {
        let mut out = Vec::new();
        match buyers.next(0, now, &mut out) {
            Next::Send(ticket) => Some((ticket, String::from_utf8(out).expect("text"))),
            Next::At(_) | Next::AfterAnswer | Next::Done => None,
        }
    }

    #[test]
    fn a_buyer_buys_four_seats_in_three_steps_and_the_next_buyer_the_next_four() {
        let mut buyers = buyers(8, false);
        let id = Uuid::from_u128(9);
        for (path, body, status, answer) in [
            ("/holds ", "[0,1,2,3]", 201, format!(r#"{{"id":"{id}"}}"#)),
            ("/api/v1/bookings ", "hold", 201, format!(r#"{{"id":"{id}","state":"SEATS_LOCKED"}}"#)),
            ("/confirm ", TOKEN, 200, format!(r#"{{"id":"{id}","state":"CONFIRMED"}}"#)),
        ] {
            let (ticket, text) = request(&mut buyers, 20).expect("a request");
            assert!(text.contains(path) && text.contains(body), "{text}");
            buyers.answered(ticket, 20, &HttpAnswer { status, body: answer.as_bytes() });
        }
        assert_eq!(buyers.bought(0), [(0, id), (1, id), (2, id), (3, id)]);
        assert!(request(&mut buyers, 30).expect("another").1.contains("[4,5,6,7]"));
        assert!(request(&mut buyers, 30).is_none(), "the show is full");
        assert_eq!((buyers.sales(), buyers.unfinished(), buyers.errors.count()), (1, 1, 0));
    }

    #[test]
    fn a_buyer_with_one_request_checks_out_and_pays_the_total_of_the_hold() {
        let mut buyers = buyers(4, true);
        let id = Uuid::from_u128(9);
        let hold = format!(r#"{{"id":"{id}","seats":[{{"price":{{"minor":900}}}}],"total":{{"minor":3600}}}}"#);
        let (ticket, _) = request(&mut buyers, 20).expect("a request");
        buyers.answered(ticket, 20, &HttpAnswer { status: 201, body: hold.as_bytes() });
        let (ticket, text) = request(&mut buyers, 20).expect("a request");
        assert!(text.contains("POST /api/v1/bookings ") && text.contains(r#""total_minor":3600"#), "{text}");
        let sold = format!(r#"{{"id":"{id}","state":"CONFIRMED"}}"#);
        buyers.answered(ticket, 20, &HttpAnswer { status: 201, body: sold.as_bytes() });
        assert_eq!((buyers.sales(), buyers.unfinished(), buyers.errors.count()), (1, 0, 0));
    }

    #[test]
    fn a_503_is_retried_with_the_same_key_and_no_buyer_starts_after_the_end() {
        let mut buyers = buyers(400, true);
        let (ticket, first) = request(&mut buyers, 0).expect("a request");
        buyers.answered(ticket, 5, &HttpAnswer { status: 503, body: br#"{"code":"overloaded"}"# });
        let later = 1_500_000_000;
        let (_, second) = request(&mut buyers, later).expect("a request");
        assert_eq!(first, second);
        assert!(request(&mut buyers, later).is_none());
        assert_eq!(buyers.unfinished(), 1);
    }
}

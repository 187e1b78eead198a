//! A load of visitors who each try to hold one seat, and pay at once if they get it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use uuid::Uuid;

use crate::checker::Findings;
use crate::histogram::Histogram;
use crate::http::{HttpAnswer, Load, Next, text_after};
use crate::purchase::{Purchase, PurchaseStep};
use crate::random::Random;
use crate::world::Show;

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
    /// The outcome so far.
    outcome: VisitorOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisitorOutcome {
    Open,
    Bought(Uuid),
    RefusedWithSeat,
    Error,
}

/// The visitors and their results.
pub struct Visitors {
    people: Vec<VisitorState>,
    addresses: Vec<SocketAddr>,
    show: Uuid,
    /// First steps by server, in order of arrival.
    arriving: Vec<VecDeque<VisitorTask>>,
    /// Later steps by server; they have priority over new visitors.
    next_steps: Vec<VecDeque<VisitorTask>>,
    in_flight: Vec<VisitorTask>,
    open: usize,
    last_sale: u64,
    errors: BTreeMap<String, u64>,
    /// From arrival to the answer to the hold.
    pub first_answers: Histogram,
    /// From arrival to a paid booking.
    pub purchases: Histogram,
}

impl Visitors {
    /// Creates one visitor per arrival, spread over the seats and the servers.
    pub fn new(arrivals: Vec<u64>, show: &Show, addresses: &[SocketAddr]) -> Self {
        let mut random = Random::fresh();
        let servers = addresses.len();
        let mut arriving = vec![VecDeque::new(); servers];
        let mut people = Vec::new();
        for (number, arrived) in (0_u32..).zip(arrivals) {
            // Two consecutive visitors want the same seat, at different servers.
            let seat = number / servers as u32 * STRIDE % show.seats;
            people.push(VisitorState { cookie: random.hex(), seat, arrived, outcome: VisitorOutcome::Open });
            let task = VisitorTask { visitor: number, step: PurchaseStep::Hold, due: arrived, tries: 0 };
            arriving[number as usize % servers].push_back(task);
        }
        Self {
            open: people.len(),
            people,
            addresses: addresses.to_vec(),
            show: show.id,
            arriving,
            next_steps: vec![VecDeque::new(); servers],
            in_flight: Vec::new(),
            last_sale: 0,
            errors: BTreeMap::new(),
            first_answers: Histogram::default(),
            purchases: Histogram::default(),
        }
    }

    /// Returns seat and booking of every confirmed purchase.
    pub fn bought(&self) -> Vec<(u32, Uuid)> {
        let bought = self.people.iter().filter_map(|visitor| match visitor.outcome {
            VisitorOutcome::Bought(booking) => Some((visitor.seat, booking)),
            VisitorOutcome::Open | VisitorOutcome::RefusedWithSeat | VisitorOutcome::Error => None,
        });
        bought.collect()
    }

    /// Returns the seconds from the start to the last sale.
    pub fn selling_seconds(&self) -> f64 {
        self.last_sale as f64 / 1e9
    }

    /// Returns the number of unexpected answers.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Describes the unexpected answers.
    pub fn error_lines(&self) -> Vec<String> {
        self.errors.iter().map(|(kind, count)| format!("{count} × {kind}")).collect()
    }

    /// Checks that every visitor bought a seat or got a refusal that names the seat.
    pub fn check_outcomes(&self, expected: u32) -> Findings {
        let mut found = Findings::default();
        let ended = self
            .people
            .iter()
            .filter(|visitor| !matches!(visitor.outcome, VisitorOutcome::Open | VisitorOutcome::Error))
            .count();
        if ended != expected as usize {
            found.add(|| format!("{ended} of {expected} visitors have a final answer"));
        }
        found
    }

    fn end(&mut self, visitor: u32, outcome: VisitorOutcome) {
        self.people[visitor as usize].outcome = outcome;
        self.open -= 1;
    }

    fn server_of(&self, visitor: u32) -> usize {
        visitor as usize % self.addresses.len()
    }

    fn queue_step(&mut self, visitor: u32, step: PurchaseStep, due: u64, tries: u32) {
        let server = self.server_of(visitor);
        self.next_steps[server].push_back(VisitorTask { visitor, step, due, tries });
    }

    fn retry(&mut self, task: VisitorTask, now: u64, why: &str) {
        if task.tries >= MAX_TRIES {
            *self.errors.entry(format!("given up: {why}")).or_default() += 1;
            self.end(task.visitor, VisitorOutcome::Error);
        } else {
            self.queue_step(task.visitor, task.step, now + RETRY_DELAY_NS, task.tries + 1);
        }
    }

    fn write(&self, task: &VisitorTask, out: &mut Vec<u8>) {
        let visitor = &self.people[task.visitor as usize];
        let server = self.addresses[self.server_of(task.visitor)];
        let seats = visitor.seat..visitor.seat + 1;
        Purchase { server, show: self.show, seats, cookie: &visitor.cookie }.write(task.step, out);
    }

    fn sold(&mut self, visitor: u32, booking: Uuid, now: u64) {
        self.purchases.record(now.saturating_sub(self.people[visitor as usize].arrived));
        self.last_sale = now;
        self.end(visitor, VisitorOutcome::Bought(booking));
    }
}

impl Load for Visitors {
    fn next(&mut self, server: usize, now: u64, out: &mut Vec<u8>) -> Next {
        if self.open == 0 {
            return Next::Done;
        }
        let soonest = [self.next_steps[server].front(), self.arriving[server].front()]
            .into_iter()
            .flatten()
            .map(|task| task.due)
            .min();
        let is_due = |task: &VisitorTask| task.due <= now;
        let task = if self.next_steps[server].front().is_some_and(is_due) {
            self.next_steps[server].pop_front()
        } else if self.arriving[server].front().is_some_and(is_due) {
            self.arriving[server].pop_front()
        } else {
            None
        };
        let Some(task) = task else { return soonest.map_or(Next::AfterAnswer, Next::At) };
        self.write(&task, out);
        self.in_flight.push(task);
        Next::Send((self.in_flight.len() - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let task = self.in_flight[ticket as usize];
        if matches!(task.step, PurchaseStep::Hold) && task.tries == 0 {
            self.first_answers.record(now.saturating_sub(self.people[task.visitor as usize].arrived));
        }
        let word = |name| text_after(answer.body, name);
        let id = word("id").and_then(|id| Uuid::parse_str(id).ok());
        let code = word("code").unwrap_or("no code");
        match (task.step, answer.status, id) {
            (_, 429 | 503, _) => self.retry(task, now, code),
            (_, 409, _) if code == "still_running" => self.retry(task, now, code),
            (PurchaseStep::Hold, 409 | 423, _) if word("label").is_some() => {
                self.end(task.visitor, VisitorOutcome::RefusedWithSeat)
            }
            (PurchaseStep::Hold, 201, Some(hold)) => self.queue_step(task.visitor, PurchaseStep::Book { hold }, now, 0),
            (PurchaseStep::Book { .. }, 201, Some(booking)) => {
                self.queue_step(task.visitor, PurchaseStep::Pay { booking }, now, 0)
            }
            (PurchaseStep::Pay { booking } | PurchaseStep::Poll { booking }, 200, _)
                if word("state") == Some("CONFIRMED") =>
            {
                self.sold(task.visitor, booking, now);
            }
            (PurchaseStep::Pay { booking } | PurchaseStep::Poll { booking }, 200, _)
                if word("state") == Some("PAYMENT_PENDING") =>
            {
                self.retry(VisitorTask { step: PurchaseStep::Poll { booking }, ..task }, now, "still pending");
            }
            (step, status, _) => {
                let step = format!("{step:?}");
                let step = step.split(' ').next().unwrap_or_default();
                *self.errors.entry(format!("{step}: {status} {code}")).or_default() += 1;
                self.end(task.visitor, VisitorOutcome::Error);
            }
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        // The idempotency key makes a retry safe.
        let task = self.in_flight[ticket as usize];
        self.retry(task, now, why);
    }
}

impl Visitors {
    /// Returns the next request, for tests without a server.
    #[cfg(test)]
    fn request(&mut self, server: usize, now: u64) -> Option<(u32, String)> {
        let mut out = Vec::new();
        match self.next(server, now, &mut out) {
            Next::Send(ticket) => Some((ticket, String::from_utf8(out).expect("text"))),
            Next::At(_) | Next::AfterAnswer | Next::Done => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_visitors() -> Visitors {
        let show = Show { id: Uuid::from_u128(1), seats: 300 };
        let address: SocketAddr = "127.0.0.1:3000".parse().expect("an address");
        Visitors::new(vec![0, 5], &show, &[address, address])
    }

    fn answer(visitors: &mut Visitors, ticket: u32, status: u16, body: &str) {
        visitors.answered(ticket, 10, &HttpAnswer { status, body: body.as_bytes() });
    }

    #[test]
    fn one_visitor_buys_in_three_steps_and_the_other_is_refused_with_the_seat() {
        let mut visitors = two_visitors();
        let id = Uuid::from_u128(9);
        assert!(visitors.request(1, 4).is_none(), "the second has not arrived");
        for (path, status, body) in [
            ("/holds ", 201, format!(r#"{{"id":"{id}"}}"#)),
            ("/api/v1/bookings ", 201, format!(r#"{{"id":"{id}","state":"SEATS_LOCKED"}}"#)),
            ("/confirm ", 200, format!(r#"{{"id":"{id}","state":"CONFIRMED"}}"#)),
        ] {
            let (ticket, text) = visitors.request(0, 10).expect("a request");
            assert!(text.contains(path), "{text}");
            answer(&mut visitors, ticket, status, &body);
        }
        let (ticket, _) = visitors.request(1, 10).expect("a request");
        answer(&mut visitors, ticket, 423, r#"{"code":"seats_locked","seats":[{"seat":0,"label":"A1"}]}"#);
        assert_eq!(visitors.bought(), [(0, id)]);
        assert_eq!((visitors.check_outcomes(2).count(), visitors.errors()), (0, 0));
        assert!(matches!(visitors.next(0, 10, &mut Vec::new()), Next::Done));
    }

    #[test]
    fn a_503_is_retried_with_the_same_key() {
        let mut visitors = two_visitors();
        let (ticket, first) = visitors.request(0, 0).expect("a request");
        answer(&mut visitors, ticket, 503, r#"{"code":"overloaded"}"#);
        assert!(visitors.request(0, 10).is_none());
        let (_, second) = visitors.request(0, 10 + RETRY_DELAY_NS).expect("a request");
        assert_eq!(first, second);
        assert_eq!(visitors.check_outcomes(2).count(), 1);
    }
}

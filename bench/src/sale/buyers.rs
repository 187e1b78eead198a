//! A load of buyers, one per connection at a time: each holds seats that no other buyer wants, checks out
//! and pays.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use crate::histogram::Histogram;
use crate::http::{HttpAnswer, Load, Next, amount_after, text_after};
use crate::purchase::{Purchase, PurchaseStep};
use crate::random::Random;
use crate::world::Show;

/// Adjacent seats of a buyer.
pub const SEATS_EACH: u32 = 4;
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

/// The buyers and their results.
pub struct Buyers {
    shows: Vec<Show>,
    address: SocketAddr,
    random: Random,
    arrive_until: u64,
    in_one_request: bool,
    people: Vec<BuyerState>,
    /// Steps after the first one; they have priority over new buyers.
    next_steps: VecDeque<BuyerTask>,
    in_flight: Vec<BuyerTask>,
    open: usize,
    last_sale: u64,
    errors: BTreeMap<String, u64>,
    /// From the first request to CONFIRMED.
    pub purchases: Histogram,
    /// From the first request of a hold to its answer.
    pub holding: Histogram,
    /// The same for checking out.
    pub booking: Histogram,
    /// The same for paying.
    pub paying: Histogram,
}

impl Buyers {
    /// Creates buyers for these shows; new ones start for `arrive_for`. With `in_one_request` they check out and pay in one request.
    pub fn new(shows: &[Show], address: SocketAddr, arrive_for: Duration, in_one_request: bool) -> Self {
        Self {
            shows: shows.to_vec(),
            address,
            random: Random::fresh(),
            arrive_until: arrive_for.as_nanos() as u64,
            in_one_request,
            people: Vec::new(),
            next_steps: VecDeque::new(),
            in_flight: Vec::new(),
            open: 0,
            last_sale: 0,
            errors: BTreeMap::new(),
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
        let seats = buyers.filter_map(|buyer| {
            let booking = buyer.bought?;
            Some((buyer.first_seat..buyer.first_seat + SEATS_EACH).map(move |seat| (seat, booking)))
        });
        seats.flatten().collect()
    }

    /// Returns the seconds from the start to the last sale.
    pub fn selling_seconds(&self) -> f64 {
        self.last_sale as f64 / 1e9
    }

    /// Returns the number of buyers who began and bought no seats.
    pub fn unfinished(&self) -> usize {
        self.people.len() - self.sales()
    }

    /// Returns the number of unexpected answers.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Describes the unexpected answers.
    pub fn error_lines(&self) -> Vec<String> {
        self.errors.iter().map(|(kind, count)| format!("{count} × {kind}")).collect()
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

    fn sold(&mut self, task: BuyerTask, booking: Uuid, now: u64) {
        self.paying.record(now.saturating_sub(task.since.unwrap_or(now)));
        let buyer = &mut self.people[task.buyer as usize];
        buyer.bought = Some(booking);
        self.purchases.record(now.saturating_sub(buyer.arrived));
        self.last_sale = now;
        self.open -= 1;
    }

    fn fail(&mut self, kind: String) {
        *self.errors.entry(kind).or_default() += 1;
        self.open -= 1;
    }

    fn write(&self, task: &BuyerTask, out: &mut Vec<u8>) {
        let buyer = &self.people[task.buyer as usize];
        let seats = buyer.first_seat..buyer.first_seat + SEATS_EACH;
        let show = self.shows[buyer.show].id;
        Purchase { server: self.address, show, seats, cookie: &buyer.cookie }.write(task.step, out);
    }
}

impl Load for Buyers {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let due = self.next_steps.iter().position(|task| task.due <= now);
        let task = due.and_then(|index| self.next_steps.remove(index)).or_else(|| self.start_buyer(now));
        let Some(mut task) = task else {
            if self.open == 0 {
                return Next::Done;
            }
            return self.next_steps.iter().map(|task| task.due).min().map_or(Next::AfterAnswer, Next::At);
        };
        self.write(&task, out);
        task.since.get_or_insert(now);
        self.in_flight.push(task);
        Next::Send((self.in_flight.len() - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let task = self.in_flight[ticket as usize];
        let took = now.saturating_sub(task.since.unwrap_or(now));
        let word = |name| text_after(answer.body, name);
        let id = word("id").and_then(|id| Uuid::parse_str(id).ok());
        let (code, state) = (word("code").unwrap_or("no code"), word("state"));
        match (task.step, answer.status, id) {
            (_, 503, _) => self.retry(task, now, code),
            (_, 409, _) if code == "still_running" => self.retry(task, now, code),
            (PurchaseStep::Hold, 201, Some(hold)) => {
                self.holding.record(took);
                match amount_after(answer.body, "total").filter(|_| self.in_one_request) {
                    Some(total) => self.queue_step(task.buyer, PurchaseStep::Buy { hold, total }, now),
                    None => self.queue_step(task.buyer, PurchaseStep::Book { hold }, now),
                }
            }
            (PurchaseStep::Book { .. }, 201, Some(booking)) => {
                self.booking.record(took);
                self.queue_step(task.buyer, PurchaseStep::Pay { booking }, now);
            }
            (PurchaseStep::Buy { .. }, 201, Some(booking)) if state == Some("CONFIRMED") => {
                self.sold(task, booking, now)
            }
            (PurchaseStep::Buy { .. }, 201, Some(booking)) if state == Some("PAYMENT_PENDING") => {
                self.retry(BuyerTask { step: PurchaseStep::Poll { booking }, ..task }, now, "still pending");
            }
            (PurchaseStep::Pay { booking } | PurchaseStep::Poll { booking }, 200, _) if state == Some("CONFIRMED") => {
                self.sold(task, booking, now);
            }
            (PurchaseStep::Pay { booking } | PurchaseStep::Poll { booking }, 200, _)
                if state == Some("PAYMENT_PENDING") =>
            {
                self.retry(BuyerTask { step: PurchaseStep::Poll { booking }, ..task }, now, "still pending");
            }
            (step, status, _) => {
                let step = format!("{step:?}");
                self.fail(format!("{}: {status} {code}", step.split(' ').next().unwrap_or_default()));
            }
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        // The idempotency key makes a retry safe.
        let task = self.in_flight[ticket as usize];
        self.retry(task, now, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purchase::TOKEN;

    fn buyers(seats: u32, in_one_request: bool) -> Buyers {
        let show = Show { id: Uuid::from_u128(1), seats };
        Buyers::new(&[show], "127.0.0.1:3000".parse().expect("an address"), Duration::from_secs(1), in_one_request)
    }

    fn request(buyers: &mut Buyers, now: u64) -> Option<(u32, String)> {
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
        assert_eq!((buyers.sales(), buyers.unfinished(), buyers.errors()), (1, 1, 0));
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
        assert_eq!((buyers.sales(), buyers.unfinished(), buyers.errors()), (1, 0, 0));
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

//! Buyers who come one after the other, as many at a time as there are connections: each holds seats nobody
//! else wants, checks out and pays.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use crate::histogram::Histogram;
use crate::http::{Answer, Load, Next, amount_after, text_after};
use crate::purchase::{Purchase, Step};
use crate::random::Random;
use crate::world::Show;

/// Seats of a buyer, next to each other.
pub const SEATS_EACH: u32 = 4;
/// A step that was put off (503, or its twin still running) is tried again this much later…
const AGAIN_AFTER_NS: u64 = 100_000_000;
/// …and so often; then it is an error.
const MAX_TRIES: u32 = 50;

#[derive(Clone, Copy, Debug)]
struct Task {
    buyer: u32,
    step: Step,
    /// When its step was first sent, and when it may be sent (again); nanoseconds from the start.
    since: Option<u64>,
    due: u64,
    tries: u32,
}

struct Buyer {
    cookie: String,
    show: usize,
    first_seat: u32,
    came: u64,
    /// The booking, once CONFIRMED.
    bought: Option<Uuid>,
}

/// All of them.
pub struct Buyers {
    shows: Vec<Show>,
    address: SocketAddr,
    random: Random,
    until: u64,
    at_once: bool,
    people: Vec<Buyer>,
    /// Steps after the first: whoever has begun goes first.
    going_on: VecDeque<Task>,
    in_the_air: Vec<Task>,
    open: usize,
    last_sale: u64,
    errors: BTreeMap<String, u64>,
    /// From the first request to CONFIRMED.
    pub purchases: Histogram,
    /// From a step's first request to its answer.
    pub holding: Histogram,
    /// Likewise.
    pub booking: Histogram,
    /// Likewise.
    pub paying: Histogram,
}

impl Buyers {
    /// Buyers for these shows, who come for so long. `at_once`: they check out and pay in one request.
    pub fn new(shows: &[Show], address: SocketAddr, come_for: Duration, at_once: bool) -> Self {
        Self {
            shows: shows.to_vec(),
            address,
            random: Random::fresh(),
            until: come_for.as_nanos() as u64,
            at_once,
            people: Vec::new(),
            going_on: VecDeque::new(),
            in_the_air: Vec::new(),
            open: 0,
            last_sale: 0,
            errors: BTreeMap::new(),
            purchases: Histogram::default(),
            holding: Histogram::default(),
            booking: Histogram::default(),
            paying: Histogram::default(),
        }
    }

    /// Buyers who were told CONFIRMED.
    pub fn sales(&self) -> usize {
        self.people.iter().filter(|buyer| buyer.bought.is_some()).count()
    }

    /// Seat and booking of everyone who was told CONFIRMED, for the show at this place.
    pub fn bought(&self, show: usize) -> Vec<(u32, Uuid)> {
        let buyers = self.people.iter().filter(|buyer| buyer.show == show);
        let seats = buyers.filter_map(|buyer| {
            let booking = buyer.bought?;
            Some((buyer.first_seat..buyer.first_seat + SEATS_EACH).map(move |seat| (seat, booking)))
        });
        seats.flatten().collect()
    }

    /// From the start to the last sale, seconds.
    pub fn selling_seconds(&self) -> f64 {
        self.last_sale as f64 / 1e9
    }

    /// Buyers who began and got no ticket.
    pub fn unfinished(&self) -> usize {
        self.people.len() - self.sales()
    }

    /// Answers nobody should get.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// These, in words.
    pub fn errors_told(&self) -> Vec<String> {
        self.errors.iter().map(|(kind, count)| format!("{count} × {kind}")).collect()
    }

    /// Somebody new with seats nobody has asked for; nobody when all are sold or the time is over.
    fn newcomer(&mut self, now: u64) -> Option<Task> {
        let number = self.people.len();
        let (show, place) = (number % self.shows.len(), (number / self.shows.len()) as u32);
        if now >= self.until || (place + 1) * SEATS_EACH > self.shows[show].seats {
            return None;
        }
        let cookie = self.random.hex();
        self.people.push(Buyer { cookie, show, first_seat: place * SEATS_EACH, came: now, bought: None });
        self.open += 1;
        Some(Task { buyer: number as u32, step: Step::Hold, since: None, due: now, tries: 0 })
    }

    fn go_on(&mut self, buyer: u32, step: Step, now: u64) {
        self.going_on.push_back(Task { buyer, step, since: None, due: now, tries: 0 });
    }

    fn again(&mut self, task: Task, now: u64, why: &str) {
        if task.tries >= MAX_TRIES {
            self.fail(format!("given up: {why}"));
        } else {
            self.going_on.push_back(Task { due: now + AGAIN_AFTER_NS, tries: task.tries + 1, ..task });
        }
    }

    fn sold(&mut self, task: Task, booking: Uuid, now: u64) {
        self.paying.record(now.saturating_sub(task.since.unwrap_or(now)));
        let buyer = &mut self.people[task.buyer as usize];
        buyer.bought = Some(booking);
        self.purchases.record(now.saturating_sub(buyer.came));
        self.last_sale = now;
        self.open -= 1;
    }

    fn fail(&mut self, kind: String) {
        *self.errors.entry(kind).or_default() += 1;
        self.open -= 1;
    }

    fn write(&self, task: &Task, out: &mut Vec<u8>) {
        let buyer = &self.people[task.buyer as usize];
        let seats = buyer.first_seat..buyer.first_seat + SEATS_EACH;
        let show = self.shows[buyer.show].id;
        Purchase { server: self.address, show, seats, cookie: &buyer.cookie }.write(task.step, out);
    }
}

impl Load for Buyers {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let due = self.going_on.iter().position(|task| task.due <= now);
        let task = due.and_then(|place| self.going_on.remove(place)).or_else(|| self.newcomer(now));
        let Some(mut task) = task else {
            if self.open == 0 {
                return Next::Done;
            }
            return self.going_on.iter().map(|task| task.due).min().map_or(Next::AfterAnswer, Next::At);
        };
        self.write(&task, out);
        task.since.get_or_insert(now);
        self.in_the_air.push(task);
        Next::Send((self.in_the_air.len() - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &Answer<'_>) {
        let task = self.in_the_air[ticket as usize];
        let took = now.saturating_sub(task.since.unwrap_or(now));
        let word = |name| text_after(answer.body, name);
        let id = word("id").and_then(|id| Uuid::parse_str(id).ok());
        let (code, state) = (word("code").unwrap_or("no code"), word("state"));
        match (task.step, answer.status, id) {
            (_, 503, _) => self.again(task, now, code),
            (_, 409, _) if code == "still_running" => self.again(task, now, code),
            (Step::Hold, 201, Some(hold)) => {
                self.holding.record(took);
                match amount_after(answer.body, "total").filter(|_| self.at_once) {
                    Some(total) => self.go_on(task.buyer, Step::Buy { hold, total }, now),
                    None => self.go_on(task.buyer, Step::Book { hold }, now),
                }
            }
            (Step::Book { .. }, 201, Some(booking)) => {
                self.booking.record(took);
                self.go_on(task.buyer, Step::Pay { booking }, now);
            }
            (Step::Buy { .. }, 201, Some(booking)) if state == Some("CONFIRMED") => self.sold(task, booking, now),
            (Step::Buy { .. }, 201, Some(booking)) if state == Some("PAYMENT_PENDING") => {
                self.again(Task { step: Step::Look { booking }, ..task }, now, "still pending");
            }
            (Step::Pay { booking } | Step::Look { booking }, 200, _) if state == Some("CONFIRMED") => {
                self.sold(task, booking, now);
            }
            (Step::Pay { booking } | Step::Look { booking }, 200, _) if state == Some("PAYMENT_PENDING") => {
                self.again(Task { step: Step::Look { booking }, ..task }, now, "still pending");
            }
            (step, status, _) => {
                let step = format!("{step:?}");
                self.fail(format!("{}: {status} {code}", step.split(' ').next().unwrap_or_default()));
            }
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        // The key makes a repeat harmless.
        let task = self.in_the_air[ticket as usize];
        self.again(task, now, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purchase::TOKEN;

    fn buyers(seats: u32, at_once: bool) -> Buyers {
        let show = Show { id: Uuid::from_u128(1), seats };
        Buyers::new(&[show], "127.0.0.1:3000".parse().expect("an address"), Duration::from_secs(1), at_once)
    }

    fn request(buyers: &mut Buyers, now: u64) -> Option<(u32, String)> {
        let mut out = Vec::new();
        match buyers.next(0, now, &mut out) {
            Next::Send(ticket) => Some((ticket, String::from_utf8(out).expect("text"))),
            Next::At(_) | Next::AfterAnswer | Next::Done => None,
        }
    }

    #[test]
    fn a_buyer_holds_four_seats_checks_out_and_pays_and_the_next_has_the_next_four() {
        let mut buyers = buyers(8, false);
        let id = Uuid::from_u128(9);
        for (path, body, status, answer) in [
            ("/holds ", "[0,1,2,3]", 201, format!(r#"{{"id":"{id}"}}"#)),
            ("/api/v1/bookings ", "hold", 201, format!(r#"{{"id":"{id}","state":"SEATS_LOCKED"}}"#)),
            ("/confirm ", TOKEN, 200, format!(r#"{{"id":"{id}","state":"CONFIRMED"}}"#)),
        ] {
            let (ticket, text) = request(&mut buyers, 20).expect("a request");
            assert!(text.contains(path) && text.contains(body), "{text}");
            buyers.answered(ticket, 20, &Answer { status, body: answer.as_bytes() });
        }
        assert_eq!(buyers.bought(0), [(0, id), (1, id), (2, id), (3, id)]);
        assert!(request(&mut buyers, 30).expect("another").1.contains("[4,5,6,7]"));
        assert!(request(&mut buyers, 30).is_none(), "the show is full");
        assert_eq!((buyers.sales(), buyers.unfinished(), buyers.errors()), (1, 1, 0));
    }

    #[test]
    fn a_buyer_in_a_hurry_pays_what_the_hold_costs_in_the_request_that_checks_out() {
        let mut buyers = buyers(4, true);
        let id = Uuid::from_u128(9);
        let hold = format!(r#"{{"id":"{id}","seats":[{{"price":{{"minor":900}}}}],"total":{{"minor":3600}}}}"#);
        let (ticket, _) = request(&mut buyers, 20).expect("a request");
        buyers.answered(ticket, 20, &Answer { status: 201, body: hold.as_bytes() });
        let (ticket, text) = request(&mut buyers, 20).expect("a request");
        assert!(text.contains("POST /api/v1/bookings ") && text.contains(r#""total_minor":3600"#), "{text}");
        let sold = format!(r#"{{"id":"{id}","state":"CONFIRMED"}}"#);
        buyers.answered(ticket, 20, &Answer { status: 201, body: sold.as_bytes() });
        assert_eq!((buyers.sales(), buyers.unfinished(), buyers.errors()), (1, 0, 0));
    }

    #[test]
    fn who_is_put_off_repeats_with_the_same_key_and_nobody_comes_after_the_end() {
        let mut buyers = buyers(400, true);
        let (ticket, first) = request(&mut buyers, 0).expect("a request");
        buyers.answered(ticket, 5, &Answer { status: 503, body: br#"{"code":"overloaded"}"# });
        let later = 1_500_000_000;
        let (_, second) = request(&mut buyers, later).expect("a request");
        assert_eq!(first, second);
        assert!(request(&mut buyers, later).is_none());
        assert_eq!(buyers.unfinished(), 1);
    }
}

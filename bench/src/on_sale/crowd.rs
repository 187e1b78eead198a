//! The crowd: people who join the waiting room, wait for their turn, enter and buy a block of seats each.
//!
//! They behave as browsers do: they retry with the same key, respect `Retry-After`, and use another replica
//! when one is down. Their answers are kept and compared afterwards.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use uuid::Uuid;

use super::client::{CrowdClient, LostAnswer};
use crate::checker::Findings;
use crate::http::{CompleteAnswer, id_of, number_after, text_after};
use crate::purchase::{PurchaseStep, Request};
use crate::random::Random;
use crate::report::ReportRow;
use crate::world::{Show, lock};

/// Timeout of one person's step; exceeding it is a violation.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum pause before a retry, also for a longer `Retry-After`: it bounds the duration of the run.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Pause after a lost answer, and polling interval.
const SHORT_PAUSE: Duration = Duration::from_millis(20);
/// Refusal codes that concern the seats, not overload.
const SEAT_REFUSALS: [&str; 4] = ["seats_taken", "seats_locked", "hold_expired", "still_running"];
/// One in this many people first tries seats that are already sold.
const TRIES_SOLD_SEATS_ONE_IN: u64 = 8;

/// A person with a ticket of the waiting room.
#[derive(Clone, Debug)]
pub struct Person {
    pub visitor: String,
    pub number: u64,
    pub ticket: String,
    /// Position in the line: the ticket number until the draw.
    pub place: u64,
}

/// A person's admission.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    pub place: u64,
    pub at: Instant,
}

/// Blocks of seats: free and sold ones.
#[derive(Default)]
struct Blocks {
    free: Vec<Range<u32>>,
    sold: Vec<(Range<u32>, Uuid)>,
}

/// The people and the results of their requests.
pub struct Crowd<'a> {
    pub addresses: &'a [SocketAddr],
    show: Show,
    blocks: Mutex<Blocks>,
    total: usize,
    /// Number of positions called so far, read from the waiting room's counter in Redis.
    pub called: AtomicU64,
    next: AtomicUsize,
    sold: AtomicU32,
    /// Number of refusals by status and code.
    refusals: Mutex<BTreeMap<(u16, String), u64>>,
    found: Mutex<Findings>,
    /// Set when the sale ends early; waiting people stop.
    is_over: AtomicBool,
    pub admissions: Mutex<Vec<Admission>>,
    cut_off: AtomicU64,
    pub late: AtomicU64,
    turned_away: AtomicU64,
}

impl<'a> Crowd<'a> {
    /// Creates an empty crowd and splits the seats into blocks of `each`.
    pub fn new(addresses: &'a [SocketAddr], show: Show, each: u32) -> Self {
        // Blocks are taken from the end.
        let blocks = (0..show.seats).step_by(each as usize).map(|first| first..show.seats.min(first + each));
        let free: Vec<Range<u32>> = blocks.collect();
        let total = free.len();
        Self {
            addresses,
            show,
            blocks: Mutex::new(Blocks { free, sold: Vec::new() }),
            total,
            called: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            sold: AtomicU32::new(0),
            refusals: Mutex::default(),
            found: Mutex::default(),
            is_over: AtomicBool::new(false),
            admissions: Mutex::default(),
            cut_off: AtomicU64::new(0),
            late: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        }
    }

    /// Returns the share of blocks sold so far.
    pub fn progress(&self) -> f64 {
        f64::from(self.sold.load(Ordering::Relaxed)) / self.total as f64
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns `true` when the sale was ended or every block is sold.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.sold.load(Ordering::Relaxed) as usize >= self.total
    }

    pub fn bought(&self) -> Vec<(u32, Uuid)> {
        let blocks = lock(&self.blocks);
        blocks.sold.iter().flat_map(|(seats, booking)| seats.clone().map(|seat| (seat, *booking))).collect()
    }

    /// Describes the refusals: count, status and code.
    pub fn refusal_lines(&self) -> Vec<String> {
        lock(&self.refusals).iter().map(|((status, code), count)| format!("{count} × {status} {code}")).collect()
    }

    pub fn add_figures(&self, row: ReportRow) -> ReportRow {
        row.with("sold", self.bought().len())
            .with("admitted", lock(&self.admissions).len())
            .with("late", self.late.load(Ordering::Relaxed))
            .with("turned_away", self.turned_away.load(Ordering::Relaxed))
            .with("cut_off", self.cut_off.load(Ordering::Relaxed))
    }

    pub fn findings(&self) -> Findings {
        std::mem::take(&mut lock(&self.found))
    }

    pub fn add_violation(&self, describe: impl FnOnce() -> String) {
        lock(&self.found).add(describe);
    }

    /// Sends a request and retries it until the answer is neither overload nor `still_running`.
    fn send_until_answered(
        &self,
        client: &mut CrowdClient<'_>,
        request: &Request,
        visitor: &str,
        headers: &str,
    ) -> Result<CompleteAnswer> {
        let request = request.bytes(visitor, headers);
        let began = Instant::now();
        loop {
            let pause = match client.send(&request) {
                Ok(response) => {
                    self.check_refusal(&response);
                    let code = text_after(&response.body, "code").unwrap_or_default();
                    if !matches!(response.status, 429 | 503) && code != "still_running" {
                        return Ok(response);
                    }
                    Duration::from_secs(response.retry_after.unwrap_or(1)).min(LONGEST_PAUSE)
                }
                Err(lost) => {
                    self.count_lost(lost);
                    SHORT_PAUSE
                }
            };
            if began.elapsed() > TIMEOUT {
                bail!("no answer within {} s", TIMEOUT.as_secs());
            }
            std::thread::sleep(pause);
        }
    }

    /// Counts a refusal. It must have a known code, and a `Retry-After` header if it reports overload.
    fn check_refusal(&self, response: &CompleteAnswer) {
        if response.status < 400 {
            return;
        }
        let code = text_after(&response.body, "code").unwrap_or("no code").to_owned();
        let is_valid = match response.status {
            429 | 503 => response.retry_after.is_some(),
            _ => SEAT_REFUSALS.contains(&code.as_str()),
        };
        if !is_valid {
            self.add_violation(|| {
                format!("refused with {}, Retry-After {:?}", describe(response), response.retry_after)
            });
        }
        *lock(&self.refusals).entry((response.status, code)).or_default() += 1;
    }

    fn count_lost(&self, lost: LostAnswer) {
        if lost == LostAnswer::CutOff {
            self.cut_off.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Builds a request that joins or enters the waiting room.
    fn queue_request(&self, key: &'static str) -> Request {
        Request { method: "POST", path: super::queue_of(&self.show), body: String::new(), key: key.into() }
    }

    /// Runs `work` in parallel workers, each with a client.
    fn in_workers(&self, workers: usize, work: impl Fn(&mut CrowdClient<'_>, &mut Random) + Sync) {
        std::thread::scope(|threads| {
            for worker in 0..workers {
                let work = &work;
                threads.spawn(move || work(&mut CrowdClient::new(self.addresses, worker), &mut Random::fresh()));
            }
        });
    }

    /// Lets `people` persons join.
    pub fn join(&self, people: usize, workers: usize) -> Vec<Person> {
        let (left, joined) = (AtomicUsize::new(people), Mutex::new(Vec::with_capacity(people)));
        self.in_workers(workers, |client, random| {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                match self.join_queue(client, random.hex()) {
                    Ok(person) => lock(&joined).push(person),
                    Err(error) => self.add_violation(|| format!("a person could not join: {error:#}")),
                }
            }
        });
        std::mem::take(&mut lock(&joined))
    }

    fn join_queue(&self, client: &mut CrowdClient<'_>, visitor: String) -> Result<Person> {
        let response = self.send_until_answered(client, &self.queue_request("join"), &visitor, "")?;
        let number = number_after(&response.body, "number").context("a ticket without a number")?;
        let ticket = text_after(&response.body, "ticket").context("no ticket")?.to_owned();
        Ok(Person { visitor, number, ticket, place: number })
    }

    /// Waits until a person's position is called. Returns `false` when the sale ended first.
    fn wait_for_turn(&self, person: &Person) -> bool {
        while self.called.load(Ordering::Relaxed) <= person.place {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(SHORT_PAUSE);
        }
        true
    }

    /// Presents the ticket until the person is admitted. Returns the pass; `None` when the sale ended first.
    fn enter(&self, client: &mut CrowdClient<'_>, person: &Person) -> Result<Option<String>> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let request = self.queue_request("come");
        let (began, mut was_late) = (Instant::now(), false);
        while !self.is_over() {
            let response = self.send_until_answered(client, &request, &person.visitor, &ticket)?;
            let state = text_after(&response.body, "state").unwrap_or("no state").to_owned();
            match state.as_str() {
                "INSIDE" => {
                    lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
                    self.late.fetch_add(u64::from(was_late), Ordering::Relaxed);
                    return Ok(Some(text_after(&response.body, "pass").context("admitted without a pass")?.to_owned()));
                }
                "WAITING" | "CALLED" => {}
                "LATE" => was_late = true,
                other => bail!("the waiting room answers {other}"),
            }
            if began.elapsed() > TIMEOUT {
                bail!("called and not admitted within {} s: {state}", TIMEOUT.as_secs());
            }
            std::thread::sleep(SHORT_PAUSE * 5);
        }
        Ok(None)
    }

    /// Tries to enter before the person's turn, and to hold a seat without a pass.
    pub fn jump_queue(&self, client: &mut CrowdClient<'_>, person: &Person) -> Result<()> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let response = self.send_until_answered(client, &self.queue_request("push"), &person.visitor, &ticket)?;
        if text_after(&response.body, "state") == Some("INSIDE") {
            lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
            return Ok(());
        }
        let hold = Request { key: "push".into(), ..PurchaseStep::Hold.request(self.show.id, 0..1) };
        match client.send(&hold.bytes(&person.visitor, &ticket)) {
            Ok(response) => {
                self.check_refusal(&response);
                if response.status < 400 {
                    self.add_violation(|| format!("place {} took a seat without a pass", person.place));
                }
                self.turned_away.fetch_add(1, Ordering::Relaxed);
            }
            Err(lost) => self.count_lost(lost),
        }
        Ok(())
    }

    /// Admits people in turn and lets them buy until all is sold or the line is empty.
    pub fn buy(&self, people: &[Person], workers: usize) {
        self.in_workers(workers, |client, random| {
            while let Some(person) = people.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                if !self.wait_for_turn(person) {
                    return;
                }
                if let Err(error) = self.buy_block(client, person, random) {
                    self.add_violation(|| format!("place {} could not buy: {error:#}", person.place));
                }
            }
        });
        self.end();
    }

    fn buy_block(&self, client: &mut CrowdClient<'_>, person: &Person, random: &mut Random) -> Result<()> {
        let Some(pass) = self.enter(client, person)? else { return Ok(()) };
        let mut tries = 0;
        let began = Instant::now();
        while !self.is_over() {
            if began.elapsed() > TIMEOUT {
                bail!("admitted, and neither seats nor the end of the sale within {} s", TIMEOUT.as_secs());
            }
            tries += 1;
            let tries_sold_seats = tries == 1 && random.below(TRIES_SOLD_SEATS_ONE_IN) == 0;
            let (block, was_free) = {
                let mut blocks = lock(&self.blocks);
                match tries_sold_seats.then(|| blocks.sold.len() as u64).filter(|sold| *sold > 0) {
                    Some(sold) => (blocks.sold[random.below(sold) as usize].0.clone(), false),
                    None => match blocks.free.pop() {
                        Some(block) => (block, true),
                        None => (0..0, false),
                    },
                }
            };
            if block.is_empty() {
                // All blocks are in use; one may become free again.
                std::thread::sleep(SHORT_PAUSE);
                continue;
            }
            match self.try_purchase(client, person, &pass, block.clone(), tries) {
                Ok(Some(booking)) => {
                    lock(&self.blocks).sold.push((block, booking));
                    self.sold.fetch_add(u32::from(was_free), Ordering::Relaxed);
                    return Ok(());
                }
                outcome => {
                    if was_free {
                        lock(&self.blocks).free.push(block);
                    }
                    outcome?;
                }
            }
        }
        Ok(())
    }

    /// Holds, checks out and pays. Returns `None` when the seats are not available.
    fn try_purchase(
        &self,
        client: &mut CrowdClient<'_>,
        person: &Person,
        pass: &str,
        seats: Range<u32>,
        tries: u32,
    ) -> Result<Option<Uuid>> {
        let (visitor, show) = (&person.visitor, self.show.id);
        // The keys of a person's tries differ.
        let step = |step: PurchaseStep| {
            let request = step.request(show, seats.clone());
            Request { key: format!("{}{tries}", request.key).into(), ..request }
        };
        let pass = format!("Queue-Pass: {pass}\r\n");
        let response = self.send_until_answered(client, &step(PurchaseStep::Hold), visitor, &pass)?;
        if response.status != 201 {
            return Ok(None);
        }
        let hold = id_in(&response)?;
        let response = self.send_until_answered(client, &step(PurchaseStep::Book(hold)), visitor, "")?;
        if response.status != 201 {
            // Release the hold: it would block the next buyer.
            let path = format!("/api/v1/shows/{show}/holds/{hold}");
            let key = format!("drop{tries}").into();
            let release = Request { method: "DELETE", path, body: String::new(), key };
            self.send_until_answered(client, &release, visitor, "")?;
            return Ok(None);
        }
        let booking = id_in(&response)?;
        let mut response = self.send_until_answered(client, &step(PurchaseStep::Pay(booking)), visitor, "")?;
        let poll = PurchaseStep::Poll(booking).request(show, seats);
        let began = Instant::now();
        loop {
            match text_after(&response.body, "state") {
                Some("CONFIRMED") => return Ok(Some(booking)),
                Some("CANCELLED" | "EXPIRED") => return Ok(None),
                _ if began.elapsed() > TIMEOUT => bail!("booking {booking} is not settled: {}", describe(&response)),
                _ => std::thread::sleep(SHORT_PAUSE * 10),
            }
            response = self.send_until_answered(client, &poll, visitor, "")?;
        }
    }
}

fn id_in(response: &CompleteAnswer) -> Result<Uuid> {
    id_of(&response.body).with_context(|| format!("no id in {}", describe(response)))
}

/// Describes an answer: status and the start of the body.
fn describe(response: &CompleteAnswer) -> String {
    let text: String = String::from_utf8_lossy(&response.body).chars().take(200).collect();
    format!("{} {text}", response.status)
}

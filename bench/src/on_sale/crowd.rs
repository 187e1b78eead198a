//! The crowd: people who join, wait for their turn, come in and buy a block of seats each.
//!
//! They behave as browsers do: the same key for a repeat, back when they were told to come back, to another replica when
//! one is gone. What they were told is kept, and compared afterwards.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use uuid::Uuid;

use super::client::{Client, Lost, Told};
use super::requests::{anywhere, id_of, request, words};
use crate::checker::Findings;
use crate::http::{number_after, text_after};
use crate::random::Random;
use crate::report::Row;
use crate::world::Show;

/// Somebody who gets no answer for so long gives up, and that is a violation.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longest pause before somebody asks again, whatever they were told: the proof is to end.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a lost answer, and between two looks at something.
const SHORT_PAUSE: Duration = Duration::from_millis(20);
/// One in so many tries seats that are somebody's first.
const GREEDY: u64 = 8;
/// Refusals that say whose the seats are, not that there is too much to do.
const ABOUT_SEATS: [&str; 4] = ["seats_taken", "seats_locked", "hold_expired", "still_running"];

/// Somebody with a place in line.
#[derive(Clone, Debug)]
pub struct Person {
    pub visitor: String,
    pub number: u64,
    pub ticket: String,
    /// Told after opening.
    pub place: u64,
}

/// Somebody who was let in.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    pub place: u64,
    pub at: Instant,
}

/// Blocks of seats: free ones, and those that are somebody's.
#[derive(Default)]
struct Blocks {
    free: Vec<Vec<u32>>,
    sold: Vec<(Vec<u32>, Uuid)>,
}

/// Everybody, and what they heard.
pub struct Crowd<'a> {
    addresses: &'a [SocketAddr],
    show: Show,
    blocks: Mutex<Blocks>,
    total: usize,
    /// Places called so far, as the door's own counter says.
    pub called: AtomicU64,
    next: AtomicUsize,
    sold: AtomicU32,
    /// Answers that were refusals, by status and code.
    refusals: Mutex<BTreeMap<(u16, String), u64>>,
    found: Mutex<Findings>,
    /// Nobody is to wait any longer.
    is_over: AtomicBool,
    pub admissions: Mutex<Vec<Admission>>,
    cut_off: AtomicU64,
    pub late: AtomicU64,
    turned_away: AtomicU64,
}

impl<'a> Crowd<'a> {
    /// Nobody yet; the seats in blocks of so many.
    pub fn new(addresses: &'a [SocketAddr], show: Show, each: u32) -> Self {
        let seats: Vec<u32> = (0..show.seats).collect();
        // Taken from the end: the first blocks go last.
        let free: Vec<Vec<u32>> = seats.chunks(each as usize).map(<[u32]>::to_vec).collect();
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

    /// Where the replicas are.
    pub const fn addresses(&self) -> &'a [SocketAddr] {
        self.addresses
    }

    /// Blocks sold so far, of all.
    pub fn progress(&self) -> f64 {
        f64::from(self.sold.load(Ordering::Relaxed)) / self.total as f64
    }

    /// Ends the sale, whatever is sold.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether nothing more will be sold.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.sold.load(Ordering::Relaxed) as usize >= self.total
    }

    /// Seat and booking of everybody who was told that they are theirs.
    pub fn bought(&self) -> Vec<(u32, Uuid)> {
        let blocks = lock(&self.blocks);
        blocks.sold.iter().flat_map(|(seats, booking)| seats.iter().map(|seat| (*seat, *booking))).collect()
    }

    /// Refusals in words: how often which.
    pub fn refused(&self) -> Vec<String> {
        lock(&self.refusals).iter().map(|((status, code), count)| format!("{count} × {status} {code}")).collect()
    }

    /// What became of it, in figures.
    pub fn told(&self, row: Row) -> Row {
        row.with("sold", self.bought().len())
            .with("admitted", lock(&self.admissions).len())
            .with("late", self.late.load(Ordering::Relaxed))
            .with("turned_away", self.turned_away.load(Ordering::Relaxed))
            .with("cut_off", self.cut_off.load(Ordering::Relaxed))
    }

    pub fn findings(&self) -> Findings {
        std::mem::take(&mut lock(&self.found))
    }

    pub fn complain(&self, words: impl FnOnce() -> String) {
        lock(&self.found).add(words);
    }

    /// So many people join, side by side.
    pub fn join(&self, people: usize, side_by_side: usize) -> Vec<Person> {
        let (left, joined) = (AtomicUsize::new(people), Mutex::new(Vec::with_capacity(people)));
        std::thread::scope(|threads| {
            for worker in 0..side_by_side {
                let (left, joined) = (&left, &joined);
                threads.spawn(move || {
                    let (mut client, mut random) = (Client::new(self.addresses, worker), Random::fresh());
                    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                        match self.one_joins(&mut client, random.hex()) {
                            Ok(person) => lock(joined).push(person),
                            Err(error) => self.complain(|| format!("somebody could not join: {error:#}")),
                        }
                    }
                });
            }
        });
        joined.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_joins(&self, client: &mut Client<'_>, visitor: String) -> Result<Person> {
        let told = self.until_told(client, &self.request("POST", "/queue", "", &visitor, "join", ""))?;
        let number = number_after(&told.body, "number").context("a ticket without a number")?;
        let ticket = text_after(&told.body, "ticket").context("no ticket")?.to_owned();
        Ok(Person { visitor, number, ticket, place: number })
    }

    /// Everybody whose turn it is comes in and buys, side by side, until all is sold or nobody is left.
    pub fn buy(&self, people: &[Person], side_by_side: usize) {
        std::thread::scope(|threads| {
            for worker in 0..side_by_side {
                threads.spawn(move || {
                    let (mut client, mut random) = (Client::new(self.addresses, worker), Random::fresh());
                    while let Some(person) = people.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                        if !self.waits_for_turn(person) {
                            return;
                        }
                        if let Err(error) = self.one_buys(&mut client, person, &mut random) {
                            self.complain(|| format!("place {} was left alone: {error:#}", person.place));
                        }
                    }
                });
            }
        });
        self.end();
    }

    /// Whether their turn came before all was sold.
    fn waits_for_turn(&self, person: &Person) -> bool {
        while self.called.load(Ordering::Relaxed) <= person.place {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(SHORT_PAUSE);
        }
        true
    }

    fn one_buys(&self, client: &mut Client<'_>, person: &Person, random: &mut Random) -> Result<()> {
        let Some(pass) = self.comes_in(client, person)? else { return Ok(()) };
        let mut tries = 0;
        let began = Instant::now();
        while !self.is_over() {
            if began.elapsed() > PATIENCE {
                bail!("inside, and neither seats nor the end of the sale within {} s", PATIENCE.as_secs());
            }
            tries += 1;
            let greedy = tries == 1 && random.below(GREEDY) == 0;
            let (block, is_mine) = {
                let mut blocks = lock(&self.blocks);
                match greedy.then(|| blocks.sold.len() as u64).filter(|sold| *sold > 0) {
                    Some(sold) => (blocks.sold[random.below(sold) as usize].0.clone(), false),
                    None => match blocks.free.pop() {
                        Some(block) => (block, true),
                        None => (Vec::new(), false),
                    },
                }
            };
            if block.is_empty() {
                // All are in somebody's hands, and may come back.
                std::thread::sleep(SHORT_PAUSE);
                continue;
            }
            match self.sale(client, person, &pass, &block, tries) {
                Ok(Some(booking)) => {
                    lock(&self.blocks).sold.push((block, booking));
                    self.sold.fetch_add(u32::from(is_mine), Ordering::Relaxed);
                    return Ok(());
                }
                outcome => {
                    if is_mine {
                        lock(&self.blocks).free.push(block);
                    }
                    outcome?;
                }
            }
        }
        Ok(())
    }

    /// Comes to the door until they are in: their pass; `None` when all is sold.
    fn comes_in(&self, client: &mut Client<'_>, person: &Person) -> Result<Option<String>> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let request = self.request("POST", "/queue", "", &person.visitor, "come", &ticket);
        let (began, mut was_late) = (Instant::now(), false);
        while !self.is_over() {
            let told = self.until_told(client, &request)?;
            let state = text_after(&told.body, "state").unwrap_or("no state").to_owned();
            match state.as_str() {
                "INSIDE" => {
                    lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
                    self.late.fetch_add(u64::from(was_late), Ordering::Relaxed);
                    return Ok(Some(text_after(&told.body, "pass").context("inside without a pass")?.to_owned()));
                }
                "WAITING" | "CALLED" => {}
                "LATE" => was_late = true,
                other => bail!("at the door they are {other}"),
            }
            if began.elapsed() > PATIENCE {
                bail!("called and not let in within {} s: {state}", PATIENCE.as_secs());
            }
            std::thread::sleep(SHORT_PAUSE * 5);
        }
        Ok(None)
    }

    /// Somebody tries to come in before their turn, and to take seats without a pass.
    pub fn pushes(&self, client: &mut Client<'_>, person: &Person) -> Result<()> {
        let ticket = format!("Queue-Ticket: {}\r\n", person.ticket);
        let told = self.until_told(client, &self.request("POST", "/queue", "", &person.visitor, "push", &ticket))?;
        if text_after(&told.body, "state") == Some("INSIDE") {
            lock(&self.admissions).push(Admission { place: person.place, at: Instant::now() });
            return Ok(());
        }
        let hold = self.request("POST", "/holds", r#"{"seats":[0]}"#, &person.visitor, "push", &ticket);
        match client.ask(&hold) {
            Ok(told) => {
                self.note(&told);
                if told.status < 400 {
                    self.complain(|| format!("place {} took a seat without a pass", person.place));
                }
                self.turned_away.fetch_add(1, Ordering::Relaxed);
            }
            Err(lost) => self.note_loss(lost),
        }
        Ok(())
    }

    /// Holds, checks out and pays. `None`: the seats are not to be had.
    fn sale(
        &self,
        client: &mut Client<'_>,
        person: &Person,
        pass: &str,
        seats: &[u32],
        tries: u32,
    ) -> Result<Option<Uuid>> {
        let visitor = &person.visitor;
        let seats = seats.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let pass = format!("Queue-Pass: {pass}\r\n");
        let body = format!(r#"{{"seats":[{seats}]}}"#);
        let told =
            self.until_told(client, &self.request("POST", "/holds", &body, visitor, &format!("hold{tries}"), &pass))?;
        if told.status != 201 {
            return Ok(None);
        }
        let hold = id_of(&told)?;
        let buyer = r#"{"name":"Ann Example","email":"ann@example.org"}"#;
        let body = format!(r#"{{"show":"{}","hold":"{hold}","buyer":{buyer}}}"#, self.show.id);
        let told =
            self.until_told(client, &anywhere("POST", "/api/v1/bookings", &body, visitor, &format!("book{tries}")))?;
        if told.status != 201 {
            // What is left of the hold would be in the way of the next.
            let path = format!("/holds/{hold}");
            self.until_told(client, &self.request("DELETE", &path, "", visitor, &format!("drop{tries}"), ""))?;
            return Ok(None);
        }
        let booking = id_of(&told)?;
        let path = format!("/api/v1/bookings/{booking}");
        let pay = anywhere(
            "POST",
            &format!("{path}/confirm"),
            r#"{"payment_token":"tok_paid"}"#,
            visitor,
            &format!("pay{tries}"),
        );
        let mut told = self.until_told(client, &pay)?;
        let began = Instant::now();
        loop {
            match text_after(&told.body, "state") {
                Some("CONFIRMED") => return Ok(Some(booking)),
                Some("CANCELLED" | "EXPIRED") => return Ok(None),
                _ if began.elapsed() > PATIENCE => bail!("booking {booking} is not settled: {}", words(&told)),
                _ => std::thread::sleep(SHORT_PAUSE * 10),
            }
            told = self.until_told(client, &anywhere("GET", &path, "", visitor, "look"))?;
        }
    }

    /// Asks until there is an answer that is not "later".
    fn until_told(&self, client: &mut Client<'_>, request: &[u8]) -> Result<Told> {
        let began = Instant::now();
        loop {
            let pause = match client.ask(request) {
                Ok(told) => {
                    self.note(&told);
                    let code = text_after(&told.body, "code").unwrap_or_default();
                    if !matches!(told.status, 429 | 503) && code != "still_running" {
                        return Ok(told);
                    }
                    Duration::from_secs(told.retry_after.unwrap_or(1)).min(LONGEST_PAUSE)
                }
                Err(lost) => {
                    self.note_loss(lost);
                    SHORT_PAUSE
                }
            };
            if began.elapsed() > PATIENCE {
                bail!("no answer within {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(pause);
        }
    }

    /// Every refusal says why, and if it is about too much, when to come back.
    fn note(&self, told: &Told) {
        if told.status < 400 {
            return;
        }
        let code = text_after(&told.body, "code").unwrap_or("no code").to_owned();
        let is_in_order = match told.status {
            429 | 503 => told.retry_after.is_some(),
            _ => ABOUT_SEATS.contains(&code.as_str()),
        };
        if !is_in_order {
            self.complain(|| format!("refused with {}, come back after {:?}", words(told), told.retry_after));
        }
        *lock(&self.refusals).entry((told.status, code)).or_default() += 1;
    }

    fn note_loss(&self, lost: Lost) {
        if lost == Lost::CutOff {
            self.cut_off.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request about the show.
    fn request(&self, method: &str, path: &str, body: &str, visitor: &str, key: &str, headers: &str) -> Vec<u8> {
        let path = format!("/api/v1/shows/{}{path}", self.show.id);
        request(method, &path, body, visitor, key, headers)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The crowd: people who join, wait for their turn, come in and buy a block of seats each.
//!
//! They behave as browsers do: the same key for a repeat, back when they were told to come back, to another replica when
//! one is gone. What they were told is kept, and compared afterwards.

mod buying;
mod door;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use uuid::Uuid;

use super::client::{Client, Lost, Told};
use super::requests::{request, words};
use crate::checker::Findings;
use crate::http::text_after;
use crate::report::Row;
use crate::world::Show;

/// Somebody who gets no answer for so long gives up, and that is a violation.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longest pause before somebody asks again, whatever they were told: the proof is to end.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a lost answer, and between two looks at something.
const SHORT_PAUSE: Duration = Duration::from_millis(20);
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

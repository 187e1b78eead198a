//! The crowd: people who join the waiting room, wait for their turn, enter and buy a block of seats each.
//!
//! They behave as browsers do: they retry with the same key, respect `Retry-After`, and use another replica
//! when one is down. Their answers are kept and compared afterwards.

mod admission;
mod purchase;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use uuid::Uuid;

use super::client::{CrowdAnswer, CrowdClient, LostAnswer};
use super::requests::{describe, request_with_headers};
use crate::checker::Findings;
use crate::http::text_after;
use crate::report::ReportRow;
use crate::world::Show;

/// Timeout of one person's step; exceeding it is a violation.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum pause before a retry, also for a longer `Retry-After`: it bounds the duration of the run.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Pause after a lost answer, and polling interval.
const SHORT_PAUSE: Duration = Duration::from_millis(20);
/// Refusal codes that concern the seats, not overload.
const SEAT_REFUSALS: [&str; 4] = ["seats_taken", "seats_locked", "hold_expired", "still_running"];

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
    free: Vec<Vec<u32>>,
    sold: Vec<(Vec<u32>, Uuid)>,
}

/// The people and the results of their requests.
pub struct Crowd<'a> {
    addresses: &'a [SocketAddr],
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
        let seats: Vec<u32> = (0..show.seats).collect();
        // Blocks are taken from the end.
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

    /// Returns the addresses of the replicas.
    pub const fn addresses(&self) -> &'a [SocketAddr] {
        self.addresses
    }

    /// Returns the share of blocks sold so far.
    pub fn progress(&self) -> f64 {
        f64::from(self.sold.load(Ordering::Relaxed)) / self.total as f64
    }

    /// Ends the sale.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns `true` when the sale was ended or every block is sold.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.sold.load(Ordering::Relaxed) as usize >= self.total
    }

    /// Returns seat and booking of every confirmed purchase.
    pub fn bought(&self) -> Vec<(u32, Uuid)> {
        let blocks = lock(&self.blocks);
        blocks.sold.iter().flat_map(|(seats, booking)| seats.iter().map(|seat| (*seat, *booking))).collect()
    }

    /// Describes the refusals: count, status and code.
    pub fn refusal_lines(&self) -> Vec<String> {
        lock(&self.refusals).iter().map(|((status, code), count)| format!("{count} × {status} {code}")).collect()
    }

    /// Adds the figures of the crowd to a row.
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
    fn send_until_answered(&self, client: &mut CrowdClient<'_>, request: &[u8]) -> Result<CrowdAnswer> {
        let began = Instant::now();
        loop {
            let pause = match client.send(request) {
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
    fn check_refusal(&self, response: &CrowdAnswer) {
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

    /// Builds a request about the show.
    fn request(&self, method: &str, path: &str, body: &str, visitor: &str, key: &str, headers: &str) -> Vec<u8> {
        let path = format!("/api/v1/shows/{}{path}", self.show.id);
        request_with_headers(method, &path, body, visitor, key, headers)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

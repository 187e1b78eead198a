//! Observations of visitors and addresses in each show, kept in memory for half an hour.
//!
//! Each replica observes its own requests; a number below its threshold on every replica is not reported.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::fairness::{Rhythm, UNUSUAL_WINDOW_MS, UnusualCounts, UnusualKind, UnusualSubject};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use strum::VariantArray;
use uuid::Uuid;

use super::LimitedCaller;

/// Maximum of visitors and addresses watched, by show. Beyond, those idle for [`QUIET_MS`] are evicted;
/// new ones are not watched if there are none.
const MAX_WATCHED: usize = 20_000;
/// Idle time after which a watch may be evicted, milliseconds.
const QUIET_MS: i64 = MINUTE_MS;
/// Minimum time between two scans for idle watches, milliseconds.
const SCAN_EVERY_MS: i64 = SECOND_MS;
/// Maximum of distinct visitors counted for an address; there may be more.
const MAX_VISITORS: usize = 128;

/// The visitor or address that is watched, and the show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    pub(super) show: Uuid,
    pub(super) subject: UnusualSubject,
    /// The owner, or the address.
    pub(super) name: String,
}

/// An unusual observation that is not written yet.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) key: WatchKey,
    pub(super) kind: UnusualKind,
    /// The observed count, and how much of it is not written yet.
    pub(super) total: u32,
    pub(super) unwritten: u32,
    pub(super) since: Timestamp,
    pub(super) last: Timestamp,
    /// Owners of the visitor or address…
    pub(super) owners: Vec<String>,
    /// …and accounts they were signed in to.
    pub(super) accounts: Vec<Uuid>,
}

struct Watch {
    since: Timestamp,
    last: Timestamp,
    seen: UnusualCounts,
    /// Intervals between attempts, of a visitor only.
    rhythm: Option<Box<Rhythm>>,
    /// Distinct visitors, of an address only.
    visitors: HashSet<String>,
    /// Accounts they were signed in to.
    accounts: HashSet<Uuid>,
    /// The counts written so far, in the order of [`UnusualKind::VARIANTS`].
    written: [u32; UnusualKind::VARIANTS.len()],
}

impl Watch {
    fn new(subject: UnusualSubject, now: Timestamp) -> Self {
        Self {
            since: now,
            last: now,
            seen: UnusualCounts::default(),
            rhythm: (subject == UnusualSubject::Visitor).then(Box::default),
            visitors: HashSet::new(),
            accounts: HashSet::new(),
            written: [0; UnusualKind::VARIANTS.len()],
        }
    }

    fn note_attempt(&mut self, trying: &LimitedCaller<'_>, now: Timestamp) {
        if let Some(rhythm) = &mut self.rhythm {
            let is_inhuman = rhythm.note(now);
            self.seen.inhuman = self.seen.inhuman.saturating_add(u32::from(is_inhuman));
        } else if self.visitors.len() < MAX_VISITORS && !self.visitors.contains(trying.owner) {
            self.visitors.insert(trying.owner.to_owned());
            self.seen.visitors += 1;
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.since) >= UNUSUAL_WINDOW_MS
    }

    fn written(&self, kind: UnusualKind) -> u32 {
        index_of(kind).and_then(|index| self.written.get(index)).copied().unwrap_or(0)
    }

    fn mark_written(&mut self, kind: UnusualKind, total: u32) {
        if let Some(written) = index_of(kind).and_then(|index| self.written.get_mut(index)) {
            *written = total;
        }
    }

    fn sighting(&self, key: &WatchKey, kind: UnusualKind, total: u32) -> Sighting {
        let owners = match key.subject {
            UnusualSubject::Visitor => vec![key.name.clone()],
            UnusualSubject::Address => self.visitors.iter().cloned().collect(),
        };
        Sighting {
            key: key.clone(),
            kind,
            total,
            unwritten: total.saturating_sub(self.written(kind)),
            since: self.since,
            last: self.last,
            owners,
            accounts: self.accounts.iter().copied().collect(),
        }
    }
}

fn index_of(kind: UnusualKind) -> Option<usize> {
    UnusualKind::VARIANTS.iter().position(|one| *one == kind)
}

/// Treatment of a visitor or address without a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwatched {
    Watch,
    Ignore,
}

#[derive(Default)]
pub(super) struct Watches(Mutex<WatchTable>);

#[derive(Default)]
struct WatchTable {
    by_key: HashMap<WatchKey, Watch>,
    scanned_at: i64,
    /// The position at which [`Watches::without_purchase`] continues.
    next_check: usize,
}

impl Watches {
    /// Records an attempt at seats.
    pub(super) fn record_attempt(&self, trying: &LimitedCaller<'_>, now: Timestamp) {
        self.record(trying, now, Unwatched::Watch, |watch, trying| watch.note_attempt(trying, now));
    }

    /// Records a refused attempt. It creates no watch, otherwise refusals would fill the table.
    pub(super) fn record_refused_attempt(&self, trying: &LimitedCaller<'_>, now: Timestamp) {
        self.record(trying, now, Unwatched::Ignore, |watch, trying| watch.note_attempt(trying, now));
    }

    /// Records a granted hold.
    pub(super) fn record_hold(&self, trying: &LimitedCaller<'_>, now: Timestamp) {
        self.record(trying, now, Unwatched::Watch, |watch, _| watch.seen.holds = watch.seen.holds.saturating_add(1));
    }

    /// Records a wrong or spent solution of a puzzle.
    pub(super) fn record_wrong_solution(&self, trying: &LimitedCaller<'_>, now: Timestamp) {
        self.record(trying, now, Unwatched::Watch, |watch, _| {
            watch.seen.puzzles = watch.seen.puzzles.saturating_add(1)
        });
    }

    fn record(
        &self,
        trying: &LimitedCaller<'_>,
        now: Timestamp,
        unwatched: Unwatched,
        note: impl Fn(&mut Watch, &LimitedCaller<'_>),
    ) {
        let mut watched = self.lock();
        for (subject, name) in
            [(UnusualSubject::Visitor, trying.owner), (UnusualSubject::Address, trying.address.0.as_str())]
        {
            let key = WatchKey { show: trying.show, subject, name: name.to_owned() };
            let is_new = !watched.by_key.contains_key(&key);
            let is_full = watched.by_key.len() >= MAX_WATCHED;
            if is_new && (unwatched == Unwatched::Ignore || is_full && !watched.make_room(now)) {
                continue;
            }
            let watch = watched.by_key.entry(key).or_insert_with(|| Watch::new(subject, now));
            if watch.is_over(now) {
                *watch = Watch::new(subject, now);
            }
            watch.last = now;
            if let Some(account) = trying.account
                && watch.accounts.len() < MAX_VISITORS
            {
                watch.accounts.insert(account);
            }
            note(watch, trying);
        }
    }

    /// The unusual observations that are not written, at most `most`. `NeverBought` needs a first observation at least
    /// `pay_ms` ago, because a payment may be in progress. Also drops watches older than the window.
    pub(super) fn unusual(&self, now: Timestamp, pay_ms: i64, most: usize) -> Vec<Sighting> {
        let mut watched = self.lock();
        watched.by_key.retain(|_, watch| now.since(watch.last) < UNUSUAL_WINDOW_MS);
        let mut found = Vec::new();
        for (key, watch) in &watched.by_key {
            for &kind in UnusualKind::VARIANTS {
                if kind == UnusualKind::NeverBought && now.since(watch.since) < pay_ms {
                    continue;
                }
                let total = kind.of(key.subject, watch.seen).filter(|total| *total > watch.written(kind));
                let Some(total) = total else { continue };
                found.push(watch.sighting(key, kind, total));
                if found.len() >= most {
                    return found;
                }
            }
        }
        found
    }

    /// Written `NeverBought` observations, at most `most`, to be checked for later purchases. Each call returns the
    /// next ones; all get their turn eventually, as the table changes in between.
    pub(super) fn without_purchase(&self, most: usize) -> Vec<Sighting> {
        let mut watched = self.lock();
        let WatchTable { by_key, next_check, .. } = &mut *watched;
        let written: Vec<_> = by_key.iter().filter(|(_, watch)| watch.written(UnusualKind::NeverBought) > 0).collect();
        let count = most.min(written.len());
        let from = *next_check % written.len().max(1);
        *next_check = from + count;
        let turns = written.into_iter().cycle().skip(from).take(count);
        turns.map(|(key, watch)| watch.sighting(key, UnusualKind::NeverBought, watch.seen.holds)).collect()
    }

    /// Records that these observations are written.
    pub(super) fn mark_written<'a>(&self, sightings: impl Iterator<Item = &'a Sighting>) {
        let mut watched = self.lock();
        for sighting in sightings {
            // A watch that was reset meanwhile has nothing written yet; it then skips a part of its new count.
            if let Some(watch) = watched.by_key.get_mut(&sighting.key) {
                watch.mark_written(sighting.kind, watch.written(sighting.kind).max(sighting.total));
            }
        }
    }

    /// Records a purchase: the holds were not for nothing.
    pub(super) fn record_purchase(&self, key: &WatchKey) {
        if let Some(watch) = self.lock().by_key.get_mut(key) {
            watch.seen.holds = 0;
            watch.mark_written(UnusualKind::NeverBought, 0);
        }
    }

    /// Drops a watch of staff.
    pub(super) fn forget(&self, key: &WatchKey) {
        self.lock().by_key.remove(key);
    }

    // Held for a few additions, and rarely for a scan of all; never across an await.
    fn lock(&self) -> MutexGuard<'_, WatchTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchTable {
    fn make_room(&mut self, now: Timestamp) -> bool {
        if now.0 - self.scanned_at >= SCAN_EVERY_MS {
            self.scanned_at = now.0;
            self.by_key.retain(|_, watch| now.since(watch.last) < QUIET_MS);
        }
        self.by_key.len() < MAX_WATCHED
    }
}

#[cfg(test)]
mod tests;

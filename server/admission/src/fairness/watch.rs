//! What was seen of visitors and addresses in each show, in memory, for half an hour.
//!
//! Each replica sees what comes to itself; a number below its threshold at every one of them is not told.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::fairness::{Kind, Rhythm, Seen, Subject, UNUSUAL_WINDOW_MS};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::Trying;

/// Visitors and addresses watched at a time, by show. Beyond, those of whom nothing was seen for [`QUIET_MS`] make room;
/// who is new is not watched until one does.
const MAX_WATCHED: usize = 20_000;
/// Whoever did nothing for so long makes room, milliseconds.
const QUIET_MS: i64 = MINUTE_MS;
/// They are looked through for those at most once in so long, milliseconds.
const LOOK_EVERY_MS: i64 = SECOND_MS;
/// Visitors of an address that are told apart; there may be more.
const MAX_VISITORS: usize = 128;

/// Of whom something was seen, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Whose {
    pub(super) show: Uuid,
    pub(super) subject: Subject,
    /// The owner, or the address.
    pub(super) name: String,
}

/// Something unusual that was not written down yet.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) whose: Whose,
    pub(super) kind: Kind,
    /// How much of it was seen in all, and how much of that is news.
    pub(super) total: u32,
    pub(super) news: u32,
    pub(super) since: Timestamp,
    pub(super) last: Timestamp,
    /// As whom they came…
    pub(super) owners: Vec<String>,
    /// …and signed in to which accounts.
    pub(super) accounts: Vec<Uuid>,
}

struct Watch {
    since: Timestamp,
    last: Timestamp,
    seen: Seen,
    /// Of a visitor.
    rhythm: Option<Box<Rhythm>>,
    /// Of an address.
    visitors: HashSet<String>,
    /// Accounts they were signed in to.
    accounts: HashSet<Uuid>,
    /// What is written down, in the order of [`Kind::ALL`].
    written: [u32; Kind::ALL.len()],
}

impl Watch {
    fn new(subject: Subject, now: Timestamp) -> Self {
        Self {
            since: now,
            last: now,
            seen: Seen::default(),
            rhythm: (subject == Subject::Visitor).then(Box::default),
            visitors: HashSet::new(),
            accounts: HashSet::new(),
            written: [0; Kind::ALL.len()],
        }
    }

    fn note_try(&mut self, trying: &Trying<'_>, now: Timestamp) {
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

    fn written(&self, kind: Kind) -> u32 {
        place_of(kind).and_then(|place| self.written.get(place)).copied().unwrap_or(0)
    }

    fn note_written(&mut self, kind: Kind, total: u32) {
        if let Some(written) = place_of(kind).and_then(|place| self.written.get_mut(place)) {
            *written = total;
        }
    }

    fn sighting(&self, whose: &Whose, kind: Kind, total: u32) -> Sighting {
        let owners = match whose.subject {
            Subject::Visitor => vec![whose.name.clone()],
            Subject::Address => self.visitors.iter().cloned().collect(),
        };
        Sighting {
            whose: whose.clone(),
            kind,
            total,
            news: total.saturating_sub(self.written(kind)),
            since: self.since,
            last: self.last,
            owners,
            accounts: self.accounts.iter().copied().collect(),
        }
    }
}

fn place_of(kind: Kind) -> Option<usize> {
    Kind::ALL.iter().position(|one| *one == kind)
}

/// What becomes of those who were not seen yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unseen {
    Watched,
    LeftAlone,
}

/// Everybody who is watched.
#[derive(Default)]
pub(super) struct Watches(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    by_whose: HashMap<Whose, Watch>,
    looked_at: i64,
    /// Where in the table [`Watches::without_purchase`] goes on.
    asked_from: usize,
}

impl Watches {
    /// Somebody tries for seats.
    pub(super) fn tried(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, Unseen::Watched, |watch, trying| watch.note_try(trying, now));
    }

    /// Somebody tries and is refused: whoever was not seen before is no more seen now, else refusals would fill the table.
    pub(super) fn tried_in_vain(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, Unseen::LeftAlone, |watch, trying| watch.note_try(trying, now));
    }

    /// Somebody was granted a hold.
    pub(super) fn held(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, Unseen::Watched, |watch, _| watch.seen.holds = watch.seen.holds.saturating_add(1));
    }

    /// Somebody sent what solves no puzzle of theirs, or did before.
    pub(super) fn puzzled(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, Unseen::Watched, |watch, _| watch.seen.puzzles = watch.seen.puzzles.saturating_add(1));
    }

    fn see(&self, trying: &Trying<'_>, now: Timestamp, unseen: Unseen, note: impl Fn(&mut Watch, &Trying<'_>)) {
        let mut watched = self.lock();
        for (subject, name) in [(Subject::Visitor, trying.owner), (Subject::Address, trying.address.0.as_str())] {
            let whose = Whose { show: trying.show, subject, name: name.to_owned() };
            let is_new = !watched.by_whose.contains_key(&whose);
            let is_full = watched.by_whose.len() >= MAX_WATCHED;
            if is_new && (unseen == Unseen::LeftAlone || is_full && !watched.make_room(now)) {
                continue;
            }
            let watch = watched.by_whose.entry(whose).or_insert_with(|| Watch::new(subject, now));
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

    /// What is unusual and not written down, so many at most. That nothing was bought is said of nobody who was seen first
    /// less than `pay_ms` ago: they may be about to. Forgets whoever was not seen within the window.
    pub(super) fn unusual(&self, now: Timestamp, pay_ms: i64, most: usize) -> Vec<Sighting> {
        let mut watched = self.lock();
        watched.by_whose.retain(|_, watch| now.since(watch.last) < UNUSUAL_WINDOW_MS);
        let mut found = Vec::new();
        for (whose, watch) in &watched.by_whose {
            for kind in Kind::ALL {
                if kind == Kind::NeverBought && now.since(watch.since) < pay_ms {
                    continue;
                }
                let total = kind.of(whose.subject, watch.seen).filter(|total| *total > watch.written(kind));
                let Some(total) = total else { continue };
                found.push(watch.sighting(whose, kind, total));
                if found.len() >= most {
                    return found;
                }
            }
        }
        found
    }

    /// Of whom it is written down that they bought nothing, so many at most: they may have since. The next ones each time,
    /// so that everybody's turn comes, sooner or later: the table changes meanwhile.
    pub(super) fn without_purchase(&self, most: usize) -> Vec<Sighting> {
        let mut watched = self.lock();
        let Watched { by_whose, asked_from, .. } = &mut *watched;
        let written: Vec<_> = by_whose.iter().filter(|(_, watch)| watch.written(Kind::NeverBought) > 0).collect();
        let count = most.min(written.len());
        let from = *asked_from % written.len().max(1);
        *asked_from = from + count;
        let turns = written.into_iter().cycle().skip(from).take(count);
        turns.map(|(whose, watch)| watch.sighting(whose, Kind::NeverBought, watch.seen.holds)).collect()
    }

    /// These are written down.
    pub(super) fn written<'a>(&self, sightings: impl Iterator<Item = &'a Sighting>) {
        let mut watched = self.lock();
        for sighting in sightings {
            // One that began anew meanwhile has nothing written yet, and forgets a little of what was.
            if let Some(watch) = watched.by_whose.get_mut(&sighting.whose) {
                watch.note_written(sighting.kind, watch.written(sighting.kind).max(sighting.total));
            }
        }
    }

    /// Somebody bought something: their holds were for something.
    pub(super) fn bought(&self, whose: &Whose) {
        if let Some(watch) = self.lock().by_whose.get_mut(whose) {
            watch.seen.holds = 0;
            watch.note_written(Kind::NeverBought, 0);
        }
    }

    /// Nothing of it matters: who tries there works there.
    pub(super) fn forget(&self, whose: &Whose) {
        self.lock().by_whose.remove(whose);
    }

    // Held for a few additions, and once in a while for a look at all of them; never across an await.
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn make_room(&mut self, now: Timestamp) -> bool {
        if now.0 - self.looked_at >= LOOK_EVERY_MS {
            self.looked_at = now.0;
            self.by_whose.retain(|_, watch| now.since(watch.last) < QUIET_MS);
        }
        self.by_whose.len() < MAX_WATCHED
    }
}

#[cfg(test)]
mod tests;

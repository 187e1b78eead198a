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
    /// As whom they came.
    pub(super) owners: Vec<String>,
}

struct Watch {
    since: Timestamp,
    last: Timestamp,
    seen: Seen,
    /// Of a visitor.
    rhythm: Option<Box<Rhythm>>,
    /// Of an address.
    visitors: HashSet<String>,
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
            written: [0; Kind::ALL.len()],
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.since) >= UNUSUAL_WINDOW_MS
    }
}

/// Everybody who is watched.
#[derive(Default)]
pub(super) struct Watches(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    by_whose: HashMap<Whose, Watch>,
    looked_at: i64,
}

impl Watches {
    /// Somebody tries for seats.
    pub(super) fn tried(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, |watch, trying| {
            if let Some(rhythm) = &mut watch.rhythm {
                let is_inhuman = rhythm.note(now);
                watch.seen.inhuman = watch.seen.inhuman.saturating_add(u32::from(is_inhuman));
            } else if watch.visitors.len() < MAX_VISITORS && !watch.visitors.contains(trying.owner) {
                watch.visitors.insert(trying.owner.to_owned());
                watch.seen.visitors += 1;
            }
        });
    }

    /// Somebody was granted a hold.
    pub(super) fn held(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, |watch, _| watch.seen.holds = watch.seen.holds.saturating_add(1));
    }

    /// Somebody sent what solves no puzzle of theirs, or did before.
    pub(super) fn puzzled(&self, trying: &Trying<'_>, now: Timestamp) {
        self.see(trying, now, |watch, _| watch.seen.puzzles = watch.seen.puzzles.saturating_add(1));
    }

    fn see(&self, trying: &Trying<'_>, now: Timestamp, note: impl Fn(&mut Watch, &Trying<'_>)) {
        let mut watched = self.lock();
        for (subject, name) in [(Subject::Visitor, trying.owner), (Subject::Address, trying.address.0.as_str())] {
            let whose = Whose { show: trying.show, subject, name: name.to_owned() };
            if watched.by_whose.len() >= MAX_WATCHED
                && !watched.by_whose.contains_key(&whose)
                && !watched.make_room(now)
            {
                continue;
            }
            let watch = watched.by_whose.entry(whose).or_insert_with(|| Watch::new(subject, now));
            if watch.is_over(now) {
                *watch = Watch::new(subject, now);
            }
            watch.last = now;
            note(watch, trying);
        }
    }

    /// What is unusual and not written down, so many at most. Forgets whoever was not seen within the window.
    pub(super) fn unusual(&self, now: Timestamp, most: usize) -> Vec<Sighting> {
        let mut watched = self.lock();
        watched.by_whose.retain(|_, watch| now.since(watch.last) < UNUSUAL_WINDOW_MS);
        let mut found = Vec::new();
        for (whose, watch) in &watched.by_whose {
            for (kind, written) in Kind::ALL.into_iter().zip(watch.written) {
                let Some(total) = kind.of(whose.subject, watch.seen).filter(|total| *total > written) else { continue };
                let owners = match whose.subject {
                    Subject::Visitor => vec![whose.name.clone()],
                    Subject::Address => watch.visitors.iter().cloned().collect(),
                };
                let (since, last, news) = (watch.since, watch.last, total - written);
                found.push(Sighting { whose: whose.clone(), kind, total, news, since, last, owners });
                if found.len() >= most {
                    return found;
                }
            }
        }
        found
    }

    /// These are written down.
    pub(super) fn written<'a>(&self, sightings: impl Iterator<Item = &'a Sighting>) {
        let mut watched = self.lock();
        for sighting in sightings {
            let Some(watch) = watched.by_whose.get_mut(&sighting.whose) else { continue };
            // One that began anew meanwhile has nothing written yet, and forgets a little of what was.
            let place = Kind::ALL.iter().position(|kind| *kind == sighting.kind);
            if let Some(written) = place.and_then(|place| watch.written.get_mut(place)) {
                *written = (*written).max(sighting.total);
            }
        }
    }

    /// Somebody bought something: their holds were for something.
    pub(super) fn bought(&self, whose: &Whose) {
        if let Some(watch) = self.lock().by_whose.get_mut(whose) {
            watch.seen.holds = 0;
        }
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
mod tests {
    use super::*;
    use crate::web::ClientAddress;

    const SHOW: Uuid = Uuid::from_u128(7);
    const NOW: Timestamp = Timestamp(5_000_000);

    fn with(owner: &str, act: impl Fn(&Trying<'_>)) {
        let address = ClientAddress("203.0.113.7".to_owned());
        act(&Trying { show: SHOW, owner, account: None, address: &address });
    }

    fn told(watches: &Watches, now: Timestamp) -> Vec<(Kind, Subject, u32, u32)> {
        let mut told: Vec<_> = watches
            .unusual(now, 100)
            .into_iter()
            .map(|one| (one.kind, one.whose.subject, one.total, one.news))
            .collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn what_is_unusual_is_told_once_and_again_when_there_is_more() {
        let watches = Watches::default();
        let hold = || with("ann", |ann| watches.held(ann, NOW));
        (0..5).for_each(|_| hold());
        assert_eq!(told(&watches, NOW), []);
        hold();
        assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 6, 6)]);
        let found = watches.unusual(NOW, 100);
        assert_eq!(found[0].owners, ["ann"]);
        watches.written(found.iter());
        assert_eq!(told(&watches, NOW), []);
        hold();
        assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 7, 1)]);
        watches.bought(&found[0].whose);
        assert_eq!(told(&watches, NOW), []);
    }

    #[test]
    fn visitors_of_an_address_are_counted_once_each() {
        let watches = Watches::default();
        for visitor in 0..70 {
            for again in 0..3 {
                let at = NOW.plus_ms(1_000 * visitor + 300 * again);
                with(&format!("visitor {visitor}"), |one| watches.tried(one, at));
            }
        }
        assert_eq!(told(&watches, NOW), [(Kind::ManyVisitors, Subject::Address, 70, 70)]);
    }

    #[test]
    fn a_clock_at_work_is_seen() {
        let watches = Watches::default();
        for time in 0..30 {
            with("program", |one| watches.tried(one, NOW.plus_ms(500 * time)));
        }
        assert_eq!(told(&watches, NOW), [(Kind::Timing, Subject::Visitor, 10, 10)]);
    }

    #[test]
    fn half_an_hour_later_everything_begins_anew_and_nobody_is_kept_for_longer() {
        let watches = Watches::default();
        for _ in 0..6 {
            with("ann", |ann| watches.puzzled(ann, NOW));
        }
        assert_eq!(told(&watches, NOW).len(), 2);
        let later = NOW.plus_ms(UNUSUAL_WINDOW_MS);
        with("ann", |ann| watches.puzzled(ann, later));
        assert_eq!(told(&watches, later), []);
        assert_eq!(told(&watches, later.plus_ms(UNUSUAL_WINDOW_MS)), []);
        assert!(watches.lock().by_whose.is_empty());
    }

    #[test]
    fn no_more_are_watched_than_there_is_room_for() {
        let watches = Watches::default();
        let hold = |who: usize, now| with(&who.to_string(), |one| watches.held(one, now));
        (0..MAX_WATCHED + 10).for_each(|who| hold(who, NOW));
        assert_eq!(watches.lock().by_whose.len(), MAX_WATCHED);
        hold(MAX_WATCHED + 11, NOW.plus_ms(QUIET_MS));
        assert_eq!(watches.lock().by_whose.len(), 2, "the new one, and their address");
    }
}

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
mod tests {
    use domain::fairness::NEVER_BOUGHT_AFTER_MS;

    use super::*;
    use crate::web::ClientAddress;

    const SHOW: Uuid = Uuid::from_u128(7);
    const NOW: Timestamp = Timestamp(5_000_000);

    fn with(owner: &str, act: impl Fn(&Trying<'_>)) {
        let address = ClientAddress("203.0.113.7".to_owned());
        act(&Trying { show: SHOW, owner, account: None, address: &address, is_free: false });
    }

    fn told(watches: &Watches, now: Timestamp) -> Vec<(Kind, Subject, u32, u32)> {
        let mut told: Vec<_> = watches
            .unusual(now, 0, 100)
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
        let found = watches.unusual(NOW, 0, 100);
        assert_eq!(found[0].owners, ["ann"]);
        watches.written(found.iter());
        assert_eq!(told(&watches, NOW), []);
        hold();
        assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 7, 1)]);
        watches.bought(&found[0].whose);
        assert_eq!(told(&watches, NOW), []);
    }

    #[test]
    fn nobody_is_said_to_have_bought_nothing_before_they_could_have() {
        let watches = Watches::default();
        (0..6).for_each(|_| with("ann", |ann| watches.held(ann, NOW)));
        let told = |ms| watches.unusual(NOW.plus_ms(ms), NEVER_BOUGHT_AFTER_MS, 100).len();
        assert_eq!((told(NEVER_BOUGHT_AFTER_MS - 1), told(NEVER_BOUGHT_AFTER_MS)), (0, 1));
    }

    #[test]
    fn whoever_is_written_down_is_asked_about_until_they_buy() {
        let watches = Watches::default();
        let hold = || (0..6).for_each(|_| with("ann", |ann| watches.held(ann, NOW)));
        hold();
        assert!(watches.without_purchase(100).is_empty(), "nothing is written down");
        watches.written(watches.unusual(NOW, 0, 100).iter());
        let known = watches.without_purchase(100);
        assert_eq!((known.len(), known[0].owners.as_slice()), (1, ["ann".to_owned()].as_slice()));
        watches.bought(&known[0].whose);
        assert!(watches.without_purchase(100).is_empty());
        hold();
        assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 6, 6)], "and begins anew");
    }

    #[test]
    fn of_many_who_bought_nothing_everybody_is_asked_about_in_turn() {
        let watches = Watches::default();
        for who in ["ann", "ben", "cem", "dot", "eve"] {
            (0..6).for_each(|_| with(who, |trying| watches.held(trying, NOW)));
        }
        let visitors = |found: Vec<Sighting>| -> Vec<String> {
            let visitors = found.into_iter().filter(|one| one.whose.subject == Subject::Visitor);
            visitors.map(|one| one.whose.name).collect()
        };
        let found = watches.unusual(NOW, 0, 100);
        watches.written(found.iter().filter(|one| one.whose.subject == Subject::Visitor));
        let mut asked = Vec::new();
        for _ in 0..3 {
            let some = visitors(watches.without_purchase(2));
            assert_eq!(some.len(), 2);
            asked.extend(some);
        }
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked, ["ann", "ben", "cem", "dot", "eve"]);
        assert_eq!(watches.without_purchase(100).len(), 5, "nobody twice at once");
    }

    #[test]
    fn refusals_make_nobody_known() {
        let watches = Watches::default();
        with("ann", |ann| watches.tried_in_vain(ann, NOW));
        assert!(watches.lock().by_whose.is_empty());
        for time in 0..30 {
            let at = NOW.plus_ms(500 * time);
            with("program", |one| if time == 0 { watches.tried(one, at) } else { watches.tried_in_vain(one, at) });
        }
        assert_eq!(told(&watches, NOW), [(Kind::Timing, Subject::Visitor, 10, 10)]);
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

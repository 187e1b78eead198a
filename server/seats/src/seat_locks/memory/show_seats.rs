//! One show: its seats and areas, and the words its calls are written in. `lua/prelude.lua` in Rust.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use domain::fairness::lapses_at;
use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

use super::super::{Held, KnownSeats, Lot, MapSnapshot};
use super::answers::Answers;
use crate::seat_locks::is_offer;

/// So many people's holds that ran out are counted at most; then everybody's are forgotten.
const MAX_LAPSES: usize = 20_000;
/// How many due holds one call frees at most; the sweeper comes back for the rest.
const MAX_DUE_PER_CALL: usize = 64;

/// A hold on the books.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) owner: String,
    pub(super) expires: Timestamp,
    /// What a hold that was shortened by a closed tab gets back.
    pub(super) original: Timestamp,
    pub(super) latest: Timestamp,
    pub(super) fence: i64,
    pub(super) paying: bool,
    pub(super) lot: Lot,
}

impl Hold {
    pub(super) fn held(&self, hold: Uuid) -> Held {
        let (expires_at, latest) = (self.expires, self.latest);
        Held { hold, expires_at, latest, fence: self.fence, paying: self.paying, lot: self.lot.clone() }
    }

    /// Whether it was kept for nothing, now that it is due: not where its owner left, is paying, or was offered it.
    fn is_lapse(&self, id: Uuid) -> bool {
        self.expires == self.original && !self.paying && !is_offer(id)
    }
}

/// What a person has in a show.
#[derive(Clone, Copy, Default)]
pub(super) struct Standing {
    /// Seats and places bought.
    pub(super) bought: usize,
    pub(super) hold: Option<Uuid>,
}

pub(super) struct Room {
    /// When the call that runs began.
    pub(super) now: Timestamp,
    map: Vec<SeatState>,
    /// Places left; below zero when more were sold than there were, after a hold had been lost. Callers
    /// see none then.
    areas: BTreeMap<AreaIndex, i64>,
    holds: HashMap<Uuid, Hold>,
    expiry: BTreeSet<(Timestamp, Uuid)>,
    owners: HashMap<String, Standing>,
    /// How many holds of an owner ran out, and when the last of them did.
    lapses: HashMap<String, (u32, Timestamp)>,
    /// Fence of the booking that has a seat.
    pub(super) sold: HashMap<SeatIndex, i64>,
    /// Places of a booking, by its fence.
    pub(super) sold_places: HashMap<i64, Vec<Places>>,
    pub(super) answers: Answers,
    epoch: i64,
    version: u64,
    fence: i64,
    /// What the call that runs has changed, as it will be announced.
    changes: Vec<String>,
}

impl Room {
    /// A show as Postgres knows it.
    pub(super) fn build(known: &KnownSeats, epoch: i64, version: u64, lowest_fence: i64) -> Self {
        // A byte that stands for no state keeps its seat off sale.
        let state = |byte: &u8| SeatState::from_byte(*byte).unwrap_or(SeatState::Blocked);
        let standing = |bought: u32| Standing { bought: bought as usize, hold: None };
        Self {
            now: Timestamp(0),
            map: known.map.iter().map(state).collect(),
            areas: known.areas.iter().map(|(area, left)| (*area, i64::from(*left))).collect(),
            holds: HashMap::new(),
            expiry: BTreeSet::new(),
            owners: known.bought.iter().map(|(owner, bought)| (owner.clone(), standing(*bought))).collect(),
            lapses: HashMap::new(),
            sold: known.sold.iter().copied().collect(),
            sold_places: known.sold_places.iter().cloned().collect(),
            answers: Answers::default(),
            epoch,
            version,
            fence: lowest_fence.max(known.lowest_fence),
            changes: Vec::new(),
        }
    }

    /// Whether there is neither seat nor area: then there is no map to speak of.
    pub(super) fn is_nothing(&self) -> bool {
        self.map.is_empty() && self.areas.is_empty()
    }

    /// Epoch and version.
    pub(super) const fn position(&self) -> (i64, u64) {
        (self.epoch, self.version)
    }

    /// No epoch or fence of this show was higher.
    pub(super) fn highest_number(&self) -> i64 {
        self.epoch.max(self.fence)
    }

    /// Begins a call: frees what is due, the first first.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.now = now;
        let due: Vec<_> =
            self.expiry.iter().take_while(|(expires, _)| *expires <= now).take(MAX_DUE_PER_CALL).copied().collect();
        let mut lapsed = Vec::new();
        for (_, id) in due {
            lapsed.extend(self.hold(id).filter(|hold| hold.is_lapse(id)).map(|hold| hold.owner.clone()));
            self.drop_hold(id);
        }
        if !lapsed.is_empty() && self.lapses.len() >= MAX_LAPSES {
            self.lapses.clear();
        }
        for owner in lapsed {
            let count = self.lapses_of(&owner) + 1;
            self.lapses.insert(owner, (count, now));
        }
    }

    /// How many holds of an owner ran out lately.
    pub(super) fn lapses_of(&self, owner: &str) -> u32 {
        self.lapses.get(owner).map_or(0, |(count, last)| lapses_at(*count, last.0, self.now.0))
    }

    /// A buyer did not hold seats for nothing: their lapses are forgotten.
    pub(super) fn forgive(&mut self, owner: &str) {
        self.lapses.remove(owner);
    }

    /// Ends a call: one step of the version for all it changed, and how to announce it.
    pub(super) fn finish(&mut self) -> Option<String> {
        if self.changes.is_empty() {
            return None;
        }
        self.version += 1;
        let changes = std::mem::take(&mut self.changes).join(",");
        Some(format!("{};{};{changes}", self.epoch, self.version))
    }

    /// How a map that was just built is announced.
    pub(super) fn built_text(&self) -> String {
        format!("{};{};*", self.epoch, self.version)
    }

    pub(super) fn snapshot(&self) -> MapSnapshot {
        MapSnapshot {
            epoch: self.epoch.unsigned_abs(),
            version: self.version,
            map: Bytes::from_iter(self.map.iter().map(|state| *state as u8)),
            areas: self.areas.iter().map(|(area, left)| (*area, shown(*left))).collect(),
        }
    }

    /// `None`: the room has no such seat.
    pub(super) fn state_of(&self, seat: SeatIndex) -> Option<SeatState> {
        self.map.get(seat as usize).copied()
    }

    pub(super) fn set(&mut self, seat: SeatIndex, state: SeatState) {
        if let Some(now_is) = self.map.get_mut(seat as usize) {
            *now_is = state;
            self.changes.push(format!("{seat}={}", state as u8));
        }
    }

    /// Places left in an area, as people are told. `None`: the room has no such area.
    pub(super) fn left_in(&self, area: AreaIndex) -> Option<u32> {
        self.areas.get(&area).map(|left| shown(*left))
    }

    /// Takes places from an area, or gives them back with a negative count.
    pub(super) fn take_places(&mut self, area: AreaIndex, count: i64) {
        let left = self.areas.entry(area).or_default();
        *left -= count;
        self.changes.push(format!("a{area}={}", shown(*left)));
    }

    pub(super) fn hold(&self, id: Uuid) -> Option<&Hold> {
        self.holds.get(&id)
    }

    /// An owner's hold. One that is due is over, freed already or not.
    pub(super) fn hold_of(&self, id: Uuid, owner: &str) -> Option<&Hold> {
        self.hold(id).filter(|hold| hold.owner == owner && hold.expires > self.now)
    }

    /// The hold in which a seat is.
    pub(super) fn hold_with(&self, seat: SeatIndex) -> Option<Uuid> {
        self.holds.iter().find_map(|(id, hold)| hold.lot.seats.contains(&seat).then_some(*id))
    }

    /// Ids of all holds, the first to end first.
    pub(super) fn holds_by_end(&self) -> Vec<Uuid> {
        self.expiry.iter().map(|(_, id)| *id).collect()
    }

    /// Whether more is due than one call frees.
    pub(super) fn has_due(&self) -> bool {
        self.expiry.first().is_some_and(|(expires, _)| *expires <= self.now)
    }

    pub(super) fn live_holds(&self) -> u64 {
        self.holds.len() as u64
    }

    /// Puts a hold on the books, or the same hold as it is now. Its owner's standing is not touched.
    pub(super) fn write_hold(&mut self, id: Uuid, hold: Hold) {
        let expires = hold.expires;
        if let Some(before) = self.holds.insert(id, hold) {
            self.expiry.remove(&(before.expires, id));
        }
        self.expiry.insert((expires, id));
    }

    /// Takes a hold off the books without touching its seats.
    pub(super) fn forget_hold(&mut self, id: Uuid) -> Option<Hold> {
        let hold = self.holds.remove(&id)?;
        self.expiry.remove(&(hold.expires, id));
        let standing = self.standing(&hold.owner);
        if standing.hold == Some(id) {
            self.stand(&hold.owner, Standing { hold: None, ..standing });
        }
        Some(hold)
    }

    /// Ends a hold: its seats and places are free.
    pub(super) fn drop_hold(&mut self, id: Uuid) {
        let Some(lot) = self.hold(id).map(|hold| hold.lot.clone()) else { return };
        for seat in lot.seats {
            self.set(seat, SeatState::Available);
        }
        for place in lot.places {
            self.take_places(place.area, -i64::from(place.count));
        }
        self.forget_hold(id);
    }

    pub(super) fn standing(&self, owner: &str) -> Standing {
        self.owners.get(owner).copied().unwrap_or_default()
    }

    pub(super) fn stand(&mut self, owner: &str, standing: Standing) {
        if standing.bought == 0 && standing.hold.is_none() {
            self.owners.remove(owner);
        } else {
            self.owners.insert(owner.to_owned(), standing);
        }
    }

    pub(super) const fn next_fence(&mut self) -> i64 {
        self.fence += 1;
        self.fence
    }

    /// No later fence will be `fence` or lower.
    pub(super) fn raise_fence(&mut self, fence: i64) {
        self.fence = self.fence.max(fence);
    }
}

/// Seats and places in all.
pub(super) fn size(lot: &Lot) -> usize {
    lot.seats.len() + lot.places.iter().map(|place| place.count as usize).sum::<usize>()
}

fn shown(left: i64) -> u32 {
    u32::try_from(left.max(0)).unwrap_or(u32::MAX)
}

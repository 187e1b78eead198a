//! One show: its seats, areas and holds, and the operations on them. `lua/prelude.lua` in Rust.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use domain::fairness::expired_holds_at;
use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

use super::super::{MapSnapshot, RebuildInput, Selection, StoredHold};
use super::answers::Answers;
use crate::seat_locks::is_offer;

/// Owners with lapses kept at most; beyond, all of them are dropped.
const MAX_LAPSES: usize = 20_000;
/// Due holds freed per call at most; the sweeper calls again for the rest.
const MAX_DUE_PER_CALL: usize = 64;

#[derive(Clone)]
pub(super) struct Hold {
    pub(super) owner: String,
    pub(super) expires: Timestamp,
    /// The expiry that a hold shortened by a closed tab gets back.
    pub(super) original: Timestamp,
    pub(super) latest: Timestamp,
    pub(super) fence: i64,
    pub(super) paying: bool,
    pub(super) selection: Selection,
}

impl Hold {
    pub(super) fn held(&self, hold: Uuid) -> StoredHold {
        let (expires_at, latest) = (self.expires, self.latest);
        StoredHold {
            hold,
            expires_at,
            latest,
            fence: self.fence,
            paying: self.paying,
            selection: self.selection.clone(),
        }
    }

    /// True if a due hold ran out unused: its owner did not leave, is not paying, and it is no offer.
    fn is_lapse(&self, id: Uuid) -> bool {
        self.expires == self.original && !self.paying && !is_offer(id)
    }
}

/// Bought seats and the hold of an owner in a show.
#[derive(Clone, Copy, Default)]
pub(super) struct OwnerRecord {
    pub(super) bought: usize,
    pub(super) hold: Option<Uuid>,
}

pub(super) struct ShowSeats {
    /// The time at which the present call began.
    pub(super) now: Timestamp,
    map: Vec<SeatState>,
    /// Places left; below zero when more were sold than there were, after a hold had been lost. Callers
    /// get zero then.
    areas: BTreeMap<AreaIndex, i64>,
    holds: HashMap<Uuid, Hold>,
    expiry: BTreeSet<(Timestamp, Uuid)>,
    owners: HashMap<String, OwnerRecord>,
    /// Number of lapses of an owner, and the time of the last one.
    lapses: HashMap<String, (u32, Timestamp)>,
    /// Fence of the booking that has a seat.
    pub(super) sold: HashMap<SeatIndex, i64>,
    /// Places of a booking, by its fence.
    pub(super) sold_places: HashMap<i64, Vec<Places>>,
    pub(super) answers: Answers,
    epoch: i64,
    version: u64,
    fence: i64,
    /// Changes of the present call, in the format of an announcement.
    changes: Vec<String>,
}

impl ShowSeats {
    /// Builds a show from its state in Postgres.
    pub(super) fn build(known: &RebuildInput, epoch: i64, version: u64, lowest_fence: i64) -> Self {
        // An invalid byte blocks its seat.
        let state = |byte: &u8| SeatState::from_byte(*byte).unwrap_or(SeatState::Blocked);
        let owner_record = |bought: u32| OwnerRecord { bought: bought as usize, hold: None };
        Self {
            now: Timestamp(0),
            map: known.map.iter().map(state).collect(),
            areas: known.areas.iter().map(|(area, left)| (*area, i64::from(*left))).collect(),
            holds: HashMap::new(),
            expiry: BTreeSet::new(),
            owners: known.bought.iter().map(|(owner, bought)| (owner.clone(), owner_record(*bought))).collect(),
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

    /// True without seats and areas, which counts as no map.
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty() && self.areas.is_empty()
    }

    pub(super) const fn position(&self) -> (i64, u64) {
        (self.epoch, self.version)
    }

    /// The highest epoch or fence of this show.
    pub(super) fn highest_number(&self) -> i64 {
        self.epoch.max(self.fence)
    }

    /// Begins a call: frees due holds, the earliest first.
    pub(super) fn begin_call(&mut self, now: Timestamp) {
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

    pub(super) fn lapses_of(&self, owner: &str) -> u32 {
        self.lapses.get(owner).map_or(0, |(count, last)| expired_holds_at(*count, last.0, self.now.0))
    }

    /// Clears the lapses of an owner after a purchase.
    pub(super) fn clear_lapses(&mut self, owner: &str) {
        self.lapses.remove(owner);
    }

    /// Ends a call: counts one version for all its changes, and returns their announcement.
    pub(super) fn finish_call(&mut self) -> Option<String> {
        if self.changes.is_empty() {
            return None;
        }
        self.version += 1;
        let changes = std::mem::take(&mut self.changes).join(",");
        Some(format!("{};{};{changes}", self.epoch, self.version))
    }

    /// The announcement of a map that was just built.
    pub(super) fn rebuild_announcement(&self) -> String {
        format!("{};{};*", self.epoch, self.version)
    }

    pub(super) fn snapshot(&self) -> MapSnapshot {
        MapSnapshot {
            epoch: self.epoch.unsigned_abs(),
            version: self.version,
            map: Bytes::from_iter(self.map.iter().map(|state| *state as u8)),
            areas: self.areas.iter().map(|(area, left)| (*area, at_least_zero(*left))).collect(),
        }
    }

    /// `None` if the room has no such seat.
    pub(super) fn state_of(&self, seat: SeatIndex) -> Option<SeatState> {
        self.map.get(seat as usize).copied()
    }

    pub(super) fn set(&mut self, seat: SeatIndex, state: SeatState) {
        if let Some(now_is) = self.map.get_mut(seat as usize) {
            *now_is = state;
            self.changes.push(format!("{seat}={}", state as u8));
        }
    }

    /// Places left in an area, at least zero. `None` if the room has no such area.
    pub(super) fn left_in(&self, area: AreaIndex) -> Option<u32> {
        self.areas.get(&area).map(|left| at_least_zero(*left))
    }

    /// Takes places from an area; a negative count returns places.
    pub(super) fn take_places(&mut self, area: AreaIndex, count: i64) {
        let left = self.areas.entry(area).or_default();
        *left -= count;
        self.changes.push(format!("a{area}={}", at_least_zero(*left)));
    }

    pub(super) fn hold(&self, id: Uuid) -> Option<&Hold> {
        self.holds.get(&id)
    }

    /// The hold if it belongs to this owner and has not expired. A due hold counts as expired even before it is freed.
    pub(super) fn owned_hold(&self, id: Uuid, owner: &str) -> Option<&Hold> {
        self.hold(id).filter(|hold| hold.owner == owner && hold.expires > self.now)
    }

    pub(super) fn hold_with(&self, seat: SeatIndex) -> Option<Uuid> {
        self.holds.iter().find_map(|(id, hold)| hold.selection.seats.contains(&seat).then_some(*id))
    }

    /// Ids of all holds in order of expiry.
    pub(super) fn holds_by_end(&self) -> Vec<Uuid> {
        self.expiry.iter().map(|(_, id)| *id).collect()
    }

    /// True if more holds are due than one call frees.
    pub(super) fn has_due(&self) -> bool {
        self.expiry.first().is_some_and(|(expires, _)| *expires <= self.now)
    }

    pub(super) fn live_holds(&self) -> u64 {
        self.holds.len() as u64
    }

    /// Inserts or replaces a hold. The record of its owner is not changed.
    pub(super) fn write_hold(&mut self, id: Uuid, hold: Hold) {
        let expires = hold.expires;
        if let Some(before) = self.holds.insert(id, hold) {
            self.expiry.remove(&(before.expires, id));
        }
        self.expiry.insert((expires, id));
    }

    /// Deletes a hold without freeing its seats.
    pub(super) fn forget_hold(&mut self, id: Uuid) -> Option<Hold> {
        let hold = self.holds.remove(&id)?;
        self.expiry.remove(&(hold.expires, id));
        let owner_record = self.owner_record(&hold.owner);
        if owner_record.hold == Some(id) {
            self.set_owner_record(&hold.owner, OwnerRecord { hold: None, ..owner_record });
        }
        Some(hold)
    }

    /// Ends a hold and frees its seats and places.
    pub(super) fn drop_hold(&mut self, id: Uuid) {
        let Some(selection) = self.hold(id).map(|hold| hold.selection.clone()) else { return };
        for seat in selection.seats {
            self.set(seat, SeatState::Available);
        }
        for place in selection.places {
            self.take_places(place.area, -i64::from(place.count));
        }
        self.forget_hold(id);
    }

    pub(super) fn owner_record(&self, owner: &str) -> OwnerRecord {
        self.owners.get(owner).copied().unwrap_or_default()
    }

    pub(super) fn set_owner_record(&mut self, owner: &str, owner_record: OwnerRecord) {
        if owner_record.bought == 0 && owner_record.hold.is_none() {
            self.owners.remove(owner);
        } else {
            self.owners.insert(owner.to_owned(), owner_record);
        }
    }

    pub(super) const fn next_fence(&mut self) -> i64 {
        self.fence += 1;
        self.fence
    }

    /// Makes all later fences higher than `fence`.
    pub(super) fn raise_fence(&mut self, fence: i64) {
        self.fence = self.fence.max(fence);
    }
}

pub(super) fn size(selection: &Selection) -> usize {
    selection.seats.len() + selection.places.iter().map(|place| place.count as usize).sum::<usize>()
}

fn at_least_zero(left: i64) -> u32 {
    u32::try_from(left.max(0)).unwrap_or(u32::MAX)
}

//! The calls of the store: holds of visitors, payments and sales, and operations of staff and operators.

use std::collections::{BTreeMap, HashMap};

use domain::fairness::extension_ms;
use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

use super::show_seats::{Hold, OwnerRecord, ShowSeats, size};
use crate::seat_locks::{
    FencedSelection, HoldLimits, HoldUpdate, LockAttempt, Refusal, ReleasedAll, Renewal, RequestIdentity, SeatResult,
    Selection, StoredHold,
};

impl ShowSeats {
    pub(super) fn lock(&mut self, terms: HoldLimits, attempts: &[LockAttempt]) -> Vec<SeatResult<StoredHold>> {
        // Holds granted in this call. They become stored answers after the call, not before: an attempt with the
        // same request id in this call gets the answer from here.
        let mut new = HashMap::<Uuid, (u64, &str, StoredHold)>::new();
        let mut answers = Vec::with_capacity(attempts.len());
        for attempt in attempts {
            let asked = attempt.asked;
            let twin = new.get(&asked.id).map(|(digest, _, held)| same(*digest == asked.digest, held));
            let answer = twin.or_else(|| self.answers.of(asked, self.now)).unwrap_or_else(|| {
                let held = self.grant(terms, attempt);
                if let Ok((held, true)) = &held {
                    new.insert(asked.id, (asked.digest, &attempt.owner, held.clone()));
                }
                held.map(|(held, _)| held)
            });
            answers.push(answer);
        }
        for (id, (digest, owner, held)) in new {
            self.answers.keep(RequestIdentity { id, digest }, owner, &held, self.now);
        }
        answers
    }

    /// Grants a hold. Returns it, and true if it is new.
    fn grant(&mut self, terms: HoldLimits, attempt: &LockAttempt) -> SeatResult<(StoredHold, bool)> {
        let (id, selection) = (attempt.asked.id, &attempt.selection);
        let owner_record = self.owner_record(&attempt.owner);
        match owner_record.hold {
            // The stored answer is lost, but the hold exists.
            Some(current) if current == id => {
                let hold = self.hold(id).filter(|hold| hold.selection == *selection).ok_or(Refusal::Reused)?;
                return Ok((StoredHold { paying: false, ..hold.held(id) }, false));
            }
            Some(current) => return Err(Refusal::OtherHold(current)),
            None => {}
        }
        if owner_record.bought + size(selection) > terms.per_person {
            return Err(limit(terms, owner_record));
        }
        if let Some(last) = selection.seats.last().filter(|last| self.state_of(**last).is_none()) {
            return Err(Refusal::Outside(*last));
        }
        let is_given_away = |seat: &SeatIndex| attempt.takes_kept && self.state_of(*seat) == Some(SeatState::Blocked);
        self.check_available(selection.seats.iter().copied().filter(|seat| !is_given_away(seat)))?;
        self.check_places(selection.places.iter().map(|place| (place.area, i64::from(place.count))))?;
        let expires = self.now.plus_ms(terms.length_ms);
        let hold = Hold {
            owner: attempt.owner.clone(),
            expires,
            original: expires,
            latest: self.now.plus_ms(terms.life_ms),
            fence: self.next_fence(),
            paying: false,
            selection: selection.clone(),
        };
        let held = hold.held(id);
        self.take_selection(selection);
        self.write_hold(id, hold);
        self.set_owner_record(&attempt.owner, OwnerRecord { hold: Some(id), ..owner_record });
        Ok((held, true))
    }

    /// Refuses with all of these seats that are not available.
    pub(super) fn check_available(&self, seats: impl Iterator<Item = SeatIndex>) -> SeatResult<()> {
        let taken: Vec<_> = seats
            .filter_map(|seat| Some((seat, self.state_of(seat)?)))
            .filter(|(_, state)| *state != SeatState::Available)
            .collect();
        if taken.is_empty() { Ok(()) } else { Err(Refusal::Taken(taken)) }
    }

    /// Refuses with all areas that have too few places, or the first that does not exist. Counts of
    /// zero or below (places returned) are always possible.
    pub(super) fn check_places(&self, wanted: impl Iterator<Item = (AreaIndex, i64)>) -> SeatResult<()> {
        let mut full = Vec::new();
        for (area, count) in wanted.filter(|(_, count)| *count > 0) {
            let left = self.left_in(area).ok_or(Refusal::NoArea(area))?;
            if i64::from(left) < count {
                full.push((area, left));
            }
        }
        if full.is_empty() { Ok(()) } else { Err(Refusal::Full(full)) }
    }

    pub(super) fn take_selection(&mut self, selection: &Selection) {
        for seat in &selection.seats {
            self.set(*seat, SeatState::Locked);
        }
        for place in &selection.places {
            self.take_places(place.area, i64::from(place.count));
        }
    }

    pub(super) fn change(&mut self, terms: HoldLimits, change: &HoldUpdate) -> SeatResult<StoredHold> {
        if let Some(answer) = self.answers.of(change.asked, self.now) {
            return answer;
        }
        let mut hold = self.editable_hold(change.hold, &change.owner)?;
        let (add, remove) = (&change.add, &change.remove);
        if let Some(outside) = add.seats.iter().find(|seat| self.state_of(**seat).is_none()) {
            return Err(Refusal::Outside(*outside));
        }
        let (let_go, mut seats): (Vec<_>, Vec<_>) =
            hold.selection.seats.iter().copied().partition(|seat| remove.seats.contains(seat));
        let added: Vec<_> = add.seats.iter().copied().filter(|seat| !hold.selection.seats.contains(seat)).collect();
        self.check_available(added.iter().copied())?;
        let (places, gives) = places_after(&hold.selection.places, &remove.places, &add.places);
        self.check_places(gives.iter().copied())?;
        seats.extend(&added);
        seats.sort_unstable();
        hold.selection = Selection { seats, places };
        let owner_record = self.owner_record(&change.owner);
        if !add.is_empty() && owner_record.bought + size(&hold.selection) > terms.per_person {
            return Err(limit(terms, owner_record));
        }
        if let_go.is_empty() && added.is_empty() && gives.iter().all(|(_, count)| *count == 0) {
            return Ok(hold.held(change.hold));
        }
        for seat in let_go {
            self.set(seat, SeatState::Available);
        }
        for seat in added {
            self.set(seat, SeatState::Locked);
        }
        for (area, count) in gives.into_iter().filter(|(_, count)| *count != 0) {
            self.take_places(area, count);
        }
        let held = hold.held(change.hold);
        if hold.selection.is_empty() {
            self.forget_hold(change.hold);
        } else {
            self.write_hold(change.hold, hold);
        }
        self.answers.keep(change.asked, &change.owner, &held, self.now);
        Ok(held)
    }

    pub(super) fn extend(
        &mut self,
        asked: RequestIdentity,
        id: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> SeatResult<StoredHold> {
        if let Some(answer) = self.answers.of(asked, self.now) {
            return answer;
        }
        let mut hold = self.editable_hold(id, owner)?;
        let until = |by_ms| Some(hold.original.plus_ms(by_ms).min(hold.latest)).filter(|until| *until > hold.original);
        until(by_ms).ok_or(Refusal::Capped)?;
        let by_ms = extension_ms(by_ms, self.lapses_of(owner)).ok_or(Refusal::Lapsed)?;
        let expires = until(by_ms).ok_or(Refusal::Capped)?;
        (hold.expires, hold.original) = (expires, expires);
        let held = hold.held(id);
        self.write_hold(id, hold);
        self.answers.keep(asked, owner, &held, self.now);
        Ok(held)
    }

    pub(super) fn hold_of(&mut self, owner: &str) -> Option<StoredHold> {
        let id = self.owner_record(owner).hold?;
        let mut hold = self.owned_hold(id, owner)?.clone();
        hold.expires = hold.original;
        let held = hold.held(id);
        self.write_hold(id, hold);
        Some(held)
    }

    pub(super) fn shorten_hold(&mut self, id: Uuid, owner: &str, grace_ms: i64) {
        // A payment in progress continues without the tab.
        if let Ok(mut hold) = self.editable_hold(id, owner) {
            // At least 1 ms sooner than before: this marks that its owner left, so that its end is no lapse.
            hold.expires = hold.expires.min(self.now.plus_ms(grace_ms)).min(hold.original.plus_ms(-1));
            self.write_hold(id, hold);
        }
    }

    pub(super) fn release(&mut self, id: Uuid, owner: &str) -> SeatResult<()> {
        self.editable_hold(id, owner)?;
        self.drop_hold(id);
        Ok(())
    }

    /// The hold if it belongs to this owner and no payment is in progress.
    fn editable_hold(&self, id: Uuid, owner: &str) -> SeatResult<Hold> {
        let hold = self.owned_hold(id, owner).ok_or(Refusal::Gone)?;
        if hold.paying { Err(Refusal::Paying) } else { Ok(hold.clone()) }
    }
}

fn same(is_same: bool, held: &StoredHold) -> SeatResult<StoredHold> {
    if is_same { Ok(held.clone()) } else { Err(Refusal::Reused) }
}

fn limit(terms: HoldLimits, owner_record: OwnerRecord) -> Refusal {
    let allowed = terms.per_person.saturating_sub(owner_record.bought);
    Refusal::Limit(u32::try_from(allowed).unwrap_or(u32::MAX))
}

/// Places of a hold after a change, and the places that each changed area gives; negative if it gets
/// some back.
fn places_after(has: &[Places], remove: &[Places], add: &[Places]) -> (Vec<Places>, Vec<(AreaIndex, i64)>) {
    let mut after: BTreeMap<AreaIndex, u32> = has.iter().map(|place| (place.area, place.count)).collect();
    let mut gives = Vec::<(AreaIndex, i64)>::new();
    let mut note = |area, count| match gives.iter_mut().find(|(noted, _)| *noted == area) {
        Some((_, sum)) => *sum += count,
        None => gives.push((area, count)),
    };
    for place in remove {
        let has = after.entry(place.area).or_default();
        let count = place.count.min(*has);
        *has -= count;
        note(place.area, -i64::from(count));
    }
    for place in add {
        *after.entry(place.area).or_default() += place.count;
        note(place.area, i64::from(place.count));
    }
    let after = after.into_iter().filter(|(_, count)| *count > 0).map(|(area, count)| Places { area, count });
    (after.collect(), gives)
}

impl ShowSeats {
    pub(super) fn begin_payment(&mut self, sale: &FencedSelection, extension_ms: i64) -> SeatResult<Timestamp> {
        let mut hold = self.hold_of_party(sale).ok_or(Refusal::Gone)?;
        if hold.selection != sale.selection {
            return Err(Refusal::Changed);
        }
        if !hold.paying {
            hold.paying = true;
            hold.expires = hold.original.plus_ms(extension_ms);
            hold.original = hold.expires;
            self.write_hold(sale.hold, hold.clone());
        }
        Ok(hold.expires)
    }

    pub(super) fn end_payment(&mut self, sale: &FencedSelection, extension_ms: i64) {
        let Some(mut hold) = self.hold_of_party(sale).filter(|hold| hold.paying) else { return };
        hold.paying = false;
        hold.expires = hold.original.plus_ms(-extension_ms);
        hold.original = hold.expires;
        self.write_hold(sale.hold, hold);
    }

    pub(super) fn renew(&mut self, party: &FencedSelection, renewal: &Renewal) -> SeatResult<StoredHold> {
        let Renewal { hold: id, owner, until, ends_payment, per_person } = renewal;
        if let Some(renewed) = self.owned_hold(*id, owner) {
            return Ok(renewed.held(*id));
        }
        let mut hold = self.hold_of_party(party).ok_or(Refusal::Gone)?;
        if *until <= self.now || self.hold(*id).is_some() {
            return Err(Refusal::Gone);
        }
        if hold.paying && !ends_payment {
            return Err(Refusal::Paying);
        }
        let owner_record = self.owner_record(owner);
        if let Some(other) = owner_record.hold.filter(|current| *current != party.hold) {
            return Err(Refusal::OtherHold(other));
        }
        if let Some(most) = per_person.filter(|most| owner_record.bought + size(&hold.selection) > *most) {
            return Err(Refusal::Limit(u32::try_from(most.saturating_sub(owner_record.bought)).unwrap_or(u32::MAX)));
        }
        self.forget_hold(party.hold);
        hold.owner.clone_from(owner);
        hold.fence = self.next_fence();
        hold.paying = false;
        (hold.expires, hold.original, hold.latest) = (*until, *until, hold.latest.max(*until));
        let held = hold.held(*id);
        self.write_hold(*id, hold);
        self.set_owner_record(owner, OwnerRecord { hold: Some(*id), ..owner_record });
        Ok(held)
    }

    fn hold_of_party(&self, sale: &FencedSelection) -> Option<Hold> {
        self.owned_hold(sale.hold, &sale.owner).filter(|hold| hold.fence == sale.fence).cloned()
    }

    pub(super) fn book(&mut self, sale: &FencedSelection) {
        let is_ours = self.hold(sale.hold).is_some_and(|hold| hold.fence == sale.fence);
        let hold = is_ours.then(|| self.forget_hold(sale.hold)).flatten();
        // At a counter the seller has the hold and the booking another owner: neither lapse counts.
        if let Some(hold) = &hold {
            self.clear_lapses(&hold.owner);
        }
        let held = hold.map(|hold| hold.selection).unwrap_or_default();
        let new_count = self.book_seats(sale, &held.seats) + self.book_places(sale, &held);
        // The unused part of the hold is released.
        for seat in held.seats.iter().filter(|seat| !sale.selection.seats.contains(seat)) {
            self.set(*seat, SeatState::Available);
        }
        if new_count > 0 {
            let owner_record = self.owner_record(&sale.owner);
            self.set_owner_record(&sale.owner, OwnerRecord { bought: owner_record.bought + new_count, ..owner_record });
        }
        self.clear_lapses(&sale.owner);
    }

    /// Books the seats of a sale. Returns the number of newly sold ones.
    fn book_seats(&mut self, sale: &FencedSelection, held: &[SeatIndex]) -> usize {
        let mut new_count = 0;
        for seat in &sale.selection.seats {
            let known = self.sold.get(seat).copied();
            let Some(state) = self.state_of(*seat) else { continue };
            // A seat sold under a later fence keeps it: this call is older.
            if known.is_some_and(|known| known > sale.fence) {
                continue;
            }
            if state == SeatState::Locked && !held.contains(seat) {
                self.evict(*seat);
            }
            if state != SeatState::Booked {
                self.set(*seat, SeatState::Booked);
            }
            if known != Some(sale.fence) {
                self.sold.insert(*seat, sale.fence);
                new_count += 1;
            }
        }
        new_count
    }

    /// Takes a seat from its hold, which keeps its other seats.
    pub(super) fn evict(&mut self, seat: SeatIndex) {
        let Some(id) = self.hold_with(seat) else { return };
        let Some(mut hold) = self.hold(id).cloned() else { return };
        hold.selection.seats.retain(|held| *held != seat);
        // The seats of the payment have changed.
        hold.paying = false;
        let is_over = hold.selection.is_empty();
        self.write_hold(id, hold);
        if is_over {
            self.forget_hold(id);
        }
    }

    /// Books places, which are identified by the fence of their sale. Places of the hold are taken already.
    fn book_places(&mut self, sale: &FencedSelection, held: &Selection) -> usize {
        let is_new = !sale.selection.places.is_empty() && !self.sold_places.contains_key(&sale.fence);
        let sold = if is_new { sale.selection.places.as_slice() } else { &[] };
        if is_new {
            self.sold_places.insert(sale.fence, sold.to_vec());
        }
        for place in sold {
            let missing = i64::from(place.count) - i64::from(count_in(&held.places, place.area));
            if missing > 0 {
                self.take_places(place.area, missing);
            }
        }
        for place in &held.places {
            let rest = i64::from(place.count) - i64::from(count_in(sold, place.area));
            if rest > 0 {
                self.take_places(place.area, -rest);
            }
        }
        sold.iter().map(|place| place.count as usize).sum()
    }

    pub(super) fn free(&mut self, sale: &FencedSelection, kept: &[SeatIndex]) {
        if self.hold(sale.hold).is_some_and(|hold| hold.fence == sale.fence) {
            self.drop_hold(sale.hold);
        }
        let mut freed = 0;
        for seat in &sale.selection.seats {
            if self.sold.get(seat) == Some(&sale.fence) {
                self.sold.remove(seat);
                let is_kept = kept.contains(seat);
                self.set(*seat, if is_kept { SeatState::Blocked } else { SeatState::Available });
                freed += 1;
            }
        }
        // Seats to block that the dropped hold had.
        for seat in kept {
            if self.state_of(*seat) == Some(SeatState::Available) {
                self.set(*seat, SeatState::Blocked);
            }
        }
        // A sale may be returned in part: the places asked for, at most those sold.
        let mut left = Vec::new();
        for sold in self.sold_places.remove(&sale.fence).unwrap_or_default() {
            let count = sold.count.min(count_in(&sale.selection.places, sold.area));
            if count > 0 {
                self.take_places(sold.area, -i64::from(count));
            }
            if sold.count > count {
                left.push(Places { area: sold.area, count: sold.count - count });
            }
            freed += count as usize;
        }
        if !left.is_empty() {
            self.sold_places.insert(sale.fence, left);
        }
        if freed > 0 {
            let owner_record = self.owner_record(&sale.owner);
            self.set_owner_record(
                &sale.owner,
                OwnerRecord { bought: owner_record.bought.saturating_sub(freed), ..owner_record },
            );
        }
    }
}

fn count_in(places: &[Places], area: AreaIndex) -> u32 {
    places.iter().find(|place| place.area == area).map_or(0, |place| place.count)
}

impl ShowSeats {
    pub(super) fn block(&mut self, seats: &[SeatIndex], blocked: bool) -> SeatResult<()> {
        let wanted = if blocked { SeatState::Blocked } else { SeatState::Available };
        let (mut taken, mut change) = (Vec::new(), Vec::new());
        for seat in seats {
            match self.state_of(*seat).ok_or(Refusal::Outside(*seat))? {
                state @ (SeatState::Locked | SeatState::Booked) => taken.push((*seat, state)),
                state if state != wanted => change.push(*seat),
                _ => {}
            }
        }
        if !taken.is_empty() {
            return Err(Refusal::Taken(taken));
        }
        for seat in change {
            self.set(seat, wanted);
        }
        Ok(())
    }

    pub(super) fn withdraw(&mut self, seats: &[SeatIndex]) -> SeatResult<Vec<SeatIndex>> {
        if let Some(outside) = seats.iter().find(|seat| self.state_of(**seat).is_none()) {
            return Err(Refusal::Outside(*outside));
        }
        let mut left = Vec::new();
        for seat in seats {
            let is_paying = self.hold_with(*seat).and_then(|id| self.hold(id)).is_some_and(|hold| hold.paying);
            match self.state_of(*seat) {
                Some(SeatState::Available) => self.set(*seat, SeatState::Blocked),
                Some(SeatState::Locked) if !is_paying => {
                    self.evict(*seat);
                    self.set(*seat, SeatState::Blocked);
                }
                Some(SeatState::Locked | SeatState::Booked) => left.push(*seat),
                Some(SeatState::Blocked) | None => {}
            }
        }
        Ok(left)
    }

    /// Releases all in one step; Redis needs several for very many.
    pub(super) fn release_all(&mut self) -> ReleasedAll {
        let mut sum = ReleasedAll::default();
        for id in self.holds_by_end() {
            if self.hold(id).is_some_and(|hold| hold.paying) {
                sum.paying += 1;
            } else {
                self.drop_hold(id);
                sum.released += 1;
            }
        }
        sum
    }

    pub(super) fn copy_fences(&mut self, fences: &[(Uuid, i64)]) {
        for (id, fence) in fences {
            if let Some(mut hold) = self.hold(*id).cloned().filter(|hold| hold.fence != *fence) {
                hold.fence = *fence;
                self.write_hold(*id, hold);
                self.raise_fence(*fence);
            }
        }
    }

    pub(super) fn copy_hold(&mut self, owner: &str, held: &StoredHold, theirs: Timestamp) -> SeatResult<()> {
        let (id, selection) = (held.hold, &held.selection);
        if self.hold(id).is_some_and(|hold| hold.owner != owner) {
            return Err(Refusal::OtherHold(id));
        }
        let same = self.hold(id).is_some_and(|hold| hold.selection == *selection);
        if !same {
            let current = self.owner_record(owner).hold.and_then(|id| self.hold(id)).map(|hold| hold.selection.clone());
            let own = current.unwrap_or_default();
            if let Some(last) = selection.seats.last().filter(|last| self.state_of(**last).is_none()) {
                return Err(Refusal::Outside(*last));
            }
            self.check_available(selection.seats.iter().copied().filter(|seat| !own.seats.contains(seat)))?;
            let given_back = |area| own.places.iter().find(|place| place.area == area).map_or(0, |place| place.count);
            self.check_places(
                selection
                    .places
                    .iter()
                    .map(|place| (place.area, i64::from(place.count) - i64::from(given_back(place.area)))),
            )?;
            if let Some(current) = self.owner_record(owner).hold {
                self.drop_hold(current);
            }
            self.take_selection(selection);
        }
        let here = |at: Timestamp| self.now.plus_ms(at.since(theirs));
        let hold = Hold {
            owner: owner.to_owned(),
            expires: here(held.expires_at),
            original: here(held.expires_at),
            latest: here(held.latest),
            fence: held.fence,
            paying: held.paying,
            selection: selection.clone(),
        };
        self.write_hold(id, hold);
        self.raise_fence(held.fence);
        let owner_record = self.owner_record(owner);
        self.set_owner_record(owner, OwnerRecord { hold: Some(id), ..owner_record });
        Ok(())
    }
}

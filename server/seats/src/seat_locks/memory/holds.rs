//! A visitor's hold: take, change, extend, leave, return, release.

use std::collections::{BTreeMap, HashMap};

use domain::fairness::extension_ms;
use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use uuid::Uuid;

use super::super::{HoldLimits, HoldUpdate, LockAttempt, Refusal, RequestIdentity, SeatResult, Selection, StoredHold};
use super::show_seats::{Hold, OwnerRecord, ShowSeats, size};

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

//! Operations of staff and operators: block seats, release all holds, copy holds of another store.

use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

use super::super::{Refusal, ReleasedAll, SeatResult, StoredHold};
use super::show_seats::{Hold, OwnerRecord, ShowSeats};

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

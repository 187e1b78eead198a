//! Payments, sales, and seats returned from sales.

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;

use super::super::{FencedSelection, Refusal, Renewal, SeatResult, Selection, StoredHold};
use super::show_seats::{Hold, OwnerRecord, ShowSeats, size};

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

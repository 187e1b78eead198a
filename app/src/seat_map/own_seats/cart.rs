//! The wish of the visitor, the hold the server granted, and the next request.
//!
//! Taps change the wish at once. One request at a time brings the hold to the wish, so that fast taps coalesce and
//! nothing arrives out of order. Pure: no network, no clock, no DOM.

use domain::api::{AreaQuantity, HoldView};
use domain::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

/// A change of the hold to request from the server. One intent has one idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldIntent {
    Take {
        seats: Vec<SeatIndex>,
        /// Its places in one area. Further areas follow in the next request.
        places: Option<AreaQuantity>,
    },
    /// Adds and releases seats and places in one step.
    Change {
        hold: Uuid,
        add: Vec<SeatIndex>,
        remove: Vec<SeatIndex>,
        add_places: Vec<AreaQuantity>,
        remove_places: Vec<AreaQuantity>,
    },
    Drop {
        hold: Uuid,
    },
}

/// The effect of a tap on the wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapOutcome {
    Added,
    Removed,
    /// Refused: the wish has as many seats and places as one person may have.
    LimitReached,
    /// Refused: nothing changes during a payment.
    PaymentPending,
}

/// The most seats and places that one person may have in the show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeatLimit(usize);

impl Default for SeatLimit {
    fn default() -> Self {
        Self(MAX_SEATS_PER_HOLD)
    }
}

/// The wish and the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cart {
    limit: SeatLimit,
    held: Option<HoldView>,
    /// Sorted, each seat once.
    want: Vec<SeatIndex>,
    /// Sorted by area, each area once, no quantity zero.
    want_places: Vec<AreaQuantity>,
    /// Seats chosen as an exchange for the whole hold, until they are held. They are taken together or not at all.
    exchange: Vec<SeatIndex>,
    /// Seats that the party finder proposes. They are not part of the wish.
    proposed: Vec<SeatIndex>,
    in_flight: Option<HoldIntent>,
    /// The seats and places of the hold that the request in flight leads to.
    expected: Vec<SeatIndex>,
    expected_places: Vec<AreaQuantity>,
    /// Number of the current request. Also incremented when the request is overtaken: an answer with an older number is
    /// ignored.
    number: u64,
    /// Seats of an expired hold, which the visitor can request again.
    lost: Vec<SeatIndex>,
    lost_places: Vec<AreaQuantity>,
}

impl Cart {
    /// The hold that the server granted last.
    pub fn held(&self) -> Option<&HoldView> {
        self.held.as_ref()
    }

    /// The most seats and places that the visitor may have.
    pub fn limit(&self) -> usize {
        self.limit.0
    }

    /// Sets the show's limit; the wish stays, the server decides.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = SeatLimit(limit);
    }

    /// Returns true if this many more seats and places are within the limit.
    pub fn has_room_for(&self, more: usize) -> bool {
        self.count() + more <= self.limit()
    }

    /// The wanted seats, in order.
    pub fn want(&self) -> &[SeatIndex] {
        &self.want
    }

    pub fn want_places(&self) -> &[AreaQuantity] {
        &self.want_places
    }

    pub fn wanted_in(&self, area: AreaIndex) -> u32 {
        quantity_in(&self.want_places, area)
    }

    pub fn held_in(&self, area: AreaIndex) -> u32 {
        quantity_in(&self.held_places(), area)
    }

    /// The number of wanted seats and places.
    pub fn count(&self) -> usize {
        self.want_places.iter().fold(self.want.len(), |sum, places| sum + places.quantity as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.want.is_empty() && self.want_places.is_empty()
    }

    /// Returns true if there are seats or places of an expired hold.
    pub fn has_lost(&self) -> bool {
        !(self.lost.is_empty() && self.lost_places.is_empty())
    }

    /// The seats that the party finder proposes.
    pub fn proposed(&self) -> &[SeatIndex] {
        &self.proposed
    }

    /// Proposes these seats in place of others. Empty: none.
    pub fn propose(&mut self, seats: Vec<SeatIndex>) {
        self.proposed = seats;
    }

    pub fn wants(&self, seat: SeatIndex) -> bool {
        self.want.binary_search(&seat).is_ok()
    }

    /// Returns true if the server has granted this seat.
    pub fn holds(&self, seat: SeatIndex) -> bool {
        self.held.as_ref().is_some_and(|held| held.seats.iter().any(|line| line.seat == seat))
    }

    /// Returns true if the hold matches the wish and no request is in flight.
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.want == self.held_seats() && self.want_places == self.held_places()
    }

    pub fn is_paying(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.paying)
    }

    /// Adds or removes a seat that is free or the visitor's own.
    pub fn tap(&mut self, seat: SeatIndex) -> TapOutcome {
        if self.is_paying() {
            return TapOutcome::PaymentPending;
        }
        self.proposed.clear();
        match self.want.binary_search(&seat) {
            Ok(place) => {
                self.want.remove(place);
                TapOutcome::Removed
            }
            Err(_) if !self.has_room_for(1) => TapOutcome::LimitReached,
            Err(place) => {
                self.want.insert(place, seat);
                self.clear_lost();
                TapOutcome::Added
            }
        }
    }

    /// Adds these seats and places, up to the first that is refused, whose outcome it returns.
    pub fn add(&mut self, seats: &[SeatIndex], places: &[AreaQuantity]) -> TapOutcome {
        for seat in seats {
            if !self.wants(*seat) {
                let outcome = self.tap(*seat);
                if outcome != TapOutcome::Added {
                    return outcome;
                }
            }
        }
        for places in places {
            for _ in 0..places.quantity {
                let outcome = self.change_places(places.area, true);
                if outcome != TapOutcome::Added {
                    return outcome;
                }
            }
        }
        TapOutcome::Added
    }

    /// Replaces the wish with these seats. A visitor with a hold keeps it unless all of them can be taken.
    pub fn exchange_for(&mut self, seats: &[SeatIndex]) -> TapOutcome {
        if self.is_paying() {
            return TapOutcome::PaymentPending;
        }
        self.proposed.clear();
        self.want = seats.to_vec();
        self.want.sort_unstable();
        self.want.dedup();
        self.want.truncate(self.limit());
        self.want_places.clear();
        self.exchange.clone_from(&self.want);
        self.clear_lost();
        TapOutcome::Added
    }

    /// Adds one place in an area if `is_increase`, otherwise removes one.
    pub fn change_places(&mut self, area: AreaIndex, is_increase: bool) -> TapOutcome {
        let wanted = self.wanted_in(area);
        if self.is_paying() {
            TapOutcome::PaymentPending
        } else if !is_increase {
            self.set_places(area, wanted.saturating_sub(1));
            TapOutcome::Removed
        } else if !self.has_room_for(1) {
            TapOutcome::LimitReached
        } else {
            self.set_places(area, wanted + 1);
            self.clear_lost();
            TapOutcome::Added
        }
    }

    fn set_places(&mut self, area: AreaIndex, quantity: u32) {
        self.want_places.retain(|places| places.area != area);
        if quantity > 0 {
            let place = self.want_places.partition_point(|places| places.area < area);
            self.want_places.insert(place, AreaQuantity { area, quantity });
        }
    }

    fn clear_lost(&mut self) {
        self.lost.clear();
        self.lost_places.clear();
    }

    pub fn is_due(&self) -> bool {
        self.in_flight.is_none() && self.intent().is_some()
    }

    /// Takes the next request, if one is due. It counts as in flight from here on.
    pub fn next_intent(&mut self) -> Option<HoldIntent> {
        if self.in_flight.is_some() {
            return None;
        }
        let intent = self.intent()?;
        self.number += 1;
        self.expected.clone_from(&self.want);
        self.expected_places = match &intent {
            HoldIntent::Take { places, .. } => places.iter().copied().collect(),
            HoldIntent::Change { .. } | HoldIntent::Drop { .. } => self.want_places.clone(),
        };
        self.in_flight = Some(intent.clone());
        Some(intent)
    }

    /// The request that brings the hold to the wish.
    fn intent(&self) -> Option<HoldIntent> {
        let held = self.held_seats();
        let add: Vec<_> = self.want.iter().copied().filter(|seat| held.binary_search(seat).is_err()).collect();
        let remove: Vec<_> = held.iter().copied().filter(|seat| !self.wants(*seat)).collect();
        let held_places = self.held_places();
        let (add_places, remove_places) =
            (places_beyond(&self.want_places, &held_places), places_beyond(&held_places, &self.want_places));
        match &self.held {
            None if self.is_empty() => None,
            None => Some(HoldIntent::Take { seats: add, places: add_places.first().copied() }),
            Some(_) if add.is_empty() && remove.is_empty() && add_places.is_empty() && remove_places.is_empty() => None,
            Some(held) if self.is_empty() => Some(HoldIntent::Drop { hold: held.id }),
            Some(held) => Some(HoldIntent::Change { hold: held.id, add, remove, add_places, remove_places }),
        }
    }

    /// The number of the last request, unless something overtook it.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn reclaim_lost(&mut self) {
        self.want = std::mem::take(&mut self.lost);
        self.want_places = std::mem::take(&mut self.lost_places);
    }

    /// The request was answered. Other methods apply the answer, unless it was overtaken.
    pub fn answered(&mut self) {
        self.in_flight = None;
    }

    /// The request was granted. Taps made meanwhile stay in the wish.
    pub fn granted(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
        self.merge_other_changes();
        if self.exchange.iter().all(|seat| self.holds(*seat) || !self.wants(*seat)) {
            self.exchange.clear();
        }
    }

    /// Takes over what another tab changed: the difference between the hold and the request's result.
    fn merge_other_changes(&mut self) {
        let (held, held_places) = (self.held_seats(), self.held_places());
        let (expected, expected_places) =
            (std::mem::take(&mut self.expected), std::mem::take(&mut self.expected_places));
        self.want.retain(|seat| held.contains(seat) || !expected.contains(seat));
        self.want.extend(held.iter().filter(|seat| !expected.contains(seat)));
        self.want.sort_unstable();
        self.want.dedup();
        for added in places_beyond(&held_places, &expected_places) {
            self.set_places(added.area, self.wanted_in(added.area) + added.quantity);
        }
        for released in places_beyond(&expected_places, &held_places) {
            self.set_places(released.area, self.wanted_in(released.area).saturating_sub(released.quantity));
        }
    }

    /// The hold was released as requested.
    pub fn dropped(&mut self) {
        self.in_flight = None;
        self.held = None;
    }

    /// The change left no seat in the hold: the hold and the wish are empty.
    pub fn emptied(&mut self) {
        self.dropped();
        self.want.clear();
        self.want_places.clear();
    }

    /// The request was refused because of these seats, and of these areas with so many places left. They leave the
    /// wish, and the next intent requests the rest. Returns true for a refused exchange, which changes nothing.
    pub fn refused(&mut self, seats: &[SeatIndex], areas: &[(AreaIndex, u32)]) -> bool {
        let before = self.count();
        self.in_flight = None;
        if self.held.is_some() && seats.iter().any(|seat| self.exchange.contains(seat)) {
            self.keep_hold(seats);
            return true;
        }
        self.want.retain(|seat| !seats.contains(seat));
        for (area, left) in areas {
            let possible = self.held_in(*area).saturating_add(*left);
            self.set_places(*area, self.wanted_in(*area).min(possible));
        }
        if self.count() == before {
            // A refusal that names nothing we want would be requested again without end.
            self.reset_wish();
        }
        false
    }

    /// Keeps the hold after a refused exchange, and what was wanted beside it.
    fn keep_hold(&mut self, refused: &[SeatIndex]) {
        let (exchange, mut beside) = (std::mem::take(&mut self.exchange), std::mem::take(&mut self.want));
        beside.retain(|seat| !exchange.contains(seat) && !refused.contains(seat));
        let places = std::mem::take(&mut self.want_places);
        self.reset_wish();
        self.extend_wish(&beside, &places);
    }

    fn reset_wish(&mut self) {
        self.want = self.held_seats();
        self.want_places = self.held_places();
        self.exchange.clear();
    }

    /// Adds these to the wish, up to the limit.
    fn extend_wish(&mut self, seats: &[SeatIndex], places: &[AreaQuantity]) {
        for seat in seats {
            if let Err(place) = self.want.binary_search(seat)
                && self.has_room_for(1)
            {
                self.want.insert(place, *seat);
            }
        }
        for places in places {
            let room = u32::try_from(self.limit().saturating_sub(self.count())).unwrap_or(0);
            let wanted = self.wanted_in(places.area);
            self.set_places(places.area, wanted.max(places.quantity).min(wanted + room));
        }
    }

    /// The request failed finally: the hold stays and the rest of the wish is dropped.
    pub fn failed(&mut self) {
        self.in_flight = None;
        self.reset_wish();
    }

    /// Takes over the hold as read from the server. Ignored while a request is in flight, whose answer is newer.
    /// Returns whether anything changed.
    pub fn replace_hold(&mut self, hold: Option<HoldView>) -> bool {
        if self.in_flight.is_some() || self.held == hold {
            return false;
        }
        self.held = hold;
        self.reset_wish();
        if self.held.is_some() {
            self.clear_lost();
        }
        true
    }

    /// Takes over the new expiry of this hold, and nothing else: answers to later requests report the seats. Returns
    /// false if another hold, or none, is held, or if it is being paid for.
    pub fn extend_time(&mut self, hold: &HoldView) -> bool {
        let Some(held) = self.held.as_mut().filter(|held| held.id == hold.id && !held.paying) else { return false };
        held.expires_at.clone_from(&hold.expires_at);
        (held.expires_at_ms, held.latest_ms) = (hold.expires_at_ms, hold.latest_ms);
        true
    }

    /// Records that the hold is being paid for as this booking.
    pub fn record_payment(&mut self, hold: Uuid, booking: Uuid) {
        if let Some(held) = self.held.as_mut().filter(|held| held.id == hold) {
            (held.paying, held.booking) = (true, Some(booking));
        }
    }

    /// Takes over another hold of this visitor, made in another tab. Its seats join the wish.
    pub fn join(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
        self.exchange.clear();
        self.extend_wish(&self.held_seats(), &self.held_places());
    }

    /// The hold expired: its seats are remembered as lost. A request in flight is overtaken, yet stays the only one
    /// until it is answered.
    pub fn expired(&mut self) {
        let (lost, lost_places) = (std::mem::take(&mut self.want), std::mem::take(&mut self.want_places));
        self.finish();
        (self.lost, self.lost_places) = (lost, lost_places);
    }

    /// The hold became a booking, or its payment ended: nothing is lost. A request in flight is overtaken.
    pub fn finish(&mut self) {
        *self = Self { in_flight: self.in_flight.take(), number: self.number + 1, ..Self::default() };
    }

    fn held_seats(&self) -> Vec<SeatIndex> {
        let mut seats: Vec<_> = self.held.iter().flat_map(|held| &held.seats).map(|line| line.seat).collect();
        seats.sort_unstable();
        seats
    }

    fn held_places(&self) -> Vec<AreaQuantity> {
        let lines = self.held.iter().flat_map(|held| &held.places);
        let mut places: Vec<_> = lines.map(|line| AreaQuantity { area: line.area, quantity: line.quantity }).collect();
        places.sort_unstable_by_key(|places| places.area);
        places
    }
}

fn quantity_in(places: &[AreaQuantity], area: AreaIndex) -> u32 {
    places.iter().find(|places| places.area == area).map_or(0, |places| places.quantity)
}

/// The places by which `places` exceeds `base`, by area.
fn places_beyond(places: &[AreaQuantity], base: &[AreaQuantity]) -> Vec<AreaQuantity> {
    let beyond = |places: &AreaQuantity| {
        let quantity = places.quantity.saturating_sub(quantity_in(base, places.area));
        AreaQuantity { quantity, ..*places }
    };
    places.iter().map(beyond).filter(|places| places.quantity > 0).collect()
}

#[cfg(test)]
pub(crate) mod tests;

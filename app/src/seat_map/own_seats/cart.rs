//! What the visitor wants, what the server granted, and which request comes next.
//!
//! Taps change the wish at once; one request at a time brings the hold after it, so that fast taps
//! coalesce and nothing arrives out of order. Pure: no network, no clock, no DOM.

use domain::api::{AreaQuantity, HoldView};
use domain::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

/// A change of the hold, to be asked of the server. One intent, one idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Start a hold.
    Take {
        /// Its seats.
        seats: Vec<SeatIndex>,
        /// Its places in one area; more areas come with the next request.
        places: Option<AreaQuantity>,
    },
    /// Add and let go, in one step.
    Change {
        /// The hold.
        hold: Uuid,
        /// Seats to take as well.
        add: Vec<SeatIndex>,
        /// Seats to let go.
        remove: Vec<SeatIndex>,
        /// Places to take as well.
        add_places: Vec<AreaQuantity>,
        /// Places to let go.
        remove_places: Vec<AreaQuantity>,
    },
    /// Give everything back.
    Drop {
        /// The hold.
        hold: Uuid,
    },
}

/// What a tap did to the wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tapped {
    /// The seat or place is wanted now.
    Wanted,
    /// The seat or place is not wanted any more.
    LetGo,
    /// Ten seats and places are the limit.
    Full,
    /// A payment is in progress: nothing changes until it ended.
    Paying,
}

/// The wish and the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cart {
    held: Option<HoldView>,
    /// Sorted, each seat once.
    want: Vec<SeatIndex>,
    /// Sorted by area, each area once, no quantity zero.
    want_places: Vec<AreaQuantity>,
    /// Seats chosen in place of everything else, until they are held: all of them are taken for what is held, or none.
    instead: Vec<SeatIndex>,
    in_flight: Option<Intent>,
    /// Counts the requests, and what overtook one: an answer counts only under the current number.
    number: u64,
    /// Seats of a hold that ended by itself, for "try to get them back".
    lost: Vec<SeatIndex>,
    lost_places: Vec<AreaQuantity>,
}

impl Cart {
    /// The hold the server granted last.
    #[must_use]
    pub fn held(&self) -> Option<&HoldView> {
        self.held.as_ref()
    }

    /// The seats wanted, in order.
    #[must_use]
    pub fn want(&self) -> &[SeatIndex] {
        &self.want
    }

    /// The places wanted, by area.
    #[must_use]
    pub fn want_places(&self) -> &[AreaQuantity] {
        &self.want_places
    }

    /// How many places in an area are wanted.
    #[must_use]
    pub fn wanted_in(&self, area: AreaIndex) -> u32 {
        quantity_in(&self.want_places, area)
    }

    /// How many places in an area the server has granted.
    #[must_use]
    pub fn held_in(&self, area: AreaIndex) -> u32 {
        quantity_in(&self.held_places(), area)
    }

    /// How many seats and places are wanted.
    #[must_use]
    pub fn count(&self) -> usize {
        self.want_places.iter().fold(self.want.len(), |sum, places| sum + places.quantity as usize)
    }

    /// Whether nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.want.is_empty() && self.want_places.is_empty()
    }

    /// Whether there are seats or places of a hold that ended by itself.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        !(self.lost.is_empty() && self.lost_places.is_empty())
    }

    /// Whether the visitor wants this seat.
    #[must_use]
    pub fn wants(&self, seat: SeatIndex) -> bool {
        self.want.binary_search(&seat).is_ok()
    }

    /// Whether the server has granted this seat.
    #[must_use]
    pub fn holds(&self, seat: SeatIndex) -> bool {
        self.held.as_ref().is_some_and(|held| held.seats.iter().any(|line| line.seat == seat))
    }

    /// Whether wish and hold agree and nothing is on its way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.want == self.held_seats() && self.want_places == self.held_places()
    }

    /// Whether a payment is in progress.
    #[must_use]
    pub fn is_paying(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.paying)
    }

    /// A tap on a seat that is free or one's own.
    pub fn tap(&mut self, seat: SeatIndex) -> Tapped {
        if self.is_paying() {
            return Tapped::Paying;
        }
        match self.want.binary_search(&seat) {
            Ok(place) => {
                self.want.remove(place);
                Tapped::LetGo
            }
            Err(_) if self.count() >= MAX_SEATS_PER_HOLD => Tapped::Full,
            Err(place) => {
                self.want.insert(place, seat);
                self.forget_lost();
                Tapped::Wanted
            }
        }
    }

    /// Wants these seats and no others. Somebody who holds others keeps them where these cannot be had together.
    pub fn want_instead(&mut self, seats: &[SeatIndex]) -> Tapped {
        if self.is_paying() {
            return Tapped::Paying;
        }
        self.want = seats.to_vec();
        self.want.sort_unstable();
        self.want.dedup();
        self.want.truncate(MAX_SEATS_PER_HOLD);
        self.want_places.clear();
        self.instead.clone_from(&self.want);
        self.forget_lost();
        Tapped::Wanted
    }

    /// One place more or less in an area.
    pub fn step(&mut self, area: AreaIndex, more: bool) -> Tapped {
        let wanted = self.wanted_in(area);
        if self.is_paying() {
            Tapped::Paying
        } else if !more {
            self.want_in(area, wanted.saturating_sub(1));
            Tapped::LetGo
        } else if self.count() >= MAX_SEATS_PER_HOLD {
            Tapped::Full
        } else {
            self.want_in(area, wanted + 1);
            self.forget_lost();
            Tapped::Wanted
        }
    }

    fn want_in(&mut self, area: AreaIndex, quantity: u32) {
        self.want_places.retain(|places| places.area != area);
        if quantity > 0 {
            let place = self.want_places.partition_point(|places| places.area < area);
            self.want_places.insert(place, AreaQuantity { area, quantity });
        }
    }

    fn forget_lost(&mut self) {
        self.lost.clear();
        self.lost_places.clear();
    }

    /// Whether a request is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.in_flight.is_none() && self.intent().is_some()
    }

    /// The next request, when one is due; it counts as on its way from here on.
    pub fn next_intent(&mut self) -> Option<Intent> {
        if self.in_flight.is_some() {
            return None;
        }
        let intent = self.intent()?;
        self.number += 1;
        self.in_flight = Some(intent.clone());
        Some(intent)
    }

    /// What would bring the hold after the wish.
    fn intent(&self) -> Option<Intent> {
        let held = self.held_seats();
        let add: Vec<_> = self.want.iter().copied().filter(|seat| held.binary_search(seat).is_err()).collect();
        let remove: Vec<_> = held.iter().copied().filter(|seat| !self.wants(*seat)).collect();
        let held_places = self.held_places();
        let (add_places, remove_places) =
            (more(&self.want_places, &held_places), more(&held_places, &self.want_places));
        match &self.held {
            None if self.is_empty() => None,
            None => Some(Intent::Take { seats: add, places: add_places.first().copied() }),
            Some(_) if add.is_empty() && remove.is_empty() && add_places.is_empty() && remove_places.is_empty() => None,
            Some(held) if self.is_empty() => Some(Intent::Drop { hold: held.id }),
            Some(held) => Some(Intent::Change { hold: held.id, add, remove, add_places, remove_places }),
        }
    }

    /// The number of the request sent last, unless something overtook it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The request on its way was answered; what the answer means is said separately, or not at all
    /// when it was overtaken.
    pub fn answered(&mut self) {
        self.in_flight = None;
    }

    /// The server granted what was asked. Taps made meanwhile stay in the wish.
    pub fn granted(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
        if self.instead.iter().all(|seat| self.holds(*seat) || !self.wants(*seat)) {
            self.instead.clear();
        }
    }

    /// The server took everything back as asked.
    pub fn dropped(&mut self) {
        self.in_flight = None;
        self.held = None;
    }

    /// A change left no seat in the hold: it is over, and so is the wish.
    pub fn emptied(&mut self) {
        self.dropped();
        self.want.clear();
        self.want_places.clear();
    }

    /// The server refused because of these seats, and of these areas with only so many places left. They
    /// leave the wish, the others stay in it: the next intent asks for what is left. Where one of the seats was chosen in
    /// place of what is held, nothing changes hands, and this returns true.
    pub fn refused(&mut self, seats: &[SeatIndex], areas: &[(AreaIndex, u32)]) -> bool {
        let before = self.count();
        self.in_flight = None;
        if self.held.is_some() && seats.iter().any(|seat| self.instead.contains(seat)) {
            self.stay(seats);
            return true;
        }
        self.want.retain(|seat| !seats.contains(seat));
        for (area, left) in areas {
            let possible = self.held_in(*area).saturating_add(*left);
            self.want_in(*area, self.wanted_in(*area).min(possible));
        }
        if self.count() == before {
            // A refusal that names nothing we want would be asked again for ever.
            self.want_what_is_held();
        }
        false
    }

    /// What is held stays, and with it what was wanted beside the seats that were to take its place.
    fn stay(&mut self, refused: &[SeatIndex]) {
        let (instead, mut beside) = (std::mem::take(&mut self.instead), std::mem::take(&mut self.want));
        beside.retain(|seat| !instead.contains(seat) && !refused.contains(seat));
        let places = std::mem::take(&mut self.want_places);
        self.want_what_is_held();
        self.want_as_well(&beside, &places);
    }

    fn want_what_is_held(&mut self) {
        self.want = self.held_seats();
        self.want_places = self.held_places();
        self.instead.clear();
    }

    /// Adds these to the wish, as far as one may have so many.
    fn want_as_well(&mut self, seats: &[SeatIndex], places: &[AreaQuantity]) {
        for seat in seats {
            if let Err(place) = self.want.binary_search(seat)
                && self.count() < MAX_SEATS_PER_HOLD
            {
                self.want.insert(place, *seat);
            }
        }
        for places in places {
            let room = u32::try_from(MAX_SEATS_PER_HOLD.saturating_sub(self.count())).unwrap_or(0);
            let wanted = self.wanted_in(places.area);
            self.want_in(places.area, wanted.max(places.quantity).min(wanted + room));
        }
    }

    /// The request failed for good: what is held stays, what was only wanted is forgotten.
    pub fn failed(&mut self) {
        self.in_flight = None;
        self.want_what_is_held();
    }

    /// What the server says the hold is. Ignored while a request is on its way, whose answer is newer.
    /// Returns whether anything changed.
    pub fn learn(&mut self, hold: Option<HoldView>) -> bool {
        if self.in_flight.is_some() || self.held == hold {
            return false;
        }
        self.held = hold;
        self.want_what_is_held();
        if self.held.is_some() {
            self.forget_lost();
        }
        true
    }

    /// More time was given for this hold. Only that is news: seats taken or let go since it was asked for are told by
    /// the answers about them. Returns false when another hold, or none, is held by now, or it is being paid for.
    pub fn lasts_longer(&mut self, hold: &HoldView) -> bool {
        let Some(held) = self.held.as_mut().filter(|held| held.id == hold.id && !held.paying) else { return false };
        held.expires_at.clone_from(&hold.expires_at);
        (held.expires_at_ms, held.latest_ms) = (hold.expires_at_ms, hold.latest_ms);
        true
    }

    /// What is held is being paid for as this booking.
    pub fn payment_begun(&mut self, hold: Uuid, booking: Uuid) {
        if let Some(held) = self.held.as_mut().filter(|held| held.id == hold) {
            (held.paying, held.booking) = (true, Some(booking));
        }
    }

    /// There is another hold already (made in another tab): its seats join the wish.
    pub fn join(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
        self.instead.clear();
        self.want_as_well(&self.held_seats(), &self.held_places());
    }

    /// The hold ended by itself: its seats are lost, and remembered. A request on its way is overtaken,
    /// yet still the only one until it is answered.
    pub fn expired(&mut self) {
        let (lost, lost_places) = (std::mem::take(&mut self.want), std::mem::take(&mut self.want_places));
        self.moved_on();
        (self.lost, self.lost_places) = (lost, lost_places);
    }

    /// The hold became a booking, or a payment for it came to its end: over, and nothing lost. A request
    /// on its way is overtaken.
    pub fn moved_on(&mut self) {
        *self = Self { in_flight: self.in_flight.take(), number: self.number + 1, ..Self::default() };
    }

    /// Wants the lost seats again.
    pub fn ask_again(&mut self) {
        self.want = std::mem::take(&mut self.lost);
        self.want_places = std::mem::take(&mut self.lost_places);
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

/// What `these` have more than `those`, by area.
fn more(these: &[AreaQuantity], those: &[AreaQuantity]) -> Vec<AreaQuantity> {
    let surplus = |places: &AreaQuantity| {
        let quantity = places.quantity.saturating_sub(quantity_in(those, places.area));
        AreaQuantity { quantity, ..*places }
    };
    these.iter().map(surplus).filter(|places| places.quantity > 0).collect()
}

#[cfg(test)]
mod tests;

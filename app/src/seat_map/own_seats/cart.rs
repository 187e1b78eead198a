//! The wish of the visitor, the hold the server granted, and the next request.
//!
//! Taps change the wish at once. One request at a time brings the hold to the wish, so that fast taps coalesce and
//! nothing arrives out of order. `answers` applies the server's answers. Pure: no network, no clock, no DOM.

mod answers;

use domain::api::{AreaQuantity, HoldView};
use domain::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

/// A change of the hold to request from the server. One intent has one idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldIntent {
    /// Start a hold.
    Take {
        /// Its seats.
        seats: Vec<SeatIndex>,
        /// Its places in one area. Further areas follow in the next request.
        places: Option<AreaQuantity>,
    },
    /// Adds and releases seats and places in one step.
    Change {
        /// The hold.
        hold: Uuid,
        /// Seats to add.
        add: Vec<SeatIndex>,
        /// Seats to release.
        remove: Vec<SeatIndex>,
        /// Places to add.
        add_places: Vec<AreaQuantity>,
        /// Places to release.
        remove_places: Vec<AreaQuantity>,
    },
    /// Releases the hold.
    Drop {
        /// The hold.
        hold: Uuid,
    },
}

/// The effect of a tap on the wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapOutcome {
    /// The seat or place was added.
    Added,
    /// The seat or place was removed.
    Removed,
    /// Refused: the wish has ten seats and places, the limit.
    LimitReached,
    /// Refused: nothing changes during a payment.
    PaymentPending,
}

/// The wish and the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cart {
    held: Option<HoldView>,
    /// Sorted, each seat once.
    want: Vec<SeatIndex>,
    /// Sorted by area, each area once, no quantity zero.
    want_places: Vec<AreaQuantity>,
    /// Seats chosen as an exchange for the whole hold, until they are held. They are taken together or not at all.
    exchange: Vec<SeatIndex>,
    in_flight: Option<HoldIntent>,
    /// Number of the current request. Also incremented when the request is overtaken: an answer with an older number is
    /// ignored.
    number: u64,
    /// Seats of an expired hold, which the visitor can request again.
    lost: Vec<SeatIndex>,
    lost_places: Vec<AreaQuantity>,
}

impl Cart {
    /// The hold that the server granted last.
    #[must_use]
    pub fn held(&self) -> Option<&HoldView> {
        self.held.as_ref()
    }

    /// The wanted seats, in order.
    #[must_use]
    pub fn want(&self) -> &[SeatIndex] {
        &self.want
    }

    /// The wanted places, by area.
    #[must_use]
    pub fn want_places(&self) -> &[AreaQuantity] {
        &self.want_places
    }

    /// The wanted places in an area.
    #[must_use]
    pub fn wanted_in(&self, area: AreaIndex) -> u32 {
        quantity_in(&self.want_places, area)
    }

    /// The held places in an area.
    #[must_use]
    pub fn held_in(&self, area: AreaIndex) -> u32 {
        quantity_in(&self.held_places(), area)
    }

    /// The number of wanted seats and places.
    #[must_use]
    pub fn count(&self) -> usize {
        self.want_places.iter().fold(self.want.len(), |sum, places| sum + places.quantity as usize)
    }

    /// Returns true if nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.want.is_empty() && self.want_places.is_empty()
    }

    /// Returns true if there are seats or places of an expired hold.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        !(self.lost.is_empty() && self.lost_places.is_empty())
    }

    /// Returns true if the visitor wants this seat.
    #[must_use]
    pub fn wants(&self, seat: SeatIndex) -> bool {
        self.want.binary_search(&seat).is_ok()
    }

    /// Returns true if the server has granted this seat.
    #[must_use]
    pub fn holds(&self, seat: SeatIndex) -> bool {
        self.held.as_ref().is_some_and(|held| held.seats.iter().any(|line| line.seat == seat))
    }

    /// Returns true if the hold matches the wish and no request is in flight.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.want == self.held_seats() && self.want_places == self.held_places()
    }

    /// Returns true if a payment is in progress.
    #[must_use]
    pub fn is_paying(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.paying)
    }

    /// Adds or removes a seat that is free or the visitor's own.
    pub fn tap(&mut self, seat: SeatIndex) -> TapOutcome {
        if self.is_paying() {
            return TapOutcome::PaymentPending;
        }
        match self.want.binary_search(&seat) {
            Ok(place) => {
                self.want.remove(place);
                TapOutcome::Removed
            }
            Err(_) if self.count() >= MAX_SEATS_PER_HOLD => TapOutcome::LimitReached,
            Err(place) => {
                self.want.insert(place, seat);
                self.clear_lost();
                TapOutcome::Added
            }
        }
    }

    /// Replaces the wish with these seats. A visitor with a hold keeps it unless all of them can be taken.
    pub fn exchange_for(&mut self, seats: &[SeatIndex]) -> TapOutcome {
        if self.is_paying() {
            return TapOutcome::PaymentPending;
        }
        self.want = seats.to_vec();
        self.want.sort_unstable();
        self.want.dedup();
        self.want.truncate(MAX_SEATS_PER_HOLD);
        self.want_places.clear();
        self.exchange.clone_from(&self.want);
        self.clear_lost();
        TapOutcome::Added
    }

    /// Adds or removes one place in an area.
    pub fn change_places(&mut self, area: AreaIndex, surplus: bool) -> TapOutcome {
        let wanted = self.wanted_in(area);
        if self.is_paying() {
            TapOutcome::PaymentPending
        } else if !surplus {
            self.set_places(area, wanted.saturating_sub(1));
            TapOutcome::Removed
        } else if self.count() >= MAX_SEATS_PER_HOLD {
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

    /// Returns true if a request is due.
    #[must_use]
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
            (surplus(&self.want_places, &held_places), surplus(&held_places, &self.want_places));
        match &self.held {
            None if self.is_empty() => None,
            None => Some(HoldIntent::Take { seats: add, places: add_places.first().copied() }),
            Some(_) if add.is_empty() && remove.is_empty() && add_places.is_empty() && remove_places.is_empty() => None,
            Some(held) if self.is_empty() => Some(HoldIntent::Drop { hold: held.id }),
            Some(held) => Some(HoldIntent::Change { hold: held.id, add, remove, add_places, remove_places }),
        }
    }

    /// The number of the last request, unless something overtook it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Adds the lost seats to the wish.
    pub fn reclaim_lost(&mut self) {
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

/// The surplus of `these` over `those`, by area.
fn surplus(these: &[AreaQuantity], those: &[AreaQuantity]) -> Vec<AreaQuantity> {
    let surplus_of = |places: &AreaQuantity| {
        let quantity = places.quantity.saturating_sub(quantity_in(those, places.area));
        AreaQuantity { quantity, ..*places }
    };
    these.iter().map(surplus_of).filter(|places| places.quantity > 0).collect()
}

#[cfg(test)]
mod tests;

//! What the visitor wants, what the server granted, and which request comes next.
//!
//! Taps change the wish at once; one request at a time brings the hold after it, so that fast taps
//! coalesce and nothing arrives out of order. What the server says of them is heard in `answers`. Pure: no network, no
//! clock, no DOM.

mod answers;

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

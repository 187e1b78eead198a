//! Applies the server's answers to the cart: those to its own requests, and other changes of the hold.

use domain::api::{AreaQuantity, HoldView};
use domain::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

use super::Cart;

impl Cart {
    /// The request was answered. Other methods apply the answer, unless it was overtaken.
    pub fn answered(&mut self) {
        self.in_flight = None;
    }

    /// The request was granted. Taps made meanwhile stay in the wish.
    pub fn granted(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
        if self.exchange.iter().all(|seat| self.holds(*seat) || !self.wants(*seat)) {
            self.exchange.clear();
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
                && self.count() < MAX_SEATS_PER_HOLD
            {
                self.want.insert(place, *seat);
            }
        }
        for places in places {
            let room = u32::try_from(MAX_SEATS_PER_HOLD.saturating_sub(self.count())).unwrap_or(0);
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
}

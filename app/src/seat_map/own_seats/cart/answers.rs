//! What the cart makes of what the server says: of answers to its requests, and of what became of the hold without one.

use domain::api::{AreaQuantity, HoldView};
use domain::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

use super::Cart;

impl Cart {
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
}
